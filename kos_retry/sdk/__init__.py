"""What an extractor written in Python may import: reading a request, and answering it.

Standard library only, and cheap to import: an extractor's process starts when something has failed, and
someone waits for it. An extractor is a function from `Request` to `Answer`; `main` makes a command of it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from kos_retry.text.bounds import cut_bytes, well_formed
from kos_retry.text.escapes import decode, plain_line

PROTOCOL = 1
# A line longer than this is a minified file or a data dump: its head is enough to recognise it.
MAX_LINE_BYTES = 64 * 1024
# What one extractor reads of one stream: its end, where it is longer.
MAX_STREAM_BYTES = 64 * 1024 * 1024
# A stream up to this size is read at once, and remembered for the next extractor of the same process.
_REMEMBERED_BYTES = 16 * 1024 * 1024
# A line that stands so often in a row says no more when it comes again.
MAX_REPEATED_LINES = 1000
# Lines of more shapes than this are no longer remembered.
MAX_SHAPES = 100_000
TEST_RESULTS = ("passed", "skipped", "failed", "errored")
RARE_RESULTS = ("unfinished", "flaky")
NEVER_ENDED = "started and never ended"
# What an answer holds only where there is any.
_MORE = ("totals", "incomplete", "actions", "usage", "failed", "session")

# What was expected and what came instead fit in; a whole document does not.
MAX_HEADLINE_BYTES = 500


class Line:
    """One line of a stream as a terminal would show it, and where its bytes stand; ``shape`` is what lines share that differ in digits."""

    __slots__ = ("end", "shape", "source", "start", "text")

    def __init__(self, text: str, source: str, start: int, end: int, shape: bytes = b"") -> None:
        self.text = text
        self.source = source
        self.start = start
        self.end = end
        self.shape = shape


class Watch:
    """Tells which lines any of some expressions is found in, at a glance for all that are like one before but for their digits.

    A long log has many lines of few shapes. The expressions must not tell one digit from another.
    """

    def __init__(self, *expressions: re.Pattern[str]) -> None:
        self._searches = [expression.search for expression in expressions]
        self._known: dict[bytes, bool] = {}

    def sees(self, line: Line) -> bool:
        """Return whether one of the expressions is found in the line."""
        known = self._known.get(line.shape)
        if known is None or not line.shape:
            text = line.text.rstrip()
            known = any(search(text) for search in self._searches)
            if len(self._known) < MAX_SHAPES:
                self._known[line.shape] = known
        return known


class LineReader(Protocol):
    """What takes a stream line by line."""

    def feed(self, line: Line) -> object:
        """Take the next line of the stream."""


R = TypeVar("R", bound=LineReader)
_source = attrgetter("source")


class Report:
    """A report file that the attempt wrote: its path, and its name relative to the workspace."""

    __slots__ = ("name", "path")

    def __init__(self, path: str, name: str) -> None:
        self.path = path
        self.name = name


class Request:
    """What an extractor is asked: facts of the attempt, and paths of what it left behind.

    ``exit_code`` and ``signal`` are None where they are not known; ``workspace`` is the directory that the
    command ran in, empty where it is not known.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        attempt = data.get("attempt") or {}
        self.argv: list[str] = list(attempt.get("argv") or [])
        self.exit_code: int | None = attempt.get("exit_code")
        self.signal: str | None = attempt.get("signal")
        self.timed_out: bool = bool(attempt.get("timed_out"))
        self.workspace: str = data.get("workspace") or ""
        self.options: dict[str, Any] = data.get("options") or {}
        self.max_findings: int = int((data.get("limits") or {}).get("findings", 200))
        self._streams: dict[str, str] = {k: v["path"] for k, v in (data.get("streams") or {}).items()}
        self.reports = [Report(r["path"], r.get("relative") or r["path"]) for r in data.get("reports") or []]

    def lines(self, last_bytes: int = MAX_STREAM_BYTES) -> Iterator[Line]:
        """Yield the lines of all captured streams, one stream after the other.

        Of a stream that is longer than ``last_bytes`` only the whole lines in its last part.
        """
        for source, path in sorted(self._streams.items()):
            yield from _lines(source, path, last_bytes)

    def read(self, make: Callable[[], R]) -> dict[str, R]:
        """Make a reader for each stream that has lines, feed it these lines, and return the readers by the streams' names."""
        readers: dict[str, R] = {}
        for source, lines in groupby(self.lines(), key=_source):
            reader = readers[source] = make()
            for line in lines:
                reader.feed(line)
        return readers

    def stream(self, *names: str) -> str | None:
        """Return the path of the first of these streams that was captured."""
        return next((self._streams[name] for name in names if name in self._streams), None)

    def relative(self, path: str) -> str:
        """Return ``path`` relative to the workspace if it lies below it, else as it is."""
        root = self.workspace.rstrip("/") + "/"
        return path[len(root) :] if len(root) > 1 and path.startswith(root) else path.removeprefix("./")


