"""Reading the events of a transcript: JSON objects, one a line, one in all, or an array of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import IO, Any

from kos_retry.sdk import MAX_STREAM_BYTES, Request
from kos_retry.text.escapes import decode, strip_escapes

# A line that is longer holds a picture or a dump; an agent's own events are far smaller.
MAX_EVENT_BYTES = 8 * 1024 * 1024

Event = dict[str, Any]
_BLANK = b" \t\r\n"


class Events:
    """The JSON objects of one stream, to be iterated once.

    Afterwards ``malformed`` counts the lines that hold none (a document over several lines counts once), and ``blank`` says
    whether there was nothing at all. ``prefixes`` are taken off the start of a line.
    """

    def __init__(self, path: str | None, prefixes: tuple[str, ...] = ()) -> None:
        self._path = path
        self._prefixes = prefixes
        self.malformed = 0
        self.blank = True

    def __iter__(self) -> Iterator[Event]:
        block: list[str] = []
        for text in self._texts():
            if block and text[0] in " \t}]":
                block.append(text)
                if text[0] in "}]":
                    yield from self._parsed("\n".join(block))
                    block = []
                continue
            # Only a document over several lines has its brackets on lines of their own.
            self.malformed += bool(block)
            block = [text] if text.strip() in ("{", "[") else []
            if not block:
                yield from self._parsed(text)
        self.malformed += bool(block)

    def _texts(self) -> Iterator[str]:
        size = 0
        for raw in _lines(self._path):
            self.blank = False
            if raw is None:
                self.malformed += 1
                continue
            text = strip_escapes(decode(raw)).rstrip().removeprefix("\ufeff")
            for prefix in self._prefixes:
                text = text.removeprefix(prefix)
            # A document that grows without end is not collected.
            size = 0 if text[:1] in "{[" else size + len(raw)
            if text and size <= MAX_EVENT_BYTES:
                yield text

    def _parsed(self, text: str) -> Iterator[Event]:
        try:
            value = json.loads(text, parse_constant=str)
        except (ValueError, RecursionError):
            self.malformed += 1
            return
        found = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
        self.malformed += not found
        yield from found


def transcript(request: Request, prefixes: tuple[str, ...] = ()) -> Events:
    """Return the events of the stream that holds the transcript."""
    return Events(request.stream("stdout", "output"), prefixes)


def part(event: Event, *path: str) -> Event:
    """Return the object at a path of keys, an empty one where there is none."""
    for key in path:
        value = event.get(key)
        event = value if isinstance(value, dict) else {}
    return event


def parts(value: Any) -> list[Event]:
    """Return the objects in a list, none where it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(event: Event, *names: str) -> str:
    """Return the first of these fields that is a text and not blank, else an empty one."""
    found = (event.get(name) for name in names)
    return next((value for value in found if isinstance(value, str) and value.strip()), "")


def count(event: Event, *names: str) -> int | None:
    """Return the first of these fields that is a whole number of at least zero."""
    for name in names:
        value = event.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 2**53:
            return int(value)
    return None


def amount(event: Event, *names: str) -> float | None:
    """Return the first of these fields that is a number of at least zero."""
    for name in names:
        value = event.get(name)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e9:
            return value
    return None


def _lines(path: str | None) -> Iterator[bytes | None]:
    """Yield the lines that are not blank, None for one that is too long; of a long stream those in its last part."""
    if path is None:
        return
    with open(path, "rb") as stream:
        start = max(0, stream.seek(0, os.SEEK_END) - MAX_STREAM_BYTES)
        stream.seek(start)
        if start:
            _skip_line(stream)
        while raw := stream.readline(MAX_EVENT_BYTES):
            if len(raw) == MAX_EVENT_BYTES and not raw.endswith(b"\n"):
                _skip_line(stream)
                yield None
            elif raw.strip(_BLANK):
                yield raw


def _skip_line(stream: IO[bytes]) -> None:
    while (rest := stream.readline(MAX_EVENT_BYTES)) and not rest.endswith(b"\n"):
        pass
