"""Failed tests in the console output of Gradle.

Where there are reports of the tests, those name them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kos_retry.sdk import Answer, Line, Request, main
from kos_retry.sdk.failures import FailedTest

MESSAGE_LINES = 8
MAX_KEPT = 5000

_TEST = re.compile(
    r"^(?!> Task )(?:Gradle Test (?:Run|Executor) \S{1,100} > ){0,2}(?P<name>[^\s>].{0,300}? > .{1,300}) FAILED$"
)
_THROWN = re.compile(
    r"^ {4}(?P<type>[A-Za-z_$][\w$]{0,120}(?:\.[\w$]{1,120}){0,16})(?: at (?P<file>[\w$.-]{1,200}):(?P<line>\d{1,9})|: ?(?P<said>.*))?$"
)
_FRAME = re.compile(
    r"^ {8}at (?:[\w.@-]{0,200}/){0,2}(?P<call>[\w$.<>]{1,600})\((?P<file>[\w$.-]{1,200}):(?P<line>\d{1,9})\)"
)
_FOREIGN = re.compile(
    r"^(?:java|javax|jdk|sun|com\.sun|kotlin|scala|groovy|junit|org\.(?:junit|opentest4j|assertj|hamcrest|mockito|testng|gradle|codehaus\.groovy))\."
)


@dataclass(slots=True)
class Test(FailedTest):
    """A test that failed, and whether its stack has begun."""

    framed: bool = False


class Reader:
    """Collects the failed tests of one stream."""

    def __init__(self) -> None:
        self.tests: dict[str, Test] = {}
        self._open: Test | None = None

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text.rstrip()
        if test := _TEST.match(text) if text.endswith(" FAILED") else None:
            self._open = Test(test["name"], line, line)
            if len(self.tests) < MAX_KEPT:
                self.tests.setdefault(self._open.name, self._open)
        elif self._open is not None and not _add_to_test(self._open, text, line):
            self._open = None


def _add_to_test(test: Test, text: str, line: Line) -> bool:
    """Read a line below a test; return whether more may follow."""
    if frame := _FRAME.match(text):
        test.at(frame, line, _FOREIGN)
        test.framed = True
    elif test.type is None and not test.said and (thrown := _THROWN.match(text)):
        test.type, test.last = thrown["type"], line
        test.said = [thrown["said"]] if thrown["said"] else []
        if thrown["file"]:
            test.path, test.line, test.framed = thrown["file"], int(thrown["line"]), True
    elif text.startswith("        at "):
        test.framed = True
    elif text.startswith("    ") and not test.framed and len(test.said) < MESSAGE_LINES:
        test.said.append(text.strip())
        test.last = line
    return text.startswith("    ")


def extract(request: Request) -> Answer:
    """Answer with the failed tests in the order in which they were printed."""
    answer = Answer()
    if request.reports:
        return answer
    readers = request.read(Reader)
    tests = [test for reader in readers.values() for test in reader.tests.values()]
    for test in tests[: request.max_findings]:
        test.add_to(answer)
    return answer


if __name__ == "__main__":
    main(extract)
