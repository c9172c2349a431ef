"""Failed tests from JUnit XML reports.

There is no schema, only dialects. What counts is read from the cases themselves, since the counts on the
suites are often wrong. The reader is a bare expat parser with bounds: a report is data from a stranger.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from kos_retry.sdk import Answer, Request, main
from kos_retry.text.bounds import cut_bytes
from kos_retry.text.escapes import plain_text

MAX_DEPTH = 64
MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_TEXT_CHARS = 64 * 1024
MAX_CASES = 200_000
CHUNK_BYTES = 64 * 1024
MAX_MESSAGE_BYTES = 2048
MESSAGE_LINES = 8
# What is looked at to place a failure: its stack begins or ends with what counts.
MAX_PLACES = 200
MAX_ENDS_CHARS = 8 * 1024
MAX_NAME_PARTS = 32
# How far before a place what it belongs to is looked for.
MAX_LEAD_CHARS = 400

ROOTS = frozenset({"testsuites", "testsuite"})
# What makes a case fail. A flaky one (flakyFailure, flakyError) passed in the end.
FAULTS = {"failure": "failed", "error": "errored", "rerunFailure": "failed", "rerunError": "errored"}
RANKS = {"passed": 0, "skipped": 1, "failed": 2, "errored": 3}

# A `type` or `message` that only repeats that the test failed.
SAYS_NOTHING = frozenset({"", "failed", "failure", "error", "testcodefailure", "collection failure", "test error"})
# A class name that is the same for every test of its tool.
NO_CLASS = frozenset({"", "test", "(empty)"})

_TYPE = re.compile(
    r"^[ \t]{0,8}(?:E {3,12})?"
    r"((?:[^\W\d][\w.$\\]{0,160})?(?:Error|Exception|ExceptionGroup|Failure|Failed))(?: \[\w{1,64}\])?(?::|$)",
    re.MULTILINE,
)
_PYTHON_END = re.compile(r"^([^\s:][^:\n]{0,400}):(\d{1,9}): ?([^\W\d][\w.]{0,160})?$", re.MULTILINE)
_PHASE = re.compile(r'^failed on (?:setup|teardown|call) with "(.*?)"?$', re.DOTALL)
_LEAF = re.compile(r"^[ |]{1,64}\| ([^\W\d][\w.]{0,160}: .{0,400})", re.MULTILINE)
_MARGIN = re.compile(r"^E {3,12}(.*)", re.MULTILINE)
# Lines of a failure's text that say nothing: a bare place, Go's own marks.
_NOISE = re.compile(r"^(?:\S{1,400}:\d{1,9}$|=== |--- FAIL)")
# Where in a stack: `File "x", line 7`, `in test file x, line 7`, `(x:7:1)`, `at x:7`, `x:7:`.
_FRAME = re.compile(
    r"""(?:[Ff]ile "?(?P<a>[^\s",]{1,400})"?, line (?P<b>\d{1,9}))"""
    r"""|(?:(?:^|[\s(\[])(?:file://)?(?P<c>[^\s()\[\]:"']{1,400}\.\w{1,6}):(?P<d>\d{1,9})\b)""",
    re.MULTILINE,
)
_FOREIGN = re.compile(
    r"node_modules/|node:|site-packages/|dist-packages/|/lib/python\d|vendor/|<frozen "
    r"|\bat (?:java|javax|jdk|sun|kotlin|scala|junit|org\.(?:junit|opentest4j|assertj|hamcrest|mockito))\b"
)


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
    """One test case, or a suite that failed as a whole."""

    classname: str
    name: str
    suite: str
    file: str
    line: int | None
    tool: str
    status: str = "passed"
    fault: Fault | None = None
    output: str = ""


_WITHOUT_FAULT = {status: Case("", "", "", "", None, "", status) for status in ("passed", "skipped")}


