"""Checking an extractor: one that holds what it promises, and every way not to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kos_retry.adapters.extraction.adversarial import Variant, differences, faults, variants
from kos_retry.adapters.extraction.check import Checker, changes, difference
from kos_retry.adapters.extraction.manifest import read_manifest

_LOG = "starting\nboom: it broke\ndone\n"
_FINDING = {"kind": "crash", "error_type": "boom", "message": "it broke", "confidence": "likely"}
_SCRIPT = r"""
from kos_retry.sdk import Answer, main
def extract(request):
    answer = Answer()
    for line in request.lines():
        if line.text.startswith("boom: "):
            WORK
            answer.add("crash", error_type="boom", message=line.text[6:])
            break
    return answer
if __name__ == "__main__":
    main(extract)
"""


@pytest.fixture
def extractor(tmp_path):
    """Return a maker of extractors that find the line with ``boom``, with one case each."""

    def make(
        work: str = "pass", *, script: str = _SCRIPT, hosted: bool = True, command: str | None = None, **files: str
    ):
        (tmp_path / "extract.py").write_text(script.replace("WORK", work))
        hosting = 'hosted = "extract.py"\n' * hosted
        argv = json.dumps(["sh", "-c", command] if command else ["{interpreter}", "extract.py"])
        (tmp_path / "extractor.toml").write_text(
            f'id = "mine"\nprotocol = 1\nversion = "1"\npriority = 300\ntimeout = "20s"\ncommand = {argv}\n{hosting}'
        )
        case = tmp_path / "fixtures" / "broke"
        case.mkdir(parents=True)
        (case / "output.log").write_text(_LOG)
        (case / "expected.json").write_text(json.dumps({"protocol": 1, "findings": [_FINDING]}))
        for name, text in files.items():
            (case / name.replace("_", ".")).write_text(text)
        return tmp_path

    return make


def _problems(directory, step=50):
    with Checker(read_manifest(directory)) as checker:
        return [f"{problem.case}: {problem.what}" for problem in checker.problems(step)]


def test_extractor_that_holds_has_no_problems(extractor):
    assert [] == _problems(extractor())


def test_own_process_that_holds_has_no_problems(extractor):
    answer = json.dumps({"protocol": 1, "findings": []})
    command = f"cat >/dev/null; printf '%s' '{answer}'"
    assert [] == _problems(extractor(command=command, hosted=False, expected_json=answer))


def test_field_that_is_left_out_equals_one_that_is_null(extractor):
    expected = {"protocol": 1, "totals": None, "findings": [{**_FINDING, "cause": None, "status": "failed"}]}
    assert [] == _problems(extractor(expected_json=json.dumps(expected)))


_PROBLEMS = {
    "other answer": (
        {"work": "answer.add('crash', error_type='other', message='m')"},
        "broke: not the expected answer: findings: 1 are expected, 2 are there",
    ),
    "by hash seed": (
        {"work": "answer.add('crash', error_type=str(hash('x')), message='m')"},
        "broke: not the expected answer: ",
    ),
    "from time to time": ({"work": "import os; line.text += str(os.getpid())"}, "broke: not the expected answer: "),
    "wrong expectation": (
        {"expected_json": '{"protocol": 1, "findings": [{"kind": "bug"}]}'},
        "broke: expected.json: the answer is not valid: findings[0].kind: expected test or ",
    ),
    "expectation is no JSON": ({"expected_json": "{"}, "broke: "),
    "expectation is a list": ({"expected_json": "[]"}, "broke: "),
    "request is of another shape": ({"request_json": '{"streams": [1]}'}, "broke: request.json: AttributeError: "),
    "request names no file": (
        {"request_json": '{"streams": {"output": {"path": "gone.log"}}}'},
        "broke: request.json: FileNotFoundError: ",
    ),
    "crash": ({"work": "raise ValueError('no')"}, "broke: exit code 1: "),
    "crash on what is invalid": (
        {"script": _SCRIPT.replace("    for line", "    open(request._streams['output']).read()\n    for line")},
        "broke: invalid UTF-8: UnicodeDecodeError: ",
    ),
    "misses what is coloured": (
        {"script": _SCRIPT.replace("request.lines()", "request.lines() if b'[1;31m' not in open(request._streams['output'], 'rb').read() else ()")},
        "broke: colours: misses crash boom",
    ),
    "invents a test": (
        {"script": _SCRIPT.replace("            break\n", "").replace("WORK", "answer.add('test', test_id=f't{line.start}', message='m')"),
         "expected_json": json.dumps({"protocol": 1, "findings": [{"kind": "test", "test_id": "t9", "message": "m", "confidence": "likely"}, _FINDING]})},
        "broke: amid other output: invents t",
    ),
    "says nothing": (
        {"script": _SCRIPT.replace("message=line.text[6:]", ""), "expected_json": json.dumps({"protocol": 1, "findings": [{**_FINDING, "message": ""}]})},
        "broke: expected.json: findings.0: neither message nor test_id says what failed",
    ),
    "points nowhere": (
        {"script": _SCRIPT.replace("message=line", "evidence=[{'source': 'output', 'start': 0, 'end': 999}], message=line")},
        "broke: not the expected answer: findings[0].evidence: 0 are expected, 1 are there",
    ),
    "command and host disagree": (
        {"command": "cat >/dev/null; printf '{\"protocol\": 1}'"},
        "broke: not the expected answer: findings: 1 are expected, 0 are there",
    ),
    "cannot start": ({"command": "exec /nowhere/at/all", "hosted": False}, "broke: exit code 12"),
}  # fmt: skip


@pytest.mark.parametrize(("given", "said"), _PROBLEMS.values(), ids=_PROBLEMS)
def test_problem_is_told(extractor, given, said):
    assert any(problem.startswith(said) for problem in _problems(extractor(**given)))


def test_no_case_is_a_problem(extractor):
    directory = extractor()
    for file in (directory / "fixtures" / "broke").iterdir():
        file.unlink()
    (directory / "fixtures" / "broke").rmdir()
    assert [f": no cases: {directory.resolve()}/fixtures has no directory"] == _problems(directory)


def test_case_without_an_expectation_is_a_problem(extractor):
    directory = extractor()
    (directory / "fixtures" / "broke" / "expected.json").unlink()
    (problem,) = _problems(directory)
    assert problem.endswith("expected.json: No such file or directory")


def test_one_that_hangs_on_a_case_is_given_up_on_it(extractor):
    hangs = "import os\n    while os.path.getsize(request._streams['output']) < 20: pass\n    for line"
    directory = extractor(script=_SCRIPT.replace("for line", hangs))
    with Checker(read_manifest(directory)._replace(timeout=2.0)) as checker:
        assert [("broke", "cut off at 0 %: no answer within 2s")] == list(checker.problems(50))


def test_every_variant_is_asked_for_with_files_of_its_own(tmp_path):
    (tmp_path / "o.log").write_bytes(b"one\ntwo\n")
    (tmp_path / "r.xml").write_bytes(b"<a>\n</a>\n")
    place = tmp_path / "work"
    place.mkdir()
    request = {
        "streams": {"output": {"path": str(tmp_path / "o.log")}},
        "reports": [{"path": str(tmp_path / "r.xml"), "relative": "r.xml"}],
    }
    found = {
        variant.name: tuple(
            Path(part["path"]).read_bytes() for part in (changed["streams"]["output"], changed["reports"][0])
        )
        for variant, changed in changes(request, place, 50)
    }
    assert (b"", b"") == found["cut off at 0 %"]
    assert (b"one\n", b"<a>\n") == found["cut off at 50 %"]
    assert (b"one\r\ntwo\r\n", b"<a>\r\n</a>\r\n") == found["CRLF"]
    assert (b"\x1b[1;31mone\x1b[0m\n\x1b[1;31mtwo\x1b[0m\n", b"<a>\n</a>\n") == found["colours"]
    assert (b"one\ntwo\n" * 10, b"<a>\n</a>\n") == found["10 times over"]
    assert 4 == len(found["interleaved with other output"][0].splitlines())


@pytest.mark.parametrize(
    ("text", "coloured"),
    [
        (b"a\n", b"\x1b[1;31ma\x1b[0m\n"),
        (b"\x1b[32mok\x1b[0m\n", b"\x1b[32m\x1b[1;31mok\x1b[0m\x1b[0m\n"),
        (b'{"a": 1}\n', b'{"a": 1}\n'),
        (b"", b""),
    ],
)
def test_colours_leave_escapes_and_what_is_for_programs_alone(text, coloured):
    assert coloured == next(v for v in variants(50) if v.name == "colours").change(text)


def _answer(*findings):
    return {"protocol": 1, "findings": list(findings)}


_EQUAL = Variant("v", bytes, ("kind", "code"), equal=True)
_SUBSET = Variant("v", bytes, ("test_id",))


@pytest.mark.parametrize(
    ("variant", "before", "after", "told"),
    [
        (_EQUAL, [{"kind": "crash", "code": "a"}], [{"kind": "crash", "code": "a", "message": "other"}], []),
        (_EQUAL, [{"kind": "crash", "code": "a"}], [], ["misses crash a"]),
        (_EQUAL, [], [{"kind": "crash", "code": "a"}], ["invents crash a"]),
        (_SUBSET, [{"test_id": "t"}], [], []),
        (_SUBSET, [{"test_id": "t"}], [{"test_id": "t"}, {"test_id": "u"}], ["invents u"]),
        (_SUBSET, [], [{"kind": "crash", "code": "a"}], []),
    ],
)
def test_differences(variant, before, after, told):
    assert told == differences(variant, _answer(*before), _answer(*after))


def test_faults_of_an_answer():
    good = {"kind": "crash", "message": "m", "evidence": [{"source": "output", "start": 0, "end": 5}]}
    far = {"kind": "crash", "message": "m", "evidence": [{"source": "output", "start": 0, "end": 6}]}
    other = {"kind": "crash", "message": "m", "evidence": [{"source": "stdout", "start": 0, "end": 0}]}
    assert [] == faults(_answer(good), {"output": 5}, 1)
    assert ["findings: 2 of them, 1 are allowed"] == faults(_answer(good, good), {"output": 5}, 1)
    assert [
        "findings.0.evidence: bytes 0 to 6 of 'output' are not there",
        "findings.1.evidence: bytes 0 to 0 of 'stdout' are not there",
    ] == faults(_answer(far, other), {"output": 5}, 9)


@pytest.mark.parametrize(
    ("expected", "actual", "told"),
    [
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 2}]}, ""),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "a[1].b: 2 is expected, 3 is there"),
        ([1], [1, 2], ": 1 are expected, 2 are there"),
        ({"a": 1}, {"b": 1}, ': {"a": 1} is expected, {"b": 1} is there'),
        ("x" * 99, "y", f': "{"x" * 78}… is expected, "y" is there'),
    ],
)
def test_difference_names_the_place(expected, actual, told):
    assert told == difference(expected, actual)
