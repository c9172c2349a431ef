"""Failed tests in the console output of Maven Surefire and Failsafe.

A test is told with its own stack where the output has it, else from the summary at the end. What passed when it was
run again is no failure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kos_retry.sdk import Answer, Line, Request, Watch, main, span
from kos_retry.sdk.failures import FailedTest

MESSAGE_LINES = 8
MAX_KEPT = 5000

_LEVEL = re.compile(r"^\[(?:ERROR|WARNING|INFO)\] ?")
_TEST = re.compile(
    r"^(?!Tests run: )(?P<name>\S.{0,400}?) {1,2}(?:-- )?Time elapsed: [\d.,]{1,16} s(?:ec)? {1,2}<<< (?P<how>FAILURE|ERROR)!$"
)
_SECTION = re.compile(
    r"^(?P<which>Failures|Errors|Failed tests|Tests in error|Flakes|Flaked tests): {0,4}(?P<first>.*)$"
)
_TOTALS = re.compile(
    r"^Tests run: (\d{1,9}), Failures: (\d{1,9}), Errors: (\d{1,9}), Skipped: (\d{1,9})(?:, Flakes: \d{1,9})?$"
)
# `method(package.Class)`, as it was before JUnit 5; with parameters `method[1](package.Class)`.
_OLD_NAME = re.compile(
    r"(?P<method>[^.(\[\s]{1,200}(?:\[.{0,100}?\])?)\((?P<of>(?:[\w$]{1,100}\.){0,16}[A-Z][\w$]{0,100})\)"
)
_PROSE_NAME = re.compile(r"^(?P<of>(?:[\w$]{1,100}\.){0,16}[A-Z][\w$]{0,100})\.(?P<method>.{0,300} .{0,300})$")
_OLD_ENTRY = re.compile(rf"^ {{0,4}}{_OLD_NAME.pattern}(?::? (?P<said>.*))?$")
_ENTRY = re.compile(
    r"^ {0,4}(?P<of>[\w$]{1,100}(?:\.[\w$]{1,100}){0,16})(?:>[\w$]{1,100})?\.(?P<method>[\w$]{1,200}(?:\(.{0,100}?\))?(?:\[.{0,100}?\])?)"
    r"(?P<calls>(?::\d{1,9})?(?:->[\w$.<>]{1,200}(?::\d{1,9})?){0,8})(?: [»?]{1,2}| )?(?P<said>.{0,2000})$"
)
_THROWN = re.compile(
    r"^(?P<type>(?:[\w$]{1,100}\.){1,16}[\w$]{1,100}|[\w$]{0,100}(?:Error|Exception|Failure))(?::(?: (?P<said>.*)|))?$"
)
_FRAME = re.compile(
    r"^[ \t]{1,8}at (?:[\w.@-]{0,200}/){0,2}(?P<call>[\w$.<>]{1,600})\((?P<file>[\w$.-]{1,200}):(?P<line>\d{1,9})\)"
)
_FOREIGN = re.compile(
    r"^(?:java|javax|jdk|sun|com\.sun|kotlin|scala|groovy|junit|org\.(?:junit|opentest4j|assertj|hamcrest|mockito|testng|apache\.maven))\."
)
_FORK = re.compile(r"The forked VM terminated without (?:properly )?saying (?:properly )?goodbye")
_EXIT = re.compile(r"^Process Exit Code: (\d{1,9})$")
_CLASS = re.compile(r"^(?:[\w$]{1,100}\.){0,16}[A-Z][\w$]{0,100}$")


@dataclass(slots=True)
class Test(FailedTest):
    """A test that failed, and whether its stack has begun."""

    framed: bool = False


class Reader:
    """Collects the tests of one stream: those told with a stack, those of the summary, and those that flaked."""

    def __init__(self) -> None:
        self.tests: dict[str, Test] = {}
        self.summed: dict[str, Test] = {}
        self.flaked: set[str] = set()
        self.fork: tuple[Line, str] | None = None
        self.crashed: dict[str, Line] = {}
        self.totals = [0, 0, 0, 0]
        self._open: Test | None = None
        self._section = ""
        self._watch = Watch(_LEVEL, _TEST, _SECTION, _TOTALS, _FORK, re.compile("^Crashed tests:$"))

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        idle = self._open is None and not self._section and self.fork is None
        if idle and not self._watch.sees(line):
            return
        text = _LEVEL.sub("", line.text).rstrip()
        if "<<< " in text and (test := _TEST.match(text)):
            self._start(test, line)
        elif self._section and self._in_section(text, line):
            return
        elif section := _SECTION.match(text):
            self._section, self._open = section["which"], None
            self._entry(section["first"], line)
        elif _FORK.search(text):
            self.fork = self.fork or (line, "")
        elif self.fork is not None and (code := _EXIT.match(text)):
            self.fork = (self.fork[0], code[1])
        elif text == "Crashed tests:":
            self._section, self._open = "Crashed", None
        elif self._open is not None:
            self._open = self._open if _add_line(self._open, line) else None
        if totals := _TOTALS.match(text):
            self.totals = [total + int(more) for total, more in zip(self.totals, totals.groups(), strict=True)]

    def _start(self, found: re.Match[str], line: Line) -> None:
        status = "failed" if found["how"] == "FAILURE" else "error"
        self._section = ""
        self._open = Test(_name(found["name"]), line, line, status)
        if len(self.tests) < MAX_KEPT:
            # Of a test that was run again the last run counts.
            self.tests[self._open.name] = self._open

    def _in_section(self, text: str, line: Line) -> bool:
        """Read a line of the summary; return whether it is one."""
        if self._section == "Crashed":
            if _CLASS.match(text):
                self.crashed.setdefault(text, line)
                return True
            self._section = ""
            return False
        if text.startswith("Tests run: ") or _SECTION.match(text):
            self._section = ""
            return False
        self._entry(text, line)
        return True

    def _entry(self, text: str, line: Line) -> None:
        if text.lstrip().startswith("Run ") or not text:
            return
        entry = _OLD_ENTRY.match(text) or _ENTRY.match(text)
        if entry is None:
            return
        name = f"{entry['of']}.{entry['method']}"
        if self._section.startswith("Flake"):
            self.flaked.add(name)
        elif len(self.summed) < MAX_KEPT:
            status = "failed" if self._section.startswith("Fail") else "error"
            said = (entry["said"] or "").strip()
            self.summed.setdefault(name, Test(name, line, line, status, said=[said] if said else []))


def _name(printed: str) -> str:
    """Return a test's name as the reports have it."""
    if old := _OLD_NAME.fullmatch(printed):
        return f"{old['of']}.{old['method']}"
    prose = _PROSE_NAME.match(printed)
    return f"{prose['of']} > {prose['method']}" if prose else printed


