"""Failed tests from JUnit XML reports.

There is no schema, only dialects. What counts is read from the cases themselves, since the counts on the
suites are often wrong. The reader is a bare expat parser with bounds: a report is data from a stranger.
"""

from __future__ import annotations

from collections import Counter

from reader import Case, Fault, Reader
from sayings import location_of, texts_of, told_by
from test_ids import test_id

from kos_retry.sdk import Answer, Request, main


def extract(request: Request) -> Answer:
    """Answer with the failed cases of all reports, and with how many cases there were of each result."""
    answer = Answer()
    for report in request.reports:
        reader = Reader()
        numbers: Counter[str] = Counter()
        for case in reader.read(report.path).values():
            # A run that passed does not hold against a test that it failed the first time.
            passed = case.again and request.exit_code == 0
            numbers["passed" if passed else case.status] += 1
            numbers["flaky"] += passed or (case.flaky and case.status == "passed")
            if case.fault is not None and not passed and len(answer.findings) < request.max_findings:
                _add(answer, request, case, case.fault, f"report:{report.name}")
        if reader.found:
            answer.count_tests(numbers)
    return answer


def _add(answer: Answer, request: Request, case: Case, fault: Fault, source: str) -> None:
    said, text = texts_of(fault)
    error_type, message = told_by(case, fault, said, text)
    path, line = location_of(request, case, text)
    answer.add(
        "test",
        status="failed" if fault.status == "failed" else "error",
        test_id=test_id(request, case, text) or None,
        error_type=error_type,
        message=message or "failed without a message",
        path=path,
        line=line,
        evidence=[{"source": source, "start": fault.start, "end": max(fault.start, fault.end)}],
        confidence="exact",
    )


if __name__ == "__main__":
    main(extract)
