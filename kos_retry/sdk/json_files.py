"""Reading JSON that a tool wrote, from a report file or between other lines of a stream: hostile, huge or cut off."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, NamedTuple

from kos_retry.sdk import Report, Request, span
from kos_retry.text.escapes import decode

# What is read of one report: a document takes about ten times its size in memory.
MAX_REPORT_BYTES = 32 * 1024 * 1024
# One object of a report that has one in each line.
MAX_OBJECT_BYTES = 4 * 1024 * 1024
# What is looked through of one stream.
MAX_STREAM_CHARS = 8 * 1024 * 1024
# How much of a document that is cut off is taken apart: it is read once more for every level of it.
MAX_TORN_CHARS = 8 * 1024 * 1024
# How deep a document that is cut off is taken apart: below, what is torn is dropped.
MAX_TORN_DEPTH = 8
# How often a stream may begin with what turns out to be no JSON.
MAX_TORN_VALUES = 1000

Evidence = dict[str, Any]

_DECODER = json.JSONDecoder(strict=False)
_SPACE = re.compile(r"[ \t\n\r]*")
_BEGINS = re.compile(r"^(?:\[[ \t]*(?:[{\]]|$)|\{[ \t]*(?:\"|$))", re.MULTILINE)
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


class Torn(dict[str, Any]):
    """An object that the input ends or breaks in: its complete members, and those that are torn themselves."""


class Entry(NamedTuple):
    """One object of a report that has one in each line, and where it stands."""

    value: dict[str, Any]
    evidence: Evidence


def document(report: Report) -> tuple[Any, Evidence]:
    """Return the JSON document in a report, None where it is none, and where it stands.

    Of a document that is cut off, what is complete is kept: every object that is not is a `Torn` one.
    """
    with open(report.path, "rb") as stream:
        raw = stream.read(MAX_REPORT_BYTES)
    text = _decoded(raw)
    start = _skip(text, 0)
    value, end = _value(text, start, MAX_TORN_DEPTH)
    if end < 0:
        value, _ = _value(text[:MAX_TORN_CHARS], start, 0)
    return value, {"source": f"report:{report.name}", "start": 0, "end": len(raw)}


def entries(report: Report) -> Iterator[Entry]:
    """Yield the objects of a report that has one in each line; a line that is none, or is too long, is passed over."""
    at = 0
    with open(report.path, "rb") as stream:
        while at < MAX_REPORT_BYTES and (raw := stream.readline(MAX_OBJECT_BYTES)):
            body = raw.rstrip(b"\r\n")
            try:
                value = _DECODER.decode(decode(body).removeprefix("\ufeff"))
            except (ValueError, RecursionError):
                value = None
            if isinstance(value, dict):
                yield Entry(value, {"source": f"report:{report.name}", "start": at, "end": at + len(body)})
            at += len(raw)


def embedded(request: Request) -> Iterator[tuple[Any, Evidence]]:
    """Yield the arrays and objects that begin at the start of a line of a stream, whatever stands around them.

    Values that are cut off are given as `document` gives them.
    """
    sources: dict[str, list[Any]] = {}
    sizes: dict[str, int] = {}
    for line in request.lines():
        sizes[line.source] = sizes.get(line.source, 0) + len(line.text) + 1
        if sizes[line.source] <= MAX_STREAM_CHARS:
            sources.setdefault(line.source, []).append(line)
    for lines in sources.values():
        starts, at = [], 0
        for line in lines:
            starts.append(at)
            at += len(line.text) + 1
        for value, start, end in _values("\n".join(line.text for line in lines)):
            yield value, span(lines[bisect_right(starts, start) - 1], lines[bisect_right(starts, end - 1) - 1])


def text_of(value: Any) -> str:
    """Return a string of a document, and the empty one for anything else; numbers are written out."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else ""


def position_of(value: Any, offset: int = 0) -> int | None:
    """Return a line or column of a document, None where it is none; ``offset`` is added to it."""
    known = isinstance(value, int) and not isinstance(value, bool) and 0 < value + offset < 2**31
    return value + offset if known else None


def objects_of(value: Any) -> list[dict[str, Any]]:
    """Return the complete objects of an array, none for anything that is no array."""
    return [item for item in value if isinstance(item, dict) and not isinstance(item, Torn)] if _is_list(value) else []


def object_of(value: Any) -> dict[str, Any]:
    """Return an object, complete or torn, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _values(text: str) -> Iterator[tuple[Any, int, int]]:
    at, torn = 0, 0
    while torn < MAX_TORN_VALUES and (begins := _BEGINS.search(text, at)):
        value, end = _value(text, begins.start(), 0)
        torn += end < 0
        # What is torn was read up to where it breaks.
        at = max(begins.start() + 1, abs(end))
        yield value, begins.start(), at


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    """Return the value at ``at`` and where it ends; where it is torn the end is negative, and says where it breaks."""
    try:
        return _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        opening = text[at : at + 1]
    if depth >= MAX_TORN_DEPTH or opening not in ("[", "{"):
        return None, -max(1, at)
    return _torn_array(text, at, depth) if opening == "[" else _torn_object(text, at, depth)


def _torn_array(text: str, at: int, depth: int) -> tuple[list[Any], int]:
    kept: list[Any] = []
    while True:
        value, end = _value(text, _skip(text, at + 1), depth + 1)
        if end < 0:
            return ([*kept, value] if isinstance(value, (list, Torn)) else kept), end
        at = _skip(text, end)
        if not _may_go_on(value, text, at):
            kept.append(value)
        if text[at : at + 1] != ",":
            return kept, -max(1, at)


def _torn_object(text: str, at: int, depth: int) -> tuple[Torn, int]:
    kept = Torn()
    while True:
        name, at = _name(text, _skip(text, at + 1))
        if name is None:
            return kept, -max(1, at)
        value, end = _value(text, at, depth + 1)
        if end < 0:
            if isinstance(value, (list, Torn)):
                kept[name] = value
            return kept, end
        at = _skip(text, end)
        if not _may_go_on(value, text, at):
            kept[name] = value
        if text[at : at + 1] != ",":
            return kept, -max(1, at)


def _may_go_on(value: Any, text: str, end: int) -> bool:
    """Return whether the value is a number that the input breaks off in or after: it may have had more digits."""
    return text[end : end + 1] != "," and isinstance(value, (int, float)) and not isinstance(value, bool)


def _name(text: str, at: int) -> tuple[str | None, int]:
    """Return the name of the member at ``at`` and where its value begins."""
    try:
        name, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, at
    end = _skip(text, end)
    if not isinstance(name, str) or text[end : end + 1] != ":":
        return None, at
    return name, _skip(text, end + 1)


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _decoded(raw: bytes) -> str:
    if raw.startswith(_UTF_16):
        return raw.decode("utf-16", "replace")
    return decode(raw).removeprefix("\ufeff")