class Reader:
    """Collects the cases of one report; of equal ones the worst stays."""

    def __init__(self) -> None:
        self.cases: dict[tuple[str, str], Case] = {}
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

    def read(self, path: str) -> dict[tuple[str, str], Case]:
        """Return the cases of the report at ``path``, those before the damage where it is cut off or broken."""
        try:
            with open(path, "rb") as report:
                for _ in range(0, MAX_FILE_BYTES, CHUNK_BYTES):
                    chunk = report.read(CHUNK_BYTES)
                    self._parser.Parse(chunk, not chunk)
                    if not chunk:
                        break
        # expat answers an unknown or a multi-byte encoding with LookupError and ValueError.
        except (expat.ExpatError, _EnoughError, LookupError, ValueError):
            pass
        self._close_case()
        return self.cases

    def _doctype(self, *_: Any) -> None:
        raise RefusedReportError("the report has a document type definition, which no test tool writes")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        if (not self._path and tag not in ROOTS) or len(self._path) >= MAX_DEPTH:
            raise _EnoughError
        self._path.append(tag)
        if tag in ROOTS:
            self._suites.append(attributes)
        elif tag == "testcase":
            self._open_case(attributes)
        elif tag in FAULTS:
            self._open_fault(tag, attributes)
        elif tag in ("skipped", "disabled") and self._case:
            self._case.status = max(self._case.status, "skipped", key=RANKS.__getitem__)
        elif tag in ("system-out", "system-err", "stackTrace"):
            self._room = MAX_TEXT_CHARS

    def _open_case(self, attributes: dict[str, str]) -> None:
        self._close_case()
        if len(self.cases) >= MAX_CASES:
            raise _EnoughError
        line = attributes.get("line", "")
        self._case = Case(
            classname=attributes.get("classname") or attributes.get("class") or "",
            name=attributes.get("name", ""),
            suite=self._of_suites("name"),
            file=attributes.get("file") or attributes.get("filepath") or self._of_suites("file"),
            line=int(line) if line.isascii() and line.isdigit() and len(line) < 10 else None,
            tool="pytest" if self._is_pytest() else "",
        )

    def _open_fault(self, tag: str, attributes: dict[str, str]) -> None:
        start = self._parser.CurrentByteIndex
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
            self._fault.end = self._parser.CurrentByteIndex
            self._fault = None
            if "testcase" not in self._path:
                self._close_case()
        elif tag in ROOTS:
            self._suites.pop()

    def _close_case(self) -> None:
        case, self._case, self._fault = self._case, None, None
        if case is not None:
            known = self.cases.get((case.classname, case.name))
            if known is None or RANKS[case.status] > RANKS[known.status]:
                # Most cases passed; of those only the name is needed.
                self.cases[case.classname, case.name] = case if case.fault else _WITHOUT_FAULT[case.status]

    def _of_suites(self, key: str) -> str:
        return next((suite[key] for suite in reversed(self._suites) if suite.get(key)), "")

    def _is_pytest(self) -> bool:
        return any(suite.get("name") in ("pytest", "pytest tests") for suite in self._suites)


def extract(request: Request) -> Answer:
    """Answer with the failed cases of all reports, and with how many cases there were of each result."""
    answer = Answer()
    totals = dict.fromkeys(RANKS, 0)
    for report in request.reports:
        for case in Reader().read(report.path).values():
            totals[case.status] += 1
            if case.fault is not None and len(answer.findings) < request.max_findings:
                _add(answer, request, case, case.fault, f"report:{report.name}")
    if any(totals.values()):
        answer.totals = totals
    return answer


def _add(answer: Answer, request: Request, case: Case, fault: Fault, source: str) -> None:
    text = _plain(_ends("".join(fault.text)))
    said = _plain(fault.attributes.get("message", "")).strip()
    error_type = _error_type(case, fault.attributes.get("type", ""), said, text)
    message = _message(case, said, text).removeprefix(f"{error_type}: ")
    path, line = _location(request, case, text)
    answer.add(
        "test",
        status="failed" if fault.status == "failed" else "error",
        test_id=_test_id(request, case, text) or None,
        error_type=error_type,
        message=message or "failed without a message",
        path=path,
        line=line,
        evidence=[{"source": source, "start": fault.start, "end": max(fault.start, fault.end)}],
        confidence="exact",
    )


def _ends(text: str) -> str:
    return text if len(text) <= 2 * MAX_ENDS_CHARS else f"{text[:MAX_ENDS_CHARS]}\n{text[-MAX_ENDS_CHARS:]}"


def _plain(text: str) -> str:
    """Return ``text`` without terminal escapes, also those that were made printable for XML's sake."""
    return plain_text(text.replace("#x1B[", "\x1b["))


def _test_id(request: Request, case: Case, text: str) -> str:
    """Return the name under which the tool itself prints a test.

    Of pytest that is the node id. Elsewhere it is class and name joined by what the failure's own text
    joins them with, else by ``.``; a name that is prose is joined by `` > ``. Where the class says nothing
    the suite stands in for it.
    """
    classname, name = case.classname.strip(), case.name.strip()
    if case.tool == "pytest":
        return _node_id(request, case, text)
    if classname.lower() in NO_CLASS:
        classname = "" if case.suite.lower() in NO_CLASS else case.suite.strip()
    if not classname or name == classname or name.startswith(classname + " "):
        return name or classname
    if not name:
        return classname
    for joint in ("::", "#", "->", " > ", " › "):
        if f"{classname}{joint}{name}" in text:
            return f"{classname}{joint}{name}"
    return f"{classname} > {name}" if " " in name else f"{classname}.{name}"


