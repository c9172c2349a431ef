"""Asking several extractors at once, in hosts and in processes of their own."""

from __future__ import annotations

import itertools

import pytest

from kos_retry import limits
from kos_retry.adapters.extraction import dispatch, manifest
from kos_retry.adapters.extraction.extract import Extraction
from kos_retry.adapters.extraction.manifest import read_manifest
from kos_retry.adapters.extraction.material import Material
from kos_retry.engine.redact import Redactor

_MATERIAL = Material(1, 1, None, False, ("make",), "/w", {"stdout": "error: it broke\n"})
_HOSTED = """
from kos_retry.sdk import Answer
def extract(request):
    answer = Answer()
    answer.add("crash", error_type="{name}", confidence="exact")
    {work}
    return answer
"""
_COMMAND = """{work}
printf '%s' '{{"protocol": 1, "findings": [{{"kind": "crash", "error_type": "{name}", "confidence": "exact"}}]}}'
"""
# Says that it is there and answers once the other one is: two that wait like this have to run at the same time.
_MEET = {
    True: "import pathlib, time; pathlib.Path('{directory}/{name}').touch()\n"
    "    while not pathlib.Path('{directory}/{other}').exists(): time.sleep(0.01)",
    False: ": > '{directory}/{name}'; until [ -e '{directory}/{other}' ]; do sleep 0.01; done",
}


@pytest.fixture
def extractor(tmp_path, monkeypatch):
    """Return a maker of extractors; what shares a host is taken for bundled."""
    monkeypatch.setattr(manifest, "bundled_root", lambda: tmp_path)

    def make(name: str, work: str = "", *, hosted: bool = True, timeout: str = "20s"):
        directory = tmp_path / name
        directory.mkdir()
        (directory / "script").write_text(
            (_HOSTED if hosted else _COMMAND).format(name=name, work=work or ":" * (not hosted))
        )
        hosting = 'hosted = "extract.py"\n' * hosted
        (directory / "script").rename(directory / ("extract.py" if hosted else "script"))
        (directory / "extractor.toml").write_text(
            f'id = "{name}"\nprotocol = 1\nversion = "1"\npriority = 300\ntimeout = "{timeout}"\n'
            f'command = ["sh", "{{dir}}/script"]\n{hosting}'
        )
        return read_manifest(directory)

    return make


def _run(*manifests, material=_MATERIAL):
    with Extraction(Redactor(), manifests) as extraction:
        return extraction.run(material)


def _names(found):
    return [artifact.name for artifact in found.artifacts]


@pytest.mark.parametrize("order", list(itertools.permutations("abc")), ids="".join)
def test_answers_are_merged_in_sorted_order_whoever_was_first(extractor, order):
    slow = {"a": "import time; time.sleep(0.05)", "b": "", "c": ""}
    found = _run(*(extractor(name, slow[name], hosted=name != "c") for name in order))
    assert (["a", "b", "c"], ["a", "b", "c"]) == (_names(found), [f.error_type for f in found.findings])


@pytest.mark.parametrize("hosted", [True, False], ids=["hosted", "own-process"])
def test_two_run_at_the_same_time(extractor, hosted, monkeypatch, tmp_path):
    monkeypatch.setattr(dispatch, "cores", lambda: 2)
    monkeypatch.setattr(dispatch, "SECOND_HOST_BYTES", 1)
    pair = [
        extractor(
            name, _MEET[hosted].format(directory=tmp_path, name=f"{name}-met", other=f"{other}-met"), hosted=hosted
        )
        for name, other in ("ab", "ba")
    ]
    assert (["a", "b"], {}) == (_names(found := _run(*pair)), found.failures)


def test_hosted_one_and_own_process_run_at_the_same_time(extractor, tmp_path):
    pair = [
        extractor(
            name, _MEET[hosted].format(directory=tmp_path, name=f"{name}-met", other=f"{other}-met"), hosted=hosted
        )
        for name, other, hosted in (("a", "b", True), ("b", "a", False))
    ]
    assert ["a", "b"] == _names(_run(*pair))


def test_little_output_is_read_by_one_host(extractor, monkeypatch):
    monkeypatch.setattr(dispatch, "cores", lambda: 2)
    tell = "import os; answer.findings[0]['message'] = str(os.getpid())"
    found = _run(*(extractor(name, tell) for name in "abcd"))
    assert 1 == len({finding.message for finding in found.findings})


_BREAKS = {
    "hangs": ("while True: pass", "no answer within 0.2s"),
    "raises": ("raise ValueError('no such luck')", "ValueError: no such luck"),
    "leaves": ("raise SystemExit(3)", "the extractor host ended without an answer"),
    "dies": ("import os; os.abort()", "the extractor host ended without an answer"),
    "answers nothing": ("return None", "AttributeError: "),
    "prints": ("print('x' * 2_000_000); raise KeyError(1)", "KeyError: 1"),
    "answers too much": ("answer.findings[0]['message'] = 'x' * 2_000_000", "the answer is larger than"),
    "answers no JSON": ("answer.findings[0]['message'] = {1, 2}", "TypeError: "),
}


@pytest.mark.parametrize(("work", "said"), _BREAKS.values(), ids=_BREAKS)
def test_host_is_lost_to_one_extractor_only(extractor, work, said):
    found = _run(extractor("a"), extractor("b", work, timeout="200ms" if "while" in work else "20s"), extractor("c"))
    assert (["a", "c"], ["b"]) == (_names(found), list(found.failures))
    assert found.failures["b"].startswith(said)


def test_what_the_time_did_not_suffice_for_is_not_asked(extractor, monkeypatch):
    monkeypatch.setattr(limits, "EXTRACTOR_TOTAL_SECONDS", 0.0)
    reason = "not asked: the extractors before it used up the time"
    assert {"a": reason, "b": reason} == _run(extractor("a"), extractor("b", hosted=False)).failures


def test_next_outcome_is_read_afresh(extractor):
    tell = "answer.findings[0]['message'] = next(request.lines()).text"
    with Extraction(Redactor(), [extractor("a", tell)]) as extraction:
        said = [
            extraction.run(_MATERIAL._replace(streams={"stdout": text})).findings[0].message for text in ("one", "two")
        ]
    assert ["one", "two"] == said


def test_secret_in_an_answer_is_not_told(extractor):
    with Extraction(
        Redactor(["hunter2-hunter2"]), [extractor("a", "raise ValueError('hunter2-hunter2')")]
    ) as extraction:
        assert {"a": "ValueError: [redacted]"} == extraction.run(_MATERIAL).failures


def test_output_that_cannot_be_spooled_is_a_failure_of_each(extractor, monkeypatch):
    with Extraction(Redactor(), [extractor("a"), extractor("b", hosted=False)]) as extraction:
        monkeypatch.setattr("tempfile.tempdir", "/nowhere/at/all")
        assert {"a", "b"} == set(extraction.run(_MATERIAL).failures)


def test_asked_for_is_asked_whatever_it_selects(extractor):
    picky = extractor("a")._replace(match=manifest.Match(contains=("never said",)))
    with Extraction(Redactor(), [picky], ["a"]) as extraction:
        assert ["a"] == _names(extraction.run(_MATERIAL))
    assert [] == _names(_run(picky))
