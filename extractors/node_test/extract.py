"""Failed tests from the spec and dot reporters of the test runner that node brings.

The tree tells which suites a test is in; the list at the end repeats the failures with the place of each test. A
suite that failed only because of what is in it is not told itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 2048
MESSAGE_LINES = 8
MAX_BODY_LINES = 100
MAX_FAILURES = 4000
MAX_DEPTH = 32
JOINT = " > "
# What the runtime says of a passing state.
TRANSIENT = frozenset({"ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EADDRINUSE", "EAI_AGAIN", "EPIPE"})

_POINT = re.compile(r"^( {0,64})([▶✖✔﹣]) (\S.{0,2000}?)(?: \((\d[\d.]{0,18}ms)\)( # .{0,400})?)?$")
_LIST = re.compile(r"^(?:✖ failing tests:|Failed tests:)$")
_PLACE = re.compile(r"^test at (\S.{0,600}):(\d{1,9}):(\d{1,9})$")
_ONLY_INSIDE = re.compile(r"^'?\d{1,9} subtests? failed'?$")
_TYPED = re.compile(r"^([A-Z]\w{0,100})(?: \[(\w{1,60})\])?: (.{0,4000})$")
_FRAME = re.compile(r"^\s{4,80}at (?:.{1,400} \()?(?:file://)?([^()\s]{1,600}):(\d{1,9}):(\d{1,9})\)?(?: \{)?$")
_CODE = re.compile(r"^\s{2,80}code: '(E[A-Z_]{3,40})'")
_FOREIGN = re.compile(r"node_modules/|node:|^<")


@dataclass(slots=True)
class Failure:
    """One failed test: its name with those of its suites, where it stands, and what is told below it."""

    name: str
    first: Line
    last: Line
    indent: int
    place: tuple[str, int, int] | None = None
    body: list[str] = field(default_factory=list)

    def feed(self, line: Line) -> None:
        """Take the next line below the test."""
        if len(self.body) < MAX_BODY_LINES:
            self.body.append(line.text[self.indent :].rstrip())
            self.last = line


class Reader:
    """Reads the tree of one stream, and the list at its end."""

    def __init__(self) -> None:
        self.failures: dict[tuple[str, str], Failure] = {}
        self._suites: list[str] = []
        self._place: tuple[str, int, int] | None = None
        self._open: Failure | None = None

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text
        if _LIST.match(text):
            self._suites, self._open = [], None
        elif place := _PLACE.match(text):
            self._place = place[1], int(place[2]), int(place[3])
        elif point := _POINT.match(text):
            self._point(point, line)
        elif self._open is not None and text.strip():
            if text.startswith(" " * (self._open.indent + 2)):
                self._open.feed(line)
            else:
                self._open = None

    def _point(self, point: re.Match[str], line: Line) -> None:
        depth, mark, name = len(point[1]) // 2, point[2], point[3]
        closes = len(self._suites) > depth and self._suites[depth] == name
        self._suites = self._suites[:depth]
        if mark == "▶" and not closes and depth < MAX_DEPTH:
            self._suites.append(name)
        self._open = None
        if mark == "✖" and point[4] and not point[5]:
            self._fail(name, point[4], line, len(point[1]))
        self._place = None

    def _fail(self, name: str, took: str, line: Line, indent: int) -> None:
        """Keep a failure; one that the list repeats is known by its name and how long it took."""
        known = self.failures.get((name, took))
        if known is not None and known.body:
            known.place = known.place or self._place
        elif len(self.failures) < MAX_FAILURES:
            whole = known.name if known else JOINT.join([*self._suites, name])
            self._open = self.failures[name, took] = Failure(whole, line, line, indent, self._place)


def extract(request: Request) -> Answer:
    """Answer with the failed tests of all streams, each once."""
    answer = Answer()
    readers = request.read(Reader)
    seen: set[str] = set()
    for reader in readers.values():
        for failure in reader.failures.values():
            # Without a word of its own a suite only closes.
            told = bool(failure.body) and not _ONLY_INSIDE.match(failure.body[0].strip())
            if told and failure.name not in seen and len(seen) < request.max_findings:
                seen.add(failure.name)
                _add(answer, request, failure)
    answer.drop_mixed_transience()
    return answer


def _add(answer: Answer, request: Request, failure: Failure) -> None:
    message, error_type, code = _message(failure.body)
    code = code or next((found[1] for text in failure.body if (found := _CODE.match(text))), None)
    path, line, column = _location(request, failure)
    name = request.relative(failure.name)
    evidence = f"{error_type or 'Error'}: {message}".partition("\n")[0][:400]
    cause = {"kind": "transient", "rule": "node-test-system-error", "evidence": evidence}
    answer.add(
        "test",
        status="error" if name == path else "failed",
        test_id=name,
        error_type=error_type,
        code=code,
        message=message,
        path=path,
        line=line,
        column=column,
        evidence=[span(failure.first, failure.last)],
        cause=cause if code in TRANSIENT else None,
    )


def _message(body: list[str]) -> tuple[str, str | None, str | None]:
    """Return what was thrown, its type and its code; a time limit or the process of a file is told in quotes."""
    said: list[str] = []
    for text in body:
        if _FRAME.match(text) or len(said) >= MESSAGE_LINES:
            break
        said.append(text.removeprefix("  "))
    typed = _TYPED.match(said[0]) if said else None
    if typed:
        said[0] = typed[3]
    elif said and said[0].startswith("'"):
        said[0] = said[0].strip("'")
    code = typed[2] if typed and typed[2] != "Error" else None
    message = cut_bytes("\n".join(said).strip(), MAX_MESSAGE_BYTES) or "failed without a message"
    return message, typed[1] if typed else None, code


def _location(request: Request, failure: Failure) -> tuple[str | None, int | None, int | None]:
    """Return the innermost frame that is in no library, else where the test is defined."""
    for text in failure.body:
        if (frame := _FRAME.match(text)) and not _FOREIGN.search(frame[1]):
            return request.relative(frame[1]), int(frame[2]), int(frame[3])
    if failure.place is None:
        return None, None, None
    whole_file = failure.place[0] == request.relative(failure.name)
    return (failure.place[0], None, None) if whole_file else failure.place


if __name__ == "__main__":
    main(extract)
