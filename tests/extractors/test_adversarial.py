"""What hostile output does to an extractor: nothing. All run in one host process, which has to survive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from kos_retry.adapters.extraction.adversarial import faults
from kos_retry.adapters.extraction.cases import sizes
from kos_retry.adapters.extraction.check import changes, wrong

if TYPE_CHECKING:
    from conftest import Host

    from kos_retry.adapters.extraction.cases import Case

CUTS = 10

TRACEBACK = b'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    x\nValueError: x\n'
REPORT = (
    b"= FAILURES =\n_ t _\nE   assert 0\n\na/t.py:1: AssertionError\n= short test summary info =\nFAILED a/t.py::t\n"
)
JUNIT = (
    b'<testsuite name="pytest"><testcase classname="a.t" name="t">'
    b'<failure message="m">text</failure></testcase></testsuite>'
)
ENTITIES = b"".join(b'<!ENTITY e%d "%s">' % (n, b"&e%d;" % (n - 1) * 10 if n else b"ha") for n in range(12))

HOSTILE: dict[str, bytes] = {
    "empty": b"",
    "only line ends": b"\n\r\n\r\n\n",
    "every byte": bytes(range(256)) * 64,
    "invalid UTF-8": b"\xff\xfe\xc3(\xe2\x82 \xed\xa0\x80 \xf4\x90\x80\x80\n" * 50 + TRACEBACK,
    "CRLF": (TRACEBACK + REPORT).replace(b"\n", b"\r\n"),
    "verbose": (b"a::" * 20_000 + b" FAILED x\n") * 10 + b"a::" * 330 + b"\n" + (b"a::" * 330 + b" FAILE\n") * 1_000,
    "bare CR": (TRACEBACK + REPORT).replace(b"\n", b"\r"),
    "one line of a megabyte": b"x" * 1_000_000 + b"\n" + TRACEBACK,
    "dots": b"= FAILURES =\n_ t _\na:1: x\n" + (b"a." * 30_000 + b"\n") * 10,
    "spaces": (b" " * 60_000 + b"\n") * 10,
    "colons": b"= FAILURES =\n_ t _\n" + (b"a:" * 30_000 + b"\n") * 10,
    "margins": (b"| " * 30_000 + b"\n") * 10,
    "rules": (b"=" * 60_000 + b"\n" + b"_" * 60_000 + b"\n" + b" " * 100 + b"+-" * 30_000 + b"\n") * 4,
    "escapes everywhere": b"".join(
        b"\x1b[3%dm%c\x1b[0m" % (n % 8, c) for n, c in enumerate(TRACEBACK + REPORT) if c != 10
    ),
    "unterminated escape": b"\x1b]8;;" + b"x" * 100_000 + TRACEBACK,
    "forged workflow commands": b"::error file=a.py,line=1::boom\n##[error]boom\n##vso[task.logissue type=error]boom\n"
    * 20,
    "a log that quotes another one": b"".join(b"log: " + line + b"\n" for line in (TRACEBACK + REPORT).splitlines()),
    "tracebacks without end": b"Traceback (most recent call last):\n" * 5_000,
    "frames without end": b"Traceback (most recent call last):\n" + b'  File "a.py", line 1, in f\n' * 20_000,
    "chains without end": (TRACEBACK + b"\nDuring handling of the above exception, another exception occurred:\n\n")
    * 2_000,
    "thrown without end": b'Exception in thread "main" a.B: x\n' * 5_000 + b"a.B: x\n" * 5_000,
    "causes without end": b'Exception in thread "main" a.B: x\n'
    + b"\tat a.B.c(B.java:1)\nCaused by: a.B: x\n" * 20_000,
    "blocks and places": b"* What went wrong:\n" * 5_000
    + b"* What went wrong:\n"
    + b"> Could not find a:b:1.\n" * 20_000,
    "goals without end": b"[INFO] BUILD FAILURE\n"
    + b"[ERROR] Failed to execute goal on project x: Could not resolve a:b:1\n" * 5_000
    + b"[ERROR] Failed to execute goal on project x: could not be resolved: "
    + b"a:b:1, " * 9_000,
    "names in names": b'Exception in thread "main" ' + b"a." * 30_000 + b"\n" + b"a." * 30_000 + b": x\n",
    "groups in groups": b"".join(b" " * 2 * n + b"+-+---------------- 1 ----------------\n" for n in range(2_000)),
    "huge numbers": TRACEBACK.replace(b"line 1", b"line 99999999999999999999"),
    "blocks without end": b"= FAILURES =\n" + b"_ t _\na/t.py:1: x\n" * 20_000,
    "summary without end": b"= short test summary info =\n"
    + b"".join(b"FAILED a/t.py::t%d - x...\n" % n for n in range(20_000)),
    "unlike blocks": b"= FAILURES =\n"
    + b"a/t.py:1: boom\n" * 3_000
    + b"= short test summary info =\n"
    + b"".join(b"FAILED a/t.py::t%d - b\n" % n for n in range(3_000)),
    "dashes in parameters": b"= short test summary info =\nFAILED a/t.py::t[" + b" - " * 20_000 + b"\n",
    "runs in runs": b"=== test session starts ===\n" * 3_000 + REPORT,
    "examples without end": b"Failures:\n" + b"  1) a\n     Failure/Error: b\n" * 20_000,
    "scenarios without end": b"Failing scenarios:\n" + b"  a.feature:1  b\n" * 20_000,
    "numbers without end": b"There were 2 failures:\n" + b'1) A::b with data set "c" (d)\n' * 20_000,
    "unlike margins": (b"  x: " + b" " * 30_000 + b" # y\n" + b"   FAILED  a > " + b" > " * 20_000 + b"\n") * 10,
    "crosses": ("✗ ".encode() * 20_000 + b"\n   (in test file " + b"a, line " * 4_000 + b"\n") * 10,
    "arrows": b"Error -> "
    + b"a @ " * 15_000
    + b"\nFailure -> "
    + b"a: " * 15_000
    + b"\n  1) Error:\na#"
    + b" [a:" * 15_000
    + b"\n",
    "examples of documents": b'File "a", line 1, in b\nFailed example:\n    c\n' * 20_000,
    "empty message": TRACEBACK.replace(b": x\n", b"\n") + b"= FAILURES =\n_ t _\nE\n",
    "no root": b"<?xml version='1.0'?>",
    "case in no suite": b"<testcase/>",
    "nameless cases": b"<testsuite>" + b"<testcase><failure/></testcase>" * 3 + b"<error/></testsuite>",
    "unclosed": JUNIT[: JUNIT.index(b"text") + 2],
    "not well-formed": JUNIT.replace(b"text", b"a & b < c"),
    "unknown encoding": b'<?xml version="1.0" encoding="klingon"?>' + JUNIT,
    "multi-byte encoding": b'<?xml version="1.0" encoding="shift_jis"?>' + JUNIT,
    "UTF-16": JUNIT.decode().encode("utf-16"),
    "deep": b"<testsuite>" * 200_000,
    "deep inside of a case": b"<testsuite><testcase name='t'><failure>" + b"<a>" * 200_000,
    "long text": b"<testsuite><testcase name='t'><failure>"
    + b"text of it\n" * 100_000
    + b"</failure></testcase></testsuite>",
    "long message": b"<testsuite><testcase name='t'><failure message='"
    + b"word " * 200_000
    + b"'/></testcase></testsuite>",
    "places on one line": JUNIT.replace(b"text", b"a.b:1: node:x " * 4_000),
    "many cases": b"<testsuite>" + b"".join(b"<testcase name='t%d'><failure/></testcase>" % n for n in range(20_000)),
    "control characters": JUNIT.replace(b"text", b"\x00\x1b[31mred\x1b[0m\x08&#x1b;&#0;&#xD800;&#99999999;"),
    "deep JSON": b'{"results":' * 200_000,
    "deep JSON in a line": b'{"$report_type": "TestReport", "nodeid": ' + b"[" * 200_000 + b"\n",
    "many lines of JSON": b'{"file": "a.x", "line": 1, "code": "R", "message": "m", "severity": "error"}\n' * 20_000,
    "unfinished without end": b"".join(
        b'{"$report_type": "TestReport", "nodeid": "t.py::t%d", "when": "setup", "outcome": "passed"}\n' % n
        for n in range(20_000)
    ),
    "half characters in JSON": b'{"version": "2.1.0", "runs": [{"results": [{"ruleId": "\\ud800", "level": "error",'
    b' "message": {"text": "\\udfff"}}]}]}\n{"file": "\\ud800", "line": 1, "code": "R", "message": "\\udc00"}\n',
    "huge numbers in JSON": b'[{"file": "a.x", "code": "R", "message": "m", "line": ' + b"9" * 5_000 + b"}]",
    "a long text in JSON": b'[{"file": "a.x", "line": 1, "code": "R", "message": "' + b"word " * 200_000 + b'"}]',
    "line numbers": b"<testsuite name='pytest'>"
    b"<testcase name='t' file='a.py' line='-1'><failure>a.py:0: X</failure></testcase>"
    b"<testcase name='u' file='a.py' line='\xc2\xb2'><failure/></testcase></testsuite>",
}
REFUSED: dict[str, bytes] = {
    "DTD": b'<!DOCTYPE testsuite [<!ENTITY e "x">]>' + JUNIT,
    "external entity": b'<!DOCTYPE testsuite SYSTEM "file:///etc/passwd">' + JUNIT,
    "billion laughs": b"<!DOCTYPE testsuite [" + ENTITIES + b"]><testsuite><testcase name='&e11;'/></testsuite>",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_output_is_survived(extractor: Path, name: str, host: Host, tmp_path: Path) -> None:
    _check(host, extractor, _request(tmp_path, HOSTILE[name], HOSTILE[name]))


@pytest.mark.parametrize("name", REFUSED)
def test_a_type_definition_is_refused_and_never_read(extractor: Path, name: str, host: Host, tmp_path: Path) -> None:
    reply = host.ask(extractor, _request(tmp_path, REFUSED[name], REFUSED[name]))

    assert extractor.name != "junit" or "error" in reply
    assert "error" not in reply or reply["error"].startswith("RefusedReportError: ")


def test_recorded_output_is_read_as_before_whatever_befalls_it(case: Case, host: Host, tmp_path: Path) -> None:
    found = {}
    for variant, changed in changes(case.request(), tmp_path, step=100 // CUTS):
        reply = host.ask(case.extractor, changed)
        found[variant.name] = (
            wrong(variant, changed, case.expected(), reply["answer"]) if "answer" in reply else [reply]
        )

    assert {} == {name: what for name, what in found.items() if what}


def _request(directory: Path, output: bytes, report: bytes) -> dict[str, Any]:
    (directory / "stdout.log").write_bytes(output)
    (directory / "junit.xml").write_bytes(report)
    return {
        "protocol": 1,
        "attempt": {"argv": ["tool"], "exit_code": 1},
        "workspace": "/srv/app",
        "streams": {"stdout": {"path": str(directory / "stdout.log")}},
        "reports": [{"path": str(directory / "junit.xml"), "relative": "junit.xml"}],
        "limits": {"findings": 200},
    }


def _check(host: Host, extractor: Path, request: dict[str, Any]) -> None:
    """Ask, and hold the answer to what the core relies on."""
    reply = host.ask(extractor, request)

    assert "answer" in reply, reply
    assert orjson.loads(json.dumps(reply)) == reply
    assert [] == faults(reply["answer"], sizes(request), request["limits"]["findings"])
    assert len(json.dumps(reply)) < 1024 * 1024
