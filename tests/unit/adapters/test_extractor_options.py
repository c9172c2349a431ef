"""What the user's settings hold for single extractors: it reaches them, and what they make of it comes second."""

from __future__ import annotations

import pytest

from kos_retry.adapters.extraction import manifest
from kos_retry.adapters.extraction.extract import Extraction
from kos_retry.adapters.extraction.manifest import Manifest, Match
from kos_retry.adapters.extraction.material import Material
from kos_retry.engine.redact import Redactor

_OUTPUT = "first line\nsecond line\n"
_FIRST, _SECOND = (0, 10), (11, 22)
_SCRIPT = """
from kos_retry.sdk import Answer

def extract(request):
    answer = Answer()
    answer.findings = {findings}
    answer.incomplete = request.options.get("incomplete")
    return answer
"""


def _finding(code, span, confidence="likely"):
    evidence = [{"source": "output", "start": span[0], "end": span[1]}]
    return {"kind": "diagnostic", "code": code, "message": code, "evidence": evidence, "confidence": confidence}


@pytest.fixture
def extracted(tmp_path, monkeypatch):
    """Return what is found by a known extractor and by one that is asked for its options, with these findings."""

    # Only what comes with the package shares a host.
    monkeypatch.setattr(manifest, "bundled_root", lambda: tmp_path.parent)

    def extract(known, optional, options=None):
        manifests = []
        for name, findings, match in (("known", known, Match()), ("optional", optional, Match(options=True))):
            script = f"{name}.py"
            (tmp_path / script).write_text(_SCRIPT.format(findings=findings))
            fixed = {"protocol": 1, "version": "1", "priority": 300, "command": ("false",), "directory": tmp_path}
            manifests.append(Manifest(id=name, hosted=script, match=match, **fixed))
        given = {"optional": options} if options else {}
        with Extraction(Redactor(), manifests, options=given) as extraction:
            return extraction.run(Material(1, 1, None, False, (), "/w", {"output": _OUTPUT}))

    return extract


def _codes(extracted):
    return sorted(finding.code for finding in extracted.findings)


def test_extractor_is_asked_where_there_are_options_for_it(extracted):
    assert ["b"] == _codes(extracted([], [_finding("b", _FIRST)], {"x": 1}))


def test_extractor_is_not_asked_without_options(extracted):
    assert [] == _codes(extracted([], [_finding("b", _FIRST)]))


def test_incomplete_answer_is_recorded_and_its_findings_count(extracted):
    found = extracted([], [_finding("b", _FIRST)], {"incomplete": "left out: a"})
    assert (["b"], {"optional": "left out: a"}) == (_codes(found), found.failures)


_REPEATS = {
    "same line": (_FIRST, "likely", ["a"]),
    "part of the line": ((3, 5), "likely", ["a"]),
    "line and the next": ((0, 22), "likely", ["a"]),
    "other line": (_SECOND, "likely", ["a", "b"]),
    "line that a guess rests on": (_FIRST, "guess", ["a", "b"]),
}


@pytest.mark.parametrize(("span", "confidence", "codes"), _REPEATS.values(), ids=_REPEATS)
def test_what_another_extractor_is_sure_of_is_not_told_twice(extracted, span, confidence, codes):
    assert codes == _codes(extracted([_finding("a", _FIRST, confidence)], [_finding("b", span)], {"x": 1}))
