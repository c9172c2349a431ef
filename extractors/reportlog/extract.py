"""Failed and unfinished tests from the JSON lines that pytest-reportlog writes.

A line is written as soon as something is known, so the file tells of a run that died what no other report does: which
test was set up and never torn down.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from kos_retry.sdk import Answer, Request, main
from kos_retry.sdk.failures import Told, bounded, told, typed
from kos_retry.sdk.json_files import Entry, Evidence, entries, object_of, objects_of, position_of, text_of
from kos_retry.text.escapes import plain_text

MAX_TESTS = 200_000
# The phase of a report that stands for a worker that died.
CRASHED = "???"
# How a strict expected failure that passed is marked.
PASSED_STRICTLY = "[XPASS(strict)]"

# Steps of a stack that are of a library or of the runner.
FOREIGN = re.compile(r"site-packages/|dist-packages/|/lib/python\d|<frozen ")


@dataclass(slots=True)
class Test:
    """One test: its result so far, what it failed with, and whether it still runs."""

    evidence: Evidence
    result: str = "passed"
    fault: Told | None = None
    running: bool = False
    reran: bool = False


class Log:
    """Collects the tests of one report."""

    def __init__(self, request: Request) -> None:
        self.tests: dict[str, Test] = {}
        self._request = request

    def feed(self, entry: Entry) -> None:
        """Take the next line."""
        kind, name = entry.value.get("$report_type"), text_of(entry.value.get("nodeid"))
        if kind == "CollectReport" and entry.value.get("outcome") == "failed":
            self._fail(self._test(name or "collection", entry), "errored", entry)
        elif kind == "TestReport" and name:
            self._phase(self._test(name, entry), entry)
        elif kind == "SubTestReport" and name and entry.value.get("outcome") == "failed":
            self._fail(self._test(name, entry), "failed", entry)

    def _test(self, name: str, entry: Entry) -> Test:
        if name not in self.tests and len(self.tests) >= MAX_TESTS:
            return Test(entry.evidence)
        return self.tests.setdefault(name, Test(entry.evidence))

    def _phase(self, test: Test, entry: Entry) -> None:
        phase, outcome = entry.value.get("when"), entry.value.get("outcome")
        if phase == "setup":
            # What was noted before belongs to a round that is run again.
            test.result, test.fault, test.evidence = "passed", None, entry.evidence
        test.running = phase not in ("teardown", CRASHED)
        if outcome == "rerun":
            test.reran = True
        elif outcome == "failed":
            self._fail(test, "failed" if phase in ("call", CRASHED) else "errored", entry)
        elif outcome == "skipped" and test.fault is None:
            test.result = "skipped"

    def _fail(self, test: Test, result: str, entry: Entry) -> None:
        # Of a test that fails and then cannot be torn down, the failure counts.
        if test.fault is None:
            test.result, test.evidence = result, entry.evidence
            test.fault = _told(self._request, entry.value.get("longrepr"), entry.value)


def extract(request: Request) -> Answer:
    """Answer with the tests that failed or never ended, and with how many there were of each result."""
    answer = Answer()
    for report in request.reports:
        log, is_log = Log(request), False
        for entry in entries(report):
            is_log = is_log or "$report_type" in entry.value
            log.feed(entry)
        if is_log:
            _tell(answer, log.tests)
    answer.findings = answer.findings[: request.max_findings]
    return answer


def _tell(answer: Answer, tests: dict[str, Test]) -> None:
    numbers: Counter[str] = Counter()
    for name, test in tests.items():
        path = name.partition("::")[0]
        if test.fault is not None:
            numbers[test.result] += 1
            _add(answer, name, test, test.fault)
        elif test.running:
            numbers["unfinished"] += 1
            answer.add_unfinished(name, path=path, evidence=[test.evidence])
        else:
            numbers[test.result] += 1
            numbers["flaky"] += test.reran and test.result == "passed"
    answer.count_tests(numbers)


def _add(answer: Answer, name: str, test: Test, fault: Told) -> None:
    answer.add(
        "test",
        status="failed" if test.result == "failed" else "error",
        test_id=name,
        error_type=fault.error_type,
        message=fault.message or "failed without a message",
        path=fault.path or name.partition("::")[0],
        line=fault.line,
        evidence=[test.evidence],
        confidence="exact",
    )


def _told(request: Request, longrepr: Any, report: dict[str, Any]) -> Told:
    """Read what a failure is represented by: the parts of a stack, or a text."""
    if not isinstance(longrepr, dict):
        text = plain_text(text_of(longrepr)).strip()
        if text.startswith(PASSED_STRICTLY) or "\n" not in text:
            words = bounded(text.replace(PASSED_STRICTLY, "passed unexpectedly"))
            return _at_test(Told(None, words, None, None), report)
        return told(request, "", text, FOREIGN)
    crash = object_of(longrepr.get("reprcrash"))
    steps = [
        object_of(object_of(step.get("data")).get("reprfileloc"))
        for step in objects_of(object_of(longrepr.get("reprtraceback")).get("reprentries"))
    ]
    error_type, message = typed(plain_text(text_of(crash.get("message"))))
    ended = text_of(steps[-1].get("message")) if steps else ""
    path, line = _place(request, steps or [crash])
    return _at_test(Told(error_type or ended or None, bounded(message), path, line), report)


def _place(request: Request, steps: list[dict[str, Any]]) -> tuple[str | None, int | None]:
    """Return the innermost step that is in no library."""
    for step in reversed(steps):
        path = text_of(step.get("path"))
        if path and not FOREIGN.search(path):
            return request.relative(path), position_of(step.get("lineno"))
    return None, None


def _at_test(fault: Told, report: dict[str, Any]) -> Told:
    """Return ``fault`` at the test itself where nothing else says where it is; lines count from 0 there."""
    where = report.get("location")
    if fault.path or not isinstance(where, list) or len(where) < 2:
        return fault
    return fault._replace(path=text_of(where[0]) or None, line=position_of(where[1], 1))


if __name__ == "__main__":
    main(extract)