class Answer:
    """The findings of one extractor, in the order in which the output names them.

    ``incomplete`` says what could not be looked at: the core records it as a failure, and keeps the findings.
    ``totals`` are what reports count, under names that are the same for all: tests by their last result,
    ``passed``, ``skipped``, ``failed``, ``errored`` and ``unfinished`` (started, and never ended), and ``flaky``,
    how many of the passed ones had failed before; of diagnostics ``errors`` and ``warnings``. A name that is missing
    counts as 0; without totals there was no report that the extractor could read.
    What only transcripts tell (actions, usage, the agent's session, whether it failed) is left out where it is None.
    """

    def __init__(self) -> None:
        self.findings: list[dict[str, Any]] = []
        self.totals: dict[str, int] | None = None
        self.incomplete: str | None = None
        self.actions: list[dict[str, Any]] | None = None
        self.usage: dict[str, Any] | None = None
        self.failed: bool | None = None
        self.session: str | None = None

    def add(
        self,
        kind: str,
        *,
        message: str = "",
        confidence: str = "likely",
        test_id: str | None = None,
        error_type: str | None = None,
        code: str | None = None,
        path: str | None = None,
        line: int | None = None,
        column: int | None = None,
        evidence: list[dict[str, Any]] | None = None,
        status: str = "failed",
        cause: dict[str, Any] | None = None,
    ) -> None:
        """Add one finding; see the extractor protocol in the reference for what the fields mean."""
        finding = {
            "kind": kind,
            "status": status,
            "test_id": test_id,
            "error_type": error_type,
            "code": code,
            "message": message,
            "location": {"path": path, "line": line or None, "column": column or None} if path else None,
            "evidence": evidence or [],
            "confidence": confidence,
            "cause": cause,
        }
        self.findings.append({k: _sound(v) for k, v in finding.items() if v not in (None, [])})

    def count_tests(self, numbers: Mapping[str, int]) -> None:
        """Add the tests of one report to the totals; what is rare is named only where there is any."""
        self._count({name: numbers.get(name, 0) for name in TEST_RESULTS})
        self._count({name: number for name in RARE_RESULTS if (number := numbers.get(name, 0))})

    def count_diagnostics(self, *, errors: int, warnings: int) -> None:
        """Add the diagnostics of one report to the totals."""
        self._count({"errors": errors, "warnings": warnings})

    def _count(self, numbers: Mapping[str, int]) -> None:
        self.totals = self.totals or {}
        for name, number in numbers.items():
            self.totals[name] = self.totals.get(name, 0) + number

    def add_unfinished(self, test_id: str, **where: Any) -> None:
        """Add a test that was started and never ended."""
        self.add("test", status="unfinished", test_id=test_id, message=NEVER_ENDED, confidence="exact", **where)

    def drop_mixed_transience(self) -> None:
        """Call a failure passing only where every one is that is no guess: what failed otherwise fails again."""
        sure = [f for f in self.findings if f["confidence"] != "guess"]
        transient = [f for f in sure if (f.get("cause") or {}).get("kind") == "transient"]
        if len(transient) < len(sure):
            for finding in transient:
                del finding["cause"]

    def as_json(self) -> dict[str, Any]:
        """Return the answer as protocol 1 wants it."""
        answer: dict[str, Any] = {"protocol": PROTOCOL, "findings": self.findings}
        more = {name: getattr(self, name) for name in _MORE}
        return answer | {name: value for name, value in more.items() if value is not None}


def one_line(lines: Iterable[str], joint: str = " ") -> str:
    """Return lines as one, bounded: a finding is known by the first line of its message."""
    return cut_bytes(joint.join(text for line in lines if (text := " ".join(line.split()))), MAX_HEADLINE_BYTES)


