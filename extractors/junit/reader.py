"""Reading one report: its cases, each with the worst that is said of it, within bounds whatever the file is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from source import Source

MAX_DEPTH = 64
MAX_TEXT_CHARS = 64 * 1024
MAX_CASES = 200_000
# One tag with its attributes: the parser starts over on it with every piece that it gets.
MAX_TAG_BYTES = 4 * 1024 * 1024

ROOTS = frozenset({"testsuites", "testsuite"})
# What makes a case fail.
FAULTS = {"failure": "failed", "error": "errored", "rerunFailure": "failed", "rerunError": "errored"}
# What a case failed with before it passed.
FLAKY = frozenset({"flakyFailure", "flakyError"})
SKIPS = frozenset({"skipped", "disabled"})
# Where a tool says with an attribute of the case that it was not run.
NOT_RUN = frozenset({"notrun", "disabled", "skipped", "ignored", "suppressed"})
RANKS = {"passed": 0, "skipped": 1, "failed": 2, "errored": 3}


class RefusedReportError(Exception):
    """A report that is not read at all: it brings a document type definition."""


class _EnoughError(Exception):
    """A bound is reached; what was read stays."""


@dataclass(slots=True)
class Fault:
    """One failure, error or rerun element of a case: where it stands and what it says."""

    status: str
    attributes: dict[str, str]
    start: int
    end: int
    text: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Case:
    """One test case, or a suite that failed as a whole.

    ``flaky`` where it passed after it had failed, ``again`` where another one of its name passed after it had failed: it was
    run again, or it is another test. ``told_by_output`` where all that a tool says of a failure is the output; ``joint`` is
    what stands between class and name where the tool is one that says so.
    """

    classname: str
    name: str
    suite: str
    file: str
    line: int | None
    tool: str
    status: str = "passed"
    fault: Fault | None = None
    output: str = ""
    flaky: bool = False
    again: bool = False
    told_by_output: bool = False
    joint: str = ""


# Most cases passed; of those only the name is needed.
_WITHOUT_FAULT = {
    (status, flaky): Case("", "", "", "", None, "", status, flaky=flaky)
    for status in ("passed", "skipped")
    for flaky in (False, True)
}


class Reader:
    """Collects the cases of one report; of equal ones the worst stays. ``found`` is whether it is one at all."""

    def __init__(self) -> None:
        self.cases: dict[tuple[str, str], Case] = {}
        self.found = False
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._data
        self._path: list[str] = []
        self._suites: list[dict[str, str]] = []
        self._case: Case | None = None
        self._fault: Fault | None = None
        self._room = 0
        self._skipped = 0
        self._opened = 0
        self._fed = 0

    def read(self, path: str) -> dict[tuple[str, str], Case]:
        """Return the cases of the report at ``path``, those before the damage where it is cut off or broken."""
        try:
            with open(path, "rb") as report:
                source = Source(report)
                for chunk in source.chunks():
                    self._skipped = source.skipped
                    self._feed(chunk)
                self._parser.Parse(b"", True)
        # expat answers an unknown or a multi-byte encoding with LookupError and ValueError.
        except (expat.ExpatError, _EnoughError, LookupError, ValueError):
            pass
        if self._case is not None and self._case.fault is not None:
            self._close_case()
        return self.cases

    def _feed(self, chunk: bytes) -> None:
        self._parser.Parse(chunk, False)
        self._fed += len(chunk)
        if self._fed - self._parser.CurrentByteIndex > MAX_TAG_BYTES:
            raise _EnoughError

    def _doctype(self, *_: Any) -> None:
        raise RefusedReportError("the report has a document type definition, which no test tool writes")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        if (not self._path and tag not in ROOTS) or len(self._path) >= MAX_DEPTH:
            raise _EnoughError
        self._path.append(tag)
        if tag in ROOTS:
            self.found = True
            self._suites.append(attributes)
        elif tag == "testcase":
            self._open_case(attributes)
        elif tag in FAULTS:
            self._open_fault(tag, attributes)
        elif tag in SKIPS and self._case:
            self._case.status = max(self._case.status, "skipped", key=RANKS.__getitem__)
        elif tag in FLAKY and self._case:
            self._case.flaky = True
        elif tag in ("system-out", "system-err", "stackTrace"):
            self._room = MAX_TEXT_CHARS

    def _open_case(self, attributes: dict[str, str]) -> None:
        self._close_case()
        self._opened += 1
        if self._opened > MAX_CASES:
            raise _EnoughError
        line, status = attributes.get("line", ""), attributes.get("status", "").lower()
        self._case = Case(
            classname=attributes.get("classname") or attributes.get("class") or "",
            name=attributes.get("name", ""),
            suite=self._of_suites("name"),
            file=attributes.get("file") or attributes.get("filepath") or self._of_suites("file"),
            line=int(line) if line.isascii() and line.isdigit() and len(line) < 10 else None,
            tool="pytest" if self._is_pytest() else "",
            status="skipped" if status in NOT_RUN else "passed",
            told_by_output=status == "fail",
            joint="::" if "class" in attributes else "",
        )

    def _open_fault(self, tag: str, attributes: dict[str, str]) -> None:
        start = self._skipped + self._parser.CurrentByteIndex
        if self._case is None:
            self._case = Case("", self._of_suites("name"), "", self._of_suites("file"), None, "")
        self._fault = Fault(FAULTS[tag], attributes, start, start)
        self._room = MAX_TEXT_CHARS
        case = self._case
        if case.fault is None or RANKS[self._fault.status] > RANKS[case.fault.status]:
            case.fault, case.status = self._fault, self._fault.status

    def _data(self, text: str) -> None:
        if self._case is None or self._room <= 0 or not self._path:
            return
        text = text[: self._room]
        if self._path[-1] in ("system-out", "system-err"):
            self._case.output += text
        elif self._fault is not None:
            self._fault.text.append(text)
        else:
            return
        self._room -= len(text)

    def _end(self, tag: str) -> None:
        tag = self._path.pop()
        if tag == "testcase":
            self._close_case()
        elif tag in FAULTS and self._fault is not None:
            self._fault.end = self._skipped + self._parser.CurrentByteIndex
            self._fault = None
            if "testcase" not in self._path:
                self._close_case()
        elif tag in ROOTS:
            self._suites.pop()

    def _close_case(self) -> None:
        case, self._case, self._fault = self._case, None, None
        if case is None:
            return
        name = (case.classname, case.name)
        known = self.cases.get(name)
        if known is None or RANKS[case.status] > RANKS[known.status]:
            self.cases[name] = case if case.fault else _WITHOUT_FAULT[case.status, case.flaky]
        elif known.fault is not None and case.status == "passed":
            known.again = True

    def _of_suites(self, key: str) -> str:
        return next((suite[key] for suite in reversed(self._suites) if suite.get(key)), "")

    def _is_pytest(self) -> bool:
        return any(suite.get("name") in ("pytest", "pytest tests") for suite in self._suites)
