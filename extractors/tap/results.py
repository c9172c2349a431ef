"""Reading results line by line: a tree of tests of which only the leaves are told, and what prove says of files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kos_retry.sdk import Line
from kos_retry.text.bounds import cut_bytes

MAX_NAME_BYTES = 500
MAX_FAILURES = 4000
MAX_DEPTH = 32
MAX_NOTES = 60
JOINT = " > "

_RESULT = re.compile(r"^( {0,128})(not )?ok\b(?: {1,9}(\d{1,9})\b)?(?: {1,9}-(?= ))? {0,9}(.{0,4000})$")
_DIRECTIVE = re.compile(r"(?<!\\)# {0,8}(todo|skip|time=)", re.IGNORECASE)
_ESCAPED = re.compile(r"\\([#\\])")
_PLAN = re.compile(r"^1\.\.(\d{1,9})(?: {0,9}# {0,9}skip.{0,400})?$", re.IGNORECASE)
_BAIL = re.compile(r"^(?:Bail out!|Bailout called\. {2}Further testing stopped:) {0,9}(.{0,400})")
# What Test::More says on the other stream.
_FAILED = re.compile(r"^( {0,128})# {3}Failed test (?:'(.{1,400})'|at (\S.{0,600} line \d{1,9})\.)$")
# What prove says of a file, and how a script of Perl dies; before that prove may have printed its progress.
_SUMMARY = re.compile(r"^(\S{1,600}) {1,400}\(Wstat: \d{1,9}.{0,60} Tests: \d{1,9} Failed: (\d{1,9})\)$")
_PARSE = re.compile(r"^ {2}Parse errors: (\S.{0,400})$")
_DIED = re.compile(
    r"^(?:\S{1,200} \.{2,80} ){0,2}(?:\d{1,9}/[\d?]{1,9} )?([^\s#].{0,1000}) at (\S{1,600}) line (\d{1,9})\.$"
)
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