def _node_id(request: Request, case: Case, text: str) -> str:
    """Return pytest's node id: the file from the report where it says so, else from the dotted class name."""
    if not case.classname:
        return case.file or _module_path(case.name.split(".", MAX_NAME_PARTS), text)[0]
    if case.file:
        path = request.relative(case.file)
        module = path.removesuffix(".py").replace("/", ".")
        classes = case.classname[len(module) + 1 :].split(".") if case.classname.startswith(module + ".") else []
    else:
        path, classes = _module_path(case.classname.split(".", MAX_NAME_PARTS), text)
    return "::".join([path, *classes, case.name])


def _module_path(parts: list[str], text: str) -> tuple[str, list[str]]:
    """Return the file of a dotted name and the classes in it.

    The failure's text names the file in most cases; else test files are known by their name, and classes
    by their capital.
    """
    paths = {"/".join(parts[:n]) + ".py": n for n in range(len(parts), 0, -1)}
    for path, n in paths.items():
        if f"{path}:" in text or f'{path}"' in text:
            return path, parts[n:]
    tests = [n for n, part in enumerate(parts, 1) if part.startswith("test_") or part.endswith("_test")]
    n = tests[0] if tests else len(parts)
    while not tests and n > 1 and parts[n - 1][:1].isupper():
        n -= 1
    return "/".join(parts[:n]) + ".py", parts[n:]


def _error_type(case: Case, given: str, said: str, text: str) -> str | None:
    if given.strip().lower() not in SAYS_NOTHING:
        return given.strip()
    if case.tool == "pytest" and (ends := [m[2] for m in _PYTHON_END.findall(text) if m[2]]):
        qualified = _TYPE.match(said)
        return qualified[1] if qualified and qualified[1].endswith(ends[-1]) else str(ends[-1])
    found = _TYPE.search(said) or _TYPE.search(text)
    return found[1] if found else None


def _message(case: Case, said: str, text: str) -> str:
    """Return what the report says, bounded: the attribute, else the lines of the text before any stack."""
    if phase := _PHASE.match(said):
        said = phase[1] if phase[1].count("\n") == 0 else ""
    if said.lower() in SAYS_NOTHING:
        marked = "\n".join(_MARGIN.findall(text)).strip()
        typed = _TYPE.search(marked)
        said = marked[typed.start() if typed else 0 :].strip() or "\n".join(_before_stack(case, text))
    if not said:
        said = next((x for x in reversed(_plain(case.output).splitlines()) if x.strip()), "")
    if said.endswith("sub-exceptions)"):
        said = "\n".join([said, *_LEAF.findall(text)[1:]])
    return cut_bytes("\n".join(said.splitlines()[:MESSAGE_LINES]).strip(), MAX_MESSAGE_BYTES)


def _before_stack(case: Case, text: str) -> list[str]:
    kept: list[str] = []
    for line in (x.strip() for x in text.splitlines()):
        # Some repeat the message with the type in front, before the stack.
        if kept and (line.startswith("at ") or line.endswith(": " + kept[0]) or len(kept) >= MESSAGE_LINES):
            break
        named = case.classname and line.startswith(case.classname) and line.endswith(case.name)
        if line and not named and not _NOISE.match(line):
            kept.append(line)
    return kept


def _location(request: Request, case: Case, text: str) -> tuple[str | None, int | None]:
    """Return the first own place that the text names (the last of pytest's), else what the attributes say."""
    places = list(_FRAME.finditer(text))
    if case.tool == "pytest":
        places.reverse()
    for place in places[:MAX_PLACES]:
        at = max(0, place.start() - MAX_LEAD_CHARS)
        lead = text[at : place.end()].rpartition("\n")[2]
        if not _FOREIGN.search(lead) and "://" not in lead.replace("file://", ""):
            return request.relative(place["a"] or place["c"]), int(place["b"] or place["d"])
    if not case.file:
        return None, None
    # pytest counts from 0 here.
    return request.relative(case.file), case.line + 1 if case.line is not None and case.tool else case.line


if __name__ == "__main__":
    main(extract)