def _add_line(test: Test, line: Line) -> bool:
    """Read a line below a test; return whether more may follow."""
    text = line.text.rstrip()
    if frame := _FRAME.match(text):
        test.at(frame, line, _FOREIGN)
        test.framed = True
        return True
    if text.startswith(("\t", "Caused by: ")):
        test.framed = True
        return True
    if test.framed or text.startswith("[") or (not text and (test.said or test.type)):
        return False
    if test.type is None and not test.said and (thrown := _THROWN.match(text)):
        test.type, text = thrown["type"], thrown["said"] or ""
    if text.strip() and len(test.said) < MESSAGE_LINES:
        test.said.append(text.strip())
    test.last = line
    return True


def extract(request: Request) -> Answer:
    """Answer with the failed tests in their order, then with what became of a virtual machine that ran some."""
    readers = request.read(Reader)
    answer = Answer()
    for reader in readers.values():
        for test in _failed(reader):
            test.add_to(answer)
        _add_fork(answer, reader)
        _add_totals(answer, reader)
    answer.findings = answer.findings[: request.max_findings]
    return answer


def _failed(reader: Reader) -> list[Test]:
    told = [test for name, test in reader.tests.items() if name not in reader.flaked]
    known = {_stem(test.name) for test in reader.tests.values()}
    classes = {test.name.rpartition(".")[2] for test in told}
    summed = [
        test for name, test in reader.summed.items() if _stem(name) not in known and _stem(name)[0] not in classes
    ]
    return told + summed


def _stem(name: str) -> tuple[str, str]:
    """Return class and method without package, parameters and number: what the summary has of a name."""
    of, _, method = re.split(r"[(\[]", name.replace(" > ", "."), maxsplit=1)[0].rpartition(".")
    return of.rpartition(".")[2], method


def _add_totals(answer: Answer, reader: Reader) -> None:
    run, failed, errored, skipped = reader.totals
    if run:
        passed = max(0, run - failed - errored - skipped)
        answer.totals = {"passed": passed, "failed": failed, "errored": errored, "skipped": skipped}


def _add_fork(answer: Answer, reader: Reader) -> None:
    if reader.fork is None:
        return
    line, code = reader.fork
    message = "the forked virtual machine ended without a word" + (f", with code {code}" if code else "")
    for name, where in reader.crashed.items():
        answer.add("test", status="error", test_id=name, message=message, evidence=[span(where)])
    if not reader.crashed:
        answer.add("crash", code="forked virtual machine ended", message=message, evidence=[span(line)])


if __name__ == "__main__":
    main(extract)
