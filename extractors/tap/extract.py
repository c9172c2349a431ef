"""Failed tests from the Test Anything Protocol, and from what Test::More and prove say beside it.

A subtest is indented and told before, or in braces below, the test that it is a part of; a test that failed only
because of its subtests is not told itself. What is marked as to do or skipped is no failure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kos_retry.sdk import MAX_LINE_BYTES, Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes
from kos_retry.text.escapes import decode, plain_line

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_MESSAGE_BYTES = 2048
MAX_NAME_BYTES = 500
MAX_REASON_CHARS = 160
MESSAGE_LINES = 8
MAX_FAILURES = 4000
MAX_DEPTH = 32
MAX_NOTES = 60
JOINT = " > "
# What a runtime says of a passing state.
TRANSIENT = frozenset({"ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EADDRINUSE", "EAI_AGAIN", "EPIPE"})

_RESULT = re.compile(r"^( {0,128})(not )?ok\b(?: {1,9}(\d{1,9})\b)?(?: {1,9}-(?= ))? {0,9}(.{0,4000})$")
_DIRECTIVE = re.compile(r"(?<!\\)# {0,8}(todo|skip|time=)", re.IGNORECASE)
_ESCAPED = re.compile(r"\\([#\\])")
_PLAN = re.compile(r"^1\.\.(\d{1,9})(?: {0,9}# {0,9}skip.{0,400})?$", re.IGNORECASE)
_BAIL = re.compile(r"^(?:Bail out!|Bailout called\. {2}Further testing stopped:) {0,9}(.{0,400})")
# What Test::More says on the other stream.
_FAILED = re.compile(r"^( {0,128})# {3}Failed test (?:'(.{1,400})'|at (\S.{0,600} line \d{1,9})\.)$")
_PLACE = re.compile(r"^ {0,128}# {1,4}(?:at |\(in test file |\(from .{1,300} in file )(\S.{0,600}?),? line (\d{1,9})")
# What prove says of a file, and how a script of Perl dies; before that prove may have printed its progress.
_SUMMARY = re.compile(r"^(\S{1,600}) {1,400}\(Wstat: \d{1,9}.{0,60} Tests: \d{1,9} Failed: (\d{1,9})\)$")
_PARSE = re.compile(r"^ {2}Parse errors: (\S.{0,400})$")
_DIED = re.compile(
    r"^(?:\S{1,200} \.{2,80} ){0,2}(?:\d{1,9}/[\d?]{1,9} )?([^\s#].{0,1000}) at (\S{1,600}) line (\d{1,9})\.$"
)
_KEY = re.compile(r"^( {0,160})([A-Za-z_]\w{0,40}|'[^']{1,200}'): ?(.{0,4000})$")
_SCALAR = re.compile(r"^[|>][-+\d]{0,3}$")
_POINT = re.compile(r"(?:^|[\s(])(?:file://)?([^\s()'\":]{1,600}\.[A-Za-z]\w{0,5}):(\d{1,9})(?::(\d{1,9}))?\)?$")
_TYPED = re.compile(r"^([A-Z]\w{0,100}(?:Error|Exception)|Error)(?: \[(\w{1,60})\])?: (.{1,4000})$")
_WORD = re.compile(r"^\w{1,60}$")
_ONLY_INSIDE = re.compile(r"^\d{1,9} subtests? failed$")
_FOREIGN = re.compile(r"node_modules/|node:|^internal/|^<")
_NOISE = re.compile(r"^ {0,128}#? {0,2}(?:Looks like you |tests \d|pass {1,3}\d|fail {1,3}\d|suites \d)")


@dataclass(slots=True)
class Failure:
    """One test that is not ok: the names that lead to it, and what is noted below."""

    names: list[str]
    indent: int
    first: Line
    end: int
    exact: bool = True
    notes: list[str] = field(default_factory=list)
    # Whether a part of it is told instead.
    dropped: bool = False

    @property
    def name(self) -> str:
        """Return the whole name of the test."""
        return cut_bytes(JOINT.join(self.names), MAX_NAME_BYTES)


class Tree:
    """Failures whose names grow as the tests that they are parts of are told."""

    def __init__(self) -> None:
        self.failures: list[Failure] = []
        self._above: list[tuple[int, str, Failure | None]] = []

    def add(self, failure: Failure | None, indent: int, name: str, *, braces: bool = False) -> None:
        """Take a result that is told at ``indent``; one that did not fail is no failure, whatever is inside of it."""
        self._above = [above for above in self._above if above[0] < indent]
        parts = self._parts(indent, name, fails=failure is not None)
        outer = [above for _, _, above in self._above]
        if failure is not None and not parts and None not in outer and len(self.failures) < MAX_FAILURES:
            failure.names = [*(above for _, above, _ in self._above), name]
            failure.indent = self._above[0][0] if self._above else indent
            self.failures.append(failure)
            for above in outer:
                if above is not None:
                    above.dropped = True
        if braces and len(self._above) < MAX_DEPTH:
            self._above.append((indent, name, failure))

    def _parts(self, indent: int, name: str, *, fails: bool) -> bool:
        """Return whether the failures told last are parts of the test called ``name``; make them so."""
        at = len(self.failures)
        while at and self.failures[at - 1].indent > indent:
            at -= 1
        parts = self.failures[at:]
        if not fails:
            del self.failures[at:]
        for part in parts:
            part.indent = indent
            if len(part.names) < MAX_DEPTH:
                part.names.insert(0, name)
        return bool(parts)


class Reader:
    """Reads one stream or report."""

    def __init__(self) -> None:
        self.results, self.said = Tree(), Tree()
        self.version: Line | None = None
        self.plans: list[tuple[int, Line]] = []
        self.count = 0
        self.bailed: tuple[str, Line] | None = None
        self.files: dict[str, tuple[str, Line]] = {}
        self.deaths: dict[str, tuple[str, int]] = {}
        self._file = ""
        self._noted: Failure | None = None

    def feed(self, line: Line) -> None:
        """Take the next line."""
        text = line.text.rstrip()
        if result := _RESULT.match(text):
            self._result(result, line)
        elif failed := _FAILED.match(text):
            self._noted = Failure([], 0, line, line.end, exact=False)
            self.said.add(self._noted, len(failed[1]), failed[2] or f"test at {failed[3]}")
        elif plan := _PLAN.match(text):
            self.plans = [*self.plans[-1:], (int(plan[1]), line)]
        elif text.startswith("TAP version 1"):
            self.version = line
        elif bail := _BAIL.match(text):
            self.bailed = self.bailed or (bail[1].strip(), line)
        elif not self._of_file(text, line):
            self._note(text, line)

    def _result(self, result: re.Match[str], line: Line) -> None:
        indent, name = len(result[1]), result[4]
        marks = list(_DIRECTIVE.finditer(name))
        braces = name.endswith("{")
        name = (name[: marks[-1].start()] if marks else name).removesuffix("{").strip()[:MAX_NAME_BYTES]
        name = _ESCAPED.sub(r"\1", name) or f"test {result[3] or ''}".rstrip()
        excused = bool(marks) and not marks[-1][1].lower().startswith("time")
        self._noted = Failure([], 0, line, line.end) if result[2] and not excused else None
        self.count += not indent
        self.results.add(self._noted, indent, name, braces=braces)

    def _of_file(self, text: str, line: Line) -> bool:
        """Read what prove says of a whole file, and the words that a script died with."""
        if summary := _SUMMARY.match(text):
            self._file = summary[1] if summary[2] == "0" else ""
            if self._file and len(self.files) < MAX_FAILURES:
                self.files[self._file] = ("ended with an error after its tests", line)
        elif self._file in self.files and (parse := _PARSE.match(text)):
            self.files[self._file] = (parse[1], self.files[self._file][1])
        elif text.endswith(".") and (died := _DIED.match(text)):
            if len(self.deaths) < MAX_FAILURES:
                self.deaths[died[2]] = (died[1], int(died[3]))
        else:
            return False
        return True

    def _note(self, text: str, line: Line) -> None:
        if (text and not text.startswith((" ", "#"))) or text.startswith("# Subtest: "):
            self._noted = None
        elif self._noted is not None and len(self._noted.notes) < MAX_NOTES and not _NOISE.match(text):
            self._noted.notes.append(text)
            self._noted.end = line.end if text else self._noted.end

    def failures(self) -> Iterator[Failure]:
        """Yield what failed: of equal names the result, which Test::More may tell more of."""
        said = {failure.name: failure for failure in self.said.failures}
        told = [f for f in self.results.failures if not f.dropped] if self.version or self.plans else []
        for failure in told:
            more = said.pop(failure.name, None)
            failure.notes = failure.notes or (more.notes if more else [])
            yield failure
        nameless = any(failure.names[-1].startswith("test ") for failure in told)
        yield from (f for f in said.values() if not (nameless and f.names[-1].startswith("test at ")))


def extract(request: Request) -> Answer:
    """Answer with the failed tests of all reports and streams, each once, or with why a run failed as a whole."""
    answer = Answer()
    readers: dict[str, Reader] = {}
    for line in (line for lines in (_report_lines(request), request.lines()) for line in lines):
        readers.setdefault(line.source, Reader()).feed(line)
    for failure in (failure for reader in readers.values() for failure in reader.failures()):
        _add(answer, request, failure)
    for reader in readers.values():
        _add_files(answer, request, reader)
    if not answer.findings and request.exit_code != 0:
        for reader in readers.values():
            _add_plan(answer, reader)
    first = {finding["test_id"]: finding for finding in reversed(answer.findings)}
    answer.findings = list(first.values())[::-1][: request.max_findings]
    _settle(answer)
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
    told = _yaml(notes) if any(note.strip() == "---" for note in notes) else _plain(notes)
    path, line, column = _place(request, told, notes)
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


def _yaml(notes: list[str]) -> dict[str, str]:
    """Return the fields of a block of YAML that say something, wherever they are nested, the first of each name."""
    told: dict[str, str] = {}
    at = 0
    while at < len(notes):
        found = _KEY.match(notes[at])
        at += 1
        if found is None:
            continue
        value, indent = found[3].strip(), len(found[1])
        if _SCALAR.match(value):
            block: list[str] = []
            while at < len(notes) and (not notes[at].strip() or notes[at][: indent + 1].isspace()):
                block.append(notes[at].strip())
                at += 1
            value = (" " if value.startswith(">") else "\n").join(text for text in block if text)
        if value and value != "~" and found[2].startswith("'"):
            # A heading rather than a field: what a library says of a comparison.
            told.setdefault("details", f"{_unquoted(found[2])}\n{value}")
        elif value and value != "~":
            told.setdefault(found[2], _unquoted(value))
    return told


def _unquoted(value: str) -> str:
    if value.startswith("'") and value.endswith("'") and len(value) > 1:
        return value[1:-1].replace("''", "'")
    if value.startswith('"') and value.endswith('"') and len(value) > 1:
        try:
            return str(json.loads(value))
        except (ValueError, RecursionError):
            return value[1:-1]
    return value.removeprefix('"')


def _plain(notes: list[str]) -> dict[str, str]:
    """Return what comments or indented lines say: a typed error, else all of them that are no place."""
    said = [note.strip(" #") for note in notes if not _PLACE.match(note)]
    if typed := next((found for text in said if (found := _TYPED.match(text))), None):
        return {"name": typed[1], "code": typed[2] or "", "message": typed[3]}
    return {"message": "\n".join([text for text in said if text and not text.startswith("at ")][:MESSAGE_LINES])}


def _place(request: Request, told: dict[str, str], notes: list[str]) -> tuple[str | None, int | None, int | None]:
    """Return the innermost frame that is in no library, else where the test is said to be."""
    stack = told.get("stack", "").split("\n") if "stack" in told else [note.strip(" #") for note in notes]
    for text in (*stack, told.get("location", ""), told.get("at", "")):
        if (point := _POINT.search(text[-700:])) and not _FOREIGN.search(point[1]):
            return request.relative(point[1]), int(point[2]), int(point[3]) if point[3] else None
    if place := next((found for note in notes if (found := _PLACE.match(note))), None):
        return request.relative(place[1]), int(place[2]), None
    number = told.get("line", "")
    return told.get("file"), int(number) if number.isdecimal() and len(number) < 10 else None, None


def _settle(answer: Answer) -> None:
    """Call a failure passing only where every failure is: a test that failed otherwise fails again."""
    if not all((finding.get("cause") or {}).get("kind") == "transient" for finding in answer.findings):
        for finding in answer.findings:
            finding.pop("cause", None)


if __name__ == "__main__":
    main(extract)
