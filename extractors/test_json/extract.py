"""Failed tests from the JSON that test runners write, in reports or on a stream.

Three shapes: that of jest, which vitest writes too, that of mocha and that of rspec. Tests are named as the runner itself
prints them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from kos_retry.sdk import Answer, Request, main
from kos_retry.sdk.failures import TYPED, Told, told
from kos_retry.sdk.json_files import Evidence, document, embedded, object_of, objects_of, position_of, text_of
from kos_retry.text.bounds import cut_bytes
from kos_retry.text.escapes import plain_text

MAX_TITLES = 32
MAX_NAME_BYTES = 400
RESULTS = {"passed": "passed", "failed": "failed"}
# The heading over why a file of tests could not be loaded.
NOT_LOADED = "● Test suite failed to run"

# Lines of a stack that are of a library or of the runner.
FOREIGN = re.compile(r"node_modules/|node:|/gems/|/lib/ruby/|<internal:")


@dataclass(slots=True)
class Test:
    """One test, or a file of tests that could not be loaded; ``file`` is what tells equal names apart."""

    name: str
    result: str
    file: str = ""
    joint: str = ""
    message: str = ""
    trace: str = ""
    line: int | None = None
    flaky: bool = False
    loaded: bool = True


Shape = Callable[[Request, dict[str, Any]], Iterator[Test]]


def extract(request: Request) -> Answer:
    """Answer with the failed tests of all reports and streams, and with how many there were of each result."""
    answer = Answer()
    for value, evidence in (*(document(report) for report in request.reports), *embedded(request)):
        shape = _shape(object_of(value))
        if shape is not None:
            _tell(answer, request, list(shape(request, value)), evidence)
    answer.findings = answer.findings[: request.max_findings]
    return answer


def _shape(value: dict[str, Any]) -> Shape | None:
    if "testResults" in value and "numTotalTests" in value:
        return _of_jest
    if "stats" in value and isinstance(value.get("tests"), list):
        return _of_mocha
    return _of_rspec if isinstance(value.get("examples"), list) and "version" in value else None


def _of_jest(request: Request, value: dict[str, Any]) -> Iterator[Test]:
    # vitest names the file of every test.
    joint, vitest = (" › ", False) if "numRuntimeErrorTestSuites" in value else (" > ", True)
    for suite in objects_of(value.get("testResults")):
        file = request.relative(text_of(suite.get("name")))
        tests = objects_of(suite.get("assertionResults"))
        for test in tests:
            titles = test.get("ancestorTitles")
            titles = titles[:MAX_TITLES] if isinstance(titles, list) else []
            names = [file] if vitest else []
            messages = test.get("failureMessages")
            yield Test(
                name=joint.join([*names, *map(text_of, titles), text_of(test.get("title"))]),
                result=RESULTS.get(text_of(test.get("status")), "skipped"),
                file="" if vitest else file,
                joint=joint,
                trace=text_of(messages[0]) if isinstance(messages, list) and messages else "",
                line=position_of(object_of(test.get("location")).get("line")),
                flaky=(position_of(test.get("invocations")) or 1) > 1,
            )
        if suite.get("status") == "failed" and not any(test.get("status") == "failed" for test in tests):
            said = plain_text(text_of(suite.get("message"))).strip().removeprefix(NOT_LOADED).strip()
            yield Test(file, "errored", file, "" if vitest else ": ", _unindented(said), said, loaded=False)


def _of_mocha(request: Request, value: dict[str, Any]) -> Iterator[Test]:
    pending = {text_of(test.get("fullTitle")) for test in objects_of(value.get("pending"))}
    for test in objects_of(value["tests"]):
        title, whole, error = text_of(test.get("title")), text_of(test.get("fullTitle")), object_of(test.get("err"))
        suite = whole.removesuffix(title).strip()
        trace = text_of(error.get("stack")) or text_of(error.get("message"))
        passed = "skipped" if whole in pending else "passed"
        yield Test(
            name=f"{suite} > {title}" if suite else title,
            result="failed" if error else passed,
            file=request.relative(text_of(test.get("file"))),
            joint=" > ",
            trace=trace,
            flaky=bool(test.get("currentRetry")),
        )


def _of_rspec(request: Request, value: dict[str, Any]) -> Iterator[Test]:
    for example in objects_of(value["examples"]):
        error, frames = object_of(example.get("exception")), object_of(example.get("exception")).get("backtrace")
        frames = [text_of(frame) for frame in frames] if isinstance(frames, list) else []
        yield Test(
            name=text_of(example.get("full_description")),
            result=RESULTS.get(text_of(example.get("status")), "skipped"),
            file=request.relative(text_of(example.get("file_path"))),
            joint=": ",
            message=f"{text_of(error.get('class'))}: {text_of(error.get('message')).strip()}" if error else "",
            trace="\n".join(frames),
            line=position_of(example.get("line_number")),
        )
    if position_of(object_of(value.get("summary")).get("errors_outside_of_examples_count")):
        messages = value.get("messages")
        for said in messages if isinstance(messages, list) else []:
            yield from _outside(plain_text(text_of(said)).strip())


def _outside(said: str) -> Iterator[Test]:
    """Yield an error outside of all examples: a file that cannot be loaded, a hook that fails."""
    first = said.partition("\n")[0].partition(" - Did you mean")[0].removesuffix(".")
    if typed := TYPED.search(said):
        yield Test(first, "errored", message=said[typed.start() :].partition("\n# ")[0], trace=said, loaded=False)


def _tell(answer: Answer, request: Request, tests: list[Test], evidence: Evidence) -> None:
    numbers = Counter(test.result for test in tests)
    numbers["flaky"] = sum(test.flaky for test in tests if test.result == "passed")
    answer.count_tests(numbers)
    failed = [test for test in tests if test.result in ("failed", "errored") and test.name]
    times = Counter(test.name for test in failed)
    for test in failed[: request.max_findings]:
        _add(answer, test, told(request, test.message, test.trace, FOREIGN), times[test.name] > 1, evidence)


def _add(answer: Answer, test: Test, said: Told, again: bool, evidence: Evidence) -> None:
    name = plain_text(test.name)
    if not test.loaded and test.joint:
        name = f"{name}{test.joint}{said.message.partition(chr(10))[0]}"
    elif again and test.file:
        name = f"{test.file}{test.joint}{name}"
    answer.add(
        "test" if test.loaded else "diagnostic",
        status="failed" if test.result == "failed" else "error",
        test_id=cut_bytes(name, MAX_NAME_BYTES),
        error_type=said.error_type,
        message=said.message or "failed without a message",
        path=said.path or test.file or None,
        line=said.line if said.path else test.line,
        evidence=[evidence],
        confidence="exact",
    )


def _unindented(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines())


if __name__ == "__main__":
    main(extract)
