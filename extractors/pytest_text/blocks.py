"""What a report of pytest consists of: a block for each failure, a line of the summary, the run that they are of."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field

from kos_retry.sdk import Line

MESSAGE_LINES = 8
MARGIN_LINES = 4 * MESSAGE_LINES
# Of a longer line the start is read: the rest is a message.
MAX_CHARS = 4000
MAXPLACES = 64

_CAPTURED = re.compile(r"^-{1,400} (Captured|live) .{1,40} -{1,400}$")
PLACE = re.compile(r"^([^\s:][^:]{0,400}):(\d{1,9})(?::(?: (.{0,4000}))?)?$")
FILE = re.compile(r'^[\s|+]{0,64}File "([^"]{1,1000})", line (\d{1,9})')
TYPED = re.compile(r"^((?:[^\W\d]\w{0,100}\.){0,16}[^\W\d]\w{0,100})(?:: ?(.*))?$")
_NATIVE = re.compile(r"^(?:[ |]{1,64}\| )?([^\W\d][\w.]{0,200}(?:: .*)?)$")


@dataclass(slots=True)
class Block:
    """One failure as the report details it; ``title`` is None where the style gives it no heading."""

    section: str
    title: str | None
    first: Line
    last: Line
    margin: list[str] = field(default_factory=list)
    places: deque[tuple[str, int, str]] = field(default_factory=lambda: deque(maxlen=MAXPLACES))
    native: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    in_margin: bool = False
    captured: bool = False
    used: bool = False

    def feed(self, line: Line) -> None:
        """Take the next line of the block."""
        text = line.text
        self.captured = self.captured or bool(_CAPTURED.match(text))
        if self.captured or not text.strip():
            return
        self.last = line
        margin = text == "E" or text.startswith("E   ")
        if margin:
            # A chain has several: the last one is what the test failed with.
            self.margin = self.margin if self.in_margin else []
            if len(self.margin) < MARGIN_LINES:
                self.margin.append(text[1:])
        elif place := PLACE.match(text[:MAX_CHARS]) or FILE.match(text):
            tail = place[3] or "" if place.re is PLACE else ""
            self.places.append((place[1], int(place[2]), tail))
        elif self.places and not self.margin and (native := _NATIVE.match(text)) and looks_typed(native[1]):
            self.native = [*self.native[: MESSAGE_LINES - 1], native[1]]
        elif not text.startswith((" ", ">", "_ _", "[gw")) and len(self.said) < MESSAGE_LINES:
            self.said.append(text)
        self.in_margin = margin


@dataclass(slots=True)
class Entry:
    """One line of the summary: what failed, and the start of its message."""

    word: str
    node_id: str
    about: str
    message: str
    line: Line


@dataclass(slots=True)
class Run:
    """One run of pytest."""

    sections: set[str] = field(default_factory=set)
    blocks: list[Block] = field(default_factory=list)
    entries: dict[tuple[str, str, str], Entry] = field(default_factory=dict)
    verbose: dict[str, Entry] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    started: bool = False
    closed: bool = False


def looks_typed(text: str) -> bool:
    """Return whether a line begins with a type, qualified or capitalised."""
    match = TYPED.match(text)
    return bool(match) and ("." in match[1] or match[1][:1].isupper()) if match else False
