"""Failed tests from the Test Anything Protocol, and from what Test::More and prove say beside it.

A subtest is indented and told before, or in braces below, the test that it is a part of; a test that failed only
because of its subtests is not told itself. What is marked as to do or skipped is no failure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from notes import place_of, told_by
from results import Failure, Reader

from kos_retry.sdk import MAX_LINE_BYTES, Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes
from kos_retry.text.escapes import decode, plain_line

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_MESSAGE_BYTES = 2048
MAX_REASON_CHARS = 160
# What a runtime says of a passing state.
TRANSIENT = frozenset({"ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EADDRINUSE", "EAI_AGAIN", "EPIPE"})

_WORD = re.compile(r"^\w{1,60}$")
_ONLY_INSIDE = re.compile(r"^\d{1,9} subtests? failed$")


def extract(request: Request) -> Answer:
    """Answer with the failed tests of all reports and streams, each once, or with why a run failed as a whole."""
    answer = Answer()
    readers: dict[str, Reader] = {}
    for line in (line for lines in (_report_lines(request), request.lines()) for line in lines):
        if line.source not in readers:
            readers[line.source] = Reader()
        readers[line.source].feed(line)
    for failure in (failure for reader in readers.values() for failure in reader.failures()):
        _add(answer, request, failure)
    for reader in readers.values():
        _add_files(answer, request, reader)
    if not answer.findings and request.exit_code != 0:
        for reader in readers.values():
            _add_plan(answer, reader)
    first = {finding["test_id"]: finding for finding in reversed(answer.findings)}
    answer.findings = list(first.values())[::-1][: request.max_findings]
    answer.drop_mixed_transience()
    return answer


def _report_lines(request: Request) -> Iterator[Line]:
    """Yield the lines of the reports as those of a stream are."""
    for report in request.reports:
        at = 0
        with open(report.path, "rb") as stream:
            while at < MAX_FILE_BYTES and (raw := stream.readline(MAX_LINE_BYTES)):
                body = raw.rstrip(b"\r\n")
                yield Line(plain_line(decode(body)), f"report:{report.name}", at, at + len(body))
                at += len(raw)


def _add(answer: Answer, request: Request, failure: Failure) -> None:
    notes = failure.notes
    told = told_by(notes)
    path, line, column = place_of(request, told, notes)
    message = told.get("error") or told.get("message") or told.get("details") or "not ok"
    if _ONLY_INSIDE.match(message):
        return
    code = told.get("code", "")
    thrown = "stack" in told and told.get("failureType") in ("testCodeFailure", "hookFailed")
    evidence = f"{code}: {message}".partition("\n")[0][:400]
    answer.add(
        "test",
        test_id=request.relative(failure.name),
        error_type=told.get("name") or ("Error" if thrown else None),
        code=code if _WORD.match(code) and code != "ERR_TEST_FAILURE" else None,
        message=cut_bytes(message, MAX_MESSAGE_BYTES),
        path=path,
        line=line,
        column=column,
        evidence=[{"source": failure.first.source, "start": failure.first.start, "end": failure.end}],
        confidence="exact" if failure.exact else "likely",
        cause={"kind": "transient", "rule": "tap-system-error", "evidence": evidence} if code in TRANSIENT else None,
    )


def _add_files(answer: Answer, request: Request, reader: Reader) -> None:
    """Add what prove says of files in which no test failed, or why the run was given up."""
    if reader.bailed is not None:
        reason, line = reader.bailed
        name = f"Bail out! {reason}".strip()
        answer.add("test", status="error", test_id=name, message=reason or name, evidence=[span(line)])
        return
    for file, (why, line) in reader.files.items():
        said, number = reader.deaths.get(file, (why, 0))
        answer.add(
            "test",
            status="error",
            test_id=f"{request.relative(file)}: {said[:MAX_REASON_CHARS]}",
            message=said,
            path=request.relative(file),
            line=number,
            evidence=[span(line)],
        )


def _add_plan(answer: Answer, reader: Reader) -> None:
    """Add that not as many tests ran as were planned, or that nothing was planned."""
    if len(reader.plans) == 1 and (reader.version or reader.count) and reader.plans[0][0] != reader.count:
        planned, line = reader.plans[0]
        message = f"planned {planned} tests but ran {reader.count}"
        answer.add("test", status="error", test_id=f"1..{planned}", message=message, evidence=[span(line)])
    elif not reader.plans and reader.version is not None:
        evidence = [span(reader.version)]
        answer.add("test", status="error", test_id="plan", message="the plan is missing", evidence=evidence)


if __name__ == "__main__":
    main(extract)
