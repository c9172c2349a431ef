"""Failed tests in the console output of JUnit's own runners: the platform's console, and that of JUnit 4.

Tests get the names that the XML reports give them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kos_retry.sdk import Answer, Line, Request, main
from kos_retry.sdk.failures import FailedTest

MESSAGE_LINES = 8
MAX_KEPT = 5000

_FAILURES = re.compile(r"^(?:Failures \(\d{1,9}\):|There (?:was|were) \d{1,9} (?:failures?|errors?):)$")
_END = re.compile(r"^(?:Test run finished after \d{1,12} ms|FAILURES!!!|Tests run: .{0,100})$")
_METHOD = re.compile(
    r"^ {4}MethodSource \[className = '(?P<of>[^']{1,400})', methodName = '(?P<method>[^']{1,300})', methodParameterTypes = '(?P<types>[^']{0,1000})'\]$"
)
_CLASS = re.compile(r"^ {4}ClassSource \[className = '(?P<of>[^']{1,400})'.{0,400}\]$")
# The display name above; of a parameterised test it ends in the number of the invocation.
_DISPLAY = re.compile(r"^ {2}\S.{0,1000}$")
_NUMBER = re.compile(r":\[(\d{1,9})\](?: |$)")
_ARROW = re.compile(r"^ {4}=> (?P<thrown>.*)$")
_JUNIT4 = re.compile(r"^\d{1,6}\) (?:(?P<method>[^(\s]{1,300})\((?P<of>[\w.$]{1,400})\)|(?P<class>[\w.$]{1,400}))$")
_THROWN = re.compile(r"^(?P<type>[A-Za-z_$][\w$]{0,120}(?:\.[\w$]{1,120}){0,16})(?:: ?(?P<said>.*))?$")
_FRAME = re.compile(
    r"^(?:\tat | {7})(?:[\w.@-]{0,200}/){0,2}(?P<call>[\w$.<>]{1,600})\((?:(?P<file>[\w$.-]{1,200}):(?P<line>\d{1,9})|Native Method|Unknown Source)\)$"
)
_FOREIGN = re.compile(
    r"^(?:java|javax|jdk|sun|com\.sun|kotlin|scala|groovy|junit|org\.(?:junit|opentest4j|assertj|hamcrest|mockito))\."
)
_COUNT = re.compile(r"^\[ {0,12}(?P<count>\d{1,9}) tests (?P<what>successful|failed|skipped|aborted) {0,12}\]$")
_COUNTED = {"successful": "passed", "failed": "failed", "skipped": "skipped", "aborted": "skipped"}


@dataclass(slots=True)
class Test(FailedTest):
    """A test that failed, and how far it was read."""

    # Whether what was thrown is to come, is being read, or has a stack below.
    state: str = "named"


class Reader:
    """Collects the failed tests of one stream, and how many there were of each result."""

    def __init__(self) -> None:
        self.tests: dict[str, Test] = {}
        self.totals: dict[str, int] = {}
        self._listing = False
        self._display = ""
        self._open: Test | None = None

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text.rstrip()
        if _FAILURES.match(text):
            self._listing = True
        elif _END.match(text):
            self._listing, self._open = False, None
        elif count := _COUNT.match(text):
            result = _COUNTED[count["what"]]
            self.totals[result] = self.totals.get(result, 0) + int(count["count"])
        elif not self._listing:
            return
        elif name := self._name(text):
            self._open = Test(name, line, line)
            if len(self.tests) < MAX_KEPT:
                self.tests.setdefault(name, self._open)
        elif self._open is not None:
            _add_line(self._open, text, line)
        if _DISPLAY.match(text):
            self._display = text

    def _name(self, text: str) -> str:
        """Return the name of the test that the line heads, or nothing."""
        if method := _METHOD.match(text):
            types = ", ".join(part.strip().rpartition(".")[2] for part in method["types"].split(","))
            number = _NUMBER.search(self._display)
            return f"{method['of']}.{method['method']}({types})" + (f"[{number[1]}]" if number else "")
        if of := _CLASS.match(text):
            return of["of"]
        old = _JUNIT4.match(text)
        if old is None:
            return ""
        return f"{old['of']}.{old['method']}" if old["method"] else old["class"]


def _add_line(test: Test, text: str, line: Line) -> None:
    """Read a line below a test."""
    if frame := _FRAME.match(text):
        test.at(frame, line, _FOREIGN)
        test.state = "framed"
    elif test.state == "named":
        arrow = _ARROW.match(text)
        thrown = _THROWN.match(arrow["thrown"] if arrow else text)
        if thrown:
            test.type, test.last, test.state = thrown["type"], line, "thrown"
            test.said = [thrown["said"]] if thrown["said"] else []
    elif test.state == "thrown" and text and len(test.said) < MESSAGE_LINES:
        test.said.append(text.strip())
        test.last = line


def extract(request: Request) -> Answer:
    """Answer with the failed tests in the order in which they were printed."""
    readers = request.read(Reader)
    answer = Answer()
    for test in (test for reader in readers.values() for test in reader.tests.values()):
        if len(answer.findings) < request.max_findings:
            test.add_to(answer)
    answer.totals = next((reader.totals for reader in readers.values() if reader.totals), None)
    return answer


if __name__ == "__main__":
    main(extract)
