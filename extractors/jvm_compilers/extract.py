"""Errors of Java, Kotlin and Scala compilers in the forms of their own, and as ant and sbt print them.

What they print as `file:line: error: message`, as most compilers do, is another extractor's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 1024
MAX_NAME_BYTES = 160
MAX_KEPT = 2000

_FILE = r"(?P<path>[^\s:()\[\]]{1,400}\.(?:java|kts?|scala|sc|groovy))"
_ANT = re.compile(rf"^ {{0,12}}\[(?:javac|kotlinc|scalac)\] {_FILE}:(?P<line>\d{{1,9}}): error: (?P<said>.+)$")
_SBT = re.compile(rf"^\[error\] {_FILE}:(?P<line>\d{{1,9}}):(?:(?P<column>\d{{1,9}}):)? (?P<said>.+)$")
_KOTLIN = re.compile(
    rf"^e: (?:file://)?{_FILE}(?::(?P<line>\d{{1,9}}):(?P<column>\d{{1,9}}):?|: \((?P<line_>\d{{1,9}}), (?P<column_>\d{{1,9}})\):) (?P<said>.+)$"
)
_SCALA = re.compile(
    rf"^(?:\[error\] )?-- (?:\[(?P<code>E\d{{3,4}})\] )?(?P<what>[A-Z][\w ]{{0,60}})?Error: {_FILE}:(?P<line>\d{{1,9}}):(?P<column>\d{{1,9}}) -{{1,200}}$"
)
# Below: the source line, its marker, then what is wrong with it.
_SCALA_SAID = re.compile(r"^(?:\[error\] )?[\d ]{0,12}\|(?P<said>.*)$")
_MARKER = re.compile(r"^ {0,400}\^{1,400} {0,4}$")
_SYMBOL = re.compile(r"^ {0,12}(?:\[(?:javac|error)\]) {1,6}symbol: {1,4}(?P<said>.{1,300})$")
_PLACELESS = re.compile(r"^error: (?P<said>.+)$")
_WARNING = re.compile(rf"^{_FILE}:(?P<line>\d{{1,9}}): warning: \[(?P<code>[\w-]{{1,40}})\] (?P<said>.+)$")
_STRICT = "warnings found and -Werror specified"
# What makes an error without a place one of javac's: nearly every tool says `error: `.
_JAVAC = re.compile(r"^(?:Usage: javac <options> <source files>|\d{1,9} errors?)$")


@dataclass(slots=True)
class Fault:
    """One error: its rule or nothing, its words, and where it is."""

    code: str
    said: str
    first: Line
    last: Line
    path: str | None = None
    line: int | None = None
    column: int | None = None


class Reader:
    """Collects the errors of one stream."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self._placeless: list[Fault] = []
        self._warnings: list[Fault] = []
        # An error of Scala 3 that has said nothing yet, and whether its source line was marked.
        self._silent: Fault | None = None
        self._marked = False

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text.rstrip()
        if len(self.faults) >= MAX_KEPT:
            return
        if scala := _SCALA.match(text) if "Error: " in text else None:
            self._silent, self._marked = _fault(scala, scala["code"] or "", line), False
        elif self._silent is not None:
            self._scala_line(self._silent, text, line)
        elif placed := _ANT.match(text) or _SBT.match(text) or _KOTLIN.match(text):
            self.faults.append(_fault(placed, "", line))
        elif symbol := _SYMBOL.match(text):
            self._complete(symbol["said"], line)
        elif warning := _WARNING.match(text):
            self._warnings = [*self._warnings[-MAX_KEPT:], _fault(warning, warning["code"], line)]
        elif placeless := _PLACELESS.match(text):
            self._placeless = [Fault("", placeless["said"], line, line)]
        elif _JAVAC.match(text):
            self._judge()

    def _scala_line(self, fault: Fault, text: str, line: Line) -> None:
        said = _SCALA_SAID.match(text)
        if said is None:
            self._silent = None
        elif _MARKER.match(said["said"]):
            self._marked = True
        elif self._marked and said["said"].strip():
            fault.said, fault.last = said["said"].strip(), line
            self.faults.append(fault)
            self._silent = None

    def _complete(self, symbol: str, line: Line) -> None:
        """Say what `cannot find symbol` is about."""
        if self.faults and ": " not in self.faults[-1].said:
            self.faults[-1].said += f": {' '.join(symbol.split())}"
            self.faults[-1].last = line

    def _judge(self) -> None:
        """Take the errors without a place as javac's, and the warnings that it calls errors."""
        strict = any(fault.said == _STRICT for fault in self._placeless)
        self.faults += self._warnings if strict and self._warnings else self._placeless
        self._placeless, self._warnings = [], []


def _fault(found: re.Match[str], code: str, line: Line) -> Fault:
    groups = found.groupdict()
    at = groups.get("line") or groups.get("line_") or "0"
    column = groups.get("column") or groups.get("column_")
    said = (groups.get("said") or "").removeprefix("error: ").strip()
    return Fault(code, said, line, line, found["path"], int(at), int(column) if column else None)


def extract(request: Request) -> Answer:
    """Answer with the errors in the order in which they were printed, each once."""
    readers = request.read(Reader)
    answer = Answer()
    seen: set[tuple[object, ...]] = set()
    for fault in (fault for reader in readers.values() for fault in reader.faults):
        if len(answer.findings) < request.max_findings:
            _add(answer, request, fault, seen)
    return answer


def _add(answer: Answer, request: Request, fault: Fault, seen: set[tuple[object, ...]]) -> None:
    path = request.relative(fault.path) if fault.path else None
    name = fault.code or cut_bytes(fault.said.strip(" .:;,"), MAX_NAME_BYTES)
    if not name or (name, path, fault.line) in seen:
        return
    seen.add((name, path, fault.line))
    answer.add(
        "diagnostic",
        code=name,
        message=cut_bytes(fault.said, MAX_MESSAGE_BYTES),
        path=path,
        line=fault.line,
        column=fault.column,
        evidence=[span(fault.first, fault.last)],
        cause={
            "kind": "deterministic",
            "rule": "jvm-compile-error",
            "evidence": cut_bytes(fault.first.text.strip(), 500),
            "fix": cut_bytes(f"correct what is reported in {path}" if path else "correct the compiler's options", 500),
        },
    )


if __name__ == "__main__":
    main(extract)
