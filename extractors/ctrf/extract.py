"""Failed tests from reports in the Common Test Report Format (JSON)."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from kos_retry.sdk import Answer, Request, main
from kos_retry.sdk.failures import told
from kos_retry.sdk.json_files import Evidence, Torn, document, object_of, objects_of, position_of, text_of
from kos_retry.text.escapes import plain_text

MAX_SUITES = 16
# What tools join the names of suites and tests with where they print them.
JOINTS = {"jest": " › ", "playwright": " › "}
JOINT = " > "
RESULTS = {"passed": "passed", "failed": "failed", "skipped": "skipped", "pending": "skipped"}
# What the tool itself called a result that the format has no word for.
RAW_ERRORS = frozenset({"error", "errored", "broken", "crashed", "timedout", "timeout", "interrupted", "aborted"})
RAW_UNFINISHED = frozenset({"started", "running", "inprogress", "unfinished", "incomplete"})
# What tells a test that could not be set up or torn down from one that failed.
RAW_OUTSIDE = ("setup", "teardown", "error", "broken")

# Lines of a stack that are of a library or of the runner.
FOREIGN = re.compile(
    r"node_modules/|node:|site-packages/|dist-packages/|/lib/python\d|/gems/|/lib/ruby/|vendor/|<frozen |<internal:"
    r"|\bat (?:java|javax|jdk|sun|kotlin|scala|junit|org\.(?:junit|opentest4j|assertj|hamcrest|mockito))\b"
)


def extract(request: Request) -> Answer:
    """Answer with the failed tests of all reports, and with how many there were of each result."""
    answer = Answer()
    for report in request.reports:
        value, evidence = document(report)
        results = object_of(object_of(value).get("results"))
        if isinstance(results.get("tests"), list) and _is_ctrf(value, results):
            _read(answer, request, results, evidence)
    answer.findings = answer.findings[: request.max_findings]
    return answer


def _is_ctrf(value: dict[str, Any], results: dict[str, Any]) -> bool:
    return value.get("reportFormat") == "CTRF" or ("tool" in results and "summary" in results)


def _read(answer: Answer, request: Request, results: dict[str, Any], evidence: Evidence) -> None:
    tool = text_of(object_of(results.get("tool")).get("name")).lower()
    numbers: Counter[str] = Counter()
    for test in objects_of(results["tests"]):
        result = _result(test)
        numbers[result] += 1
        if result == "passed" and test.get("flaky") is True:
            numbers["flaky"] += 1
        elif result in ("failed", "errored", "unfinished"):
            _add(answer, request, test, result, tool, evidence)
    # Some list only what failed.
    summary = object_of(results.get("summary"))
    if not isinstance(results, Torn):
        numbers["passed"] = max(numbers["passed"], position_of(summary.get("passed")) or 0)
    answer.count_tests(numbers)


def _result(test: dict[str, Any]) -> str:
    raw = text_of(test.get("rawStatus")).lower().replace("-", "").replace("_", "").replace(" ", "")
    result = RESULTS.get(text_of(test.get("status")).lower())
    if result == "failed" and raw.startswith(RAW_OUTSIDE):
        return "errored"
    if result is not None:
        return result
    if raw in RAW_UNFINISHED:
        return "unfinished"
    return "errored" if raw in RAW_ERRORS else "skipped"


def _add(answer: Answer, request: Request, test: dict[str, Any], result: str, tool: str, evidence: Evidence) -> None:
    name = _name(test, tool)
    said = told(request, text_of(test.get("message")), text_of(test.get("trace")), FOREIGN)
    file = text_of(test.get("filePath"))
    path = said.path or (request.relative(file) if file else None)
    line = said.line if said.path else position_of(test.get("line"))
    if result == "unfinished":
        answer.add_unfinished(name, path=path, line=line, evidence=[evidence])
    elif name or said.message:
        answer.add(
            "test",
            status="failed" if result == "failed" else "error",
            test_id=name or None,
            error_type=said.error_type,
            message=said.message or "failed without a message",
            path=path,
            line=line,
            evidence=[evidence],
            confidence="exact",
        )


def _name(test: dict[str, Any], tool: str) -> str:
    """Return the name under which the tool itself prints a test, as far as that is known.

    The name of a test repeats those of its suites with some tools, and with some it does not.
    """
    name = plain_text(text_of(test.get("name"))).strip()
    suites = test.get("suite")
    suites = suites if isinstance(suites, list) else text_of(suites).split(JOINT, MAX_SUITES)
    file = text_of(test.get("filePath"))
    parts = [part for suite in suites[:MAX_SUITES] if (part := text_of(suite).strip()) and not file.endswith(part)]
    lead = " ".join(parts) + " "
    if "::" in name or not parts or name.startswith(JOINT.join(parts) + JOINT):
        return name
    return JOINTS.get(tool, JOINT).join([*parts, name.removeprefix(lead)])


if __name__ == "__main__":
    main(extract)