def span(first: Line, last: Line | None = None) -> dict[str, Any]:
    """Return the evidence span from one line to another one of the same stream."""
    return {"source": first.source, "start": first.start, "end": (last or first).end}


def main(extract: Callable[[Request], Answer]) -> None:
    """Answer the one request on standard input: the whole program of an extractor."""
    request = Request(json.load(sys.stdin))
    json.dump(extract(request).as_json(), sys.stdout)


# What this process has read of streams: the lines by source, path, size and time of the last change.
_remembered: dict[tuple[str, str, int, int], list[Line]] = {}
# A stream of more lines than that is split again for each extractor.
_REMEMBERED_LINES = 100_000
_PIECE_BYTES = 256 * 1024
_ONE_DIGIT = bytes.maketrans(b"123456789", b"000000000")
_CONTROL = bytes(code for code in (*range(0x20), 0x7F) if chr(code) not in "\t\n")


def _sound(value: Any) -> Any:
    """Return text as it can be encoded: escapes in what a tool wrote may be half of a character."""
    if isinstance(value, str):
        return well_formed(value)
    return {k: _sound(v) for k, v in value.items()} if isinstance(value, dict) else value


def _lines(source: str, path: str, last_bytes: int) -> Iterator[Line]:
    with open(path, "rb") as stream:
        status = os.fstat(stream.fileno())
        if status.st_size > min(last_bytes, _REMEMBERED_BYTES):
            yield from _one_by_one(stream, source, last_bytes)
            return
        key = (source, path, status.st_size, status.st_mtime_ns)
        if key not in _remembered:
            data = stream.read()
            if data.count(b"\n") > _REMEMBERED_LINES:
                yield from _in_pieces(data, source)
                return
            for old in [
                old for old in _remembered if os.path.dirname(old[1]) != os.path.dirname(path) or old[0] == source
            ]:
                del _remembered[old]
            _remembered[key] = list(_in_pieces(data, source))
    yield from _remembered[key]


def _in_pieces(data: bytes, source: str) -> Iterator[Line]:
    """Yield all lines; most outputs have nothing in them that a terminal would not show as it is."""
    plain = len(data.translate(None, _CONTROL)) == len(data)
    known: dict[bytes, bytes] = {}
    at, before, repeated = 0, b"", 0
    for raw, shape in _split(data):
        repeated = repeated + 1 if raw == before else 0
        before = raw
        if repeated <= MAX_REPEATED_LINES:
            body = raw[:MAX_LINE_BYTES].rstrip(b"\r") if not plain or len(raw) > MAX_LINE_BYTES else raw
            text = body.decode("ascii") if plain and body.isascii() else plain_line(decode(body))
            yield Line(text, source, at, at + len(body), known.setdefault(shape, shape))
        at += len(raw) + 1


def _split(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the lines of a stream, each with its shape; a piece at a time, since lines take many times the room of their text."""
    # Behind the last newline there is no line.
    end = len(data) - 1 if data.endswith(b"\n") else len(data)
    start = 0 if data else 1
    while start <= end:
        cut = data.find(b"\n", start + _PIECE_BYTES, end)
        piece = data[start : cut if cut >= 0 else end]
        yield from zip(piece.split(b"\n"), piece.translate(_ONE_DIGIT).split(b"\n"), strict=True)
        start += len(piece) + 1


def _one_by_one(stream: Any, source: str, last_bytes: int) -> Iterator[Line]:
    at = max(0, stream.seek(0, os.SEEK_END) - last_bytes)
    stream.seek(at)
    if at:
        at += _skip_line(stream)
    while True:
        raw = stream.readline(MAX_LINE_BYTES)
        if not raw:
            return
        end = at + len(raw)
        body = raw.rstrip(b"\r\n")
        yield Line(plain_line(decode(body)), source, at, at + len(body), body.translate(_ONE_DIGIT))
        if not raw.endswith(b"\n"):
            end += _skip_line(stream)
        at = end


def _skip_line(stream: Any) -> int:
    """Read to the end of a line that is too long; return how many bytes that was."""
    skipped = 0
    while rest := stream.readline(MAX_LINE_BYTES):
        skipped += len(rest)
        if rest.endswith(b"\n"):
            break
    return skipped
