"""Cutting the failures out of a stream, one reader for each way to print them."""

from __future__ import annotations

import re

from blocks import Block

from kos_retry.sdk import Line

MAX_BLOCKS = 2000

_SECTION = re.compile(r"^There (?:was|were) \d{1,9} (?:PHPUnit )?(errors?|failures?|[\w ]{1,60}):$")
_ENTRY = re.compile(r"^\d{1,6}\) (\S.{0,1000})$")
_END = re.compile(r"^(?:--|(?:ERRORS|FAILURES|WARNINGS|OK)!|Tests: \d{1,9}, .{0,400}|Time: \d.{0,100})$")
# The values behind a data set's name may be anything.
_VALUES = re.compile(r"( with data set (?:#\d{1,9}|\"[^\"]{0,300}\")) \(.{0,1000}$")
_FAULTS = frozenset({"error", "errors", "failure", "failures"})

_CLASS = re.compile(r"^([A-Z]\S.{0,300}?)(?: \([\w\\]{1,300}\))?$")
_CROSS = re.compile(r"^ ✘ (\S.{0,500})$")
_MARGIN = re.compile(r"^ {3}[│├┐┘┴┊╵╷] ?(.{0,4000})$")

_FAILED = re.compile(r"^ {1,3}FAILED {2}(\S.{0,1000})$")
_RAISED = re.compile(r"^[A-Z][\w\\]{0,200}$")
_RULED = re.compile(r"^ {0,3}[─-]{10,400}$|^ {2,3}Tests: {1,8}\d")


class NumberedReader:
    """Reads ``There were 2 failures:`` and what is numbered below."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._failing = False
        self._open: Block | None = None

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text.rstrip()
        if section := _SECTION.match(text):
            self._failing, self._open = section[1] in _FAULTS, None
        elif _END.match(text):
            # `Time:` stands before the failures.
            self._failing, self._open = False, None
        elif self._failing and (entry := _ENTRY.match(text)):
            self._open = Block(_VALUES.sub(r"\1", entry[1]), line, line)
            if len(self.blocks) < MAX_BLOCKS:
                self.blocks.append(self._open)
        elif self._open is not None:
            self._open.feed(text, line)


class TestdoxReader:
    """Reads a class, the sentences of its tests, and what is said of a failed one behind a margin."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._class = ""
        self._open: Block | None = None

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text.rstrip()
        if cross := _CROSS.match(text):
            name = re.sub(r" {1,9}\[\d{1,9}\.\d{1,3} ?m?s\]$", "", cross[1])
            self._open = Block(f"{self._class} > {name}", line, line)
            if self._class and len(self.blocks) < MAX_BLOCKS:
                self.blocks.append(self._open)
        elif self._open is not None and (said := _MARGIN.match(text)):
            self._open.feed(said[1], line)
        elif text:
            self._open = None
            if heading := _CLASS.match(text):
                self._class = heading[1]


class PestReader:
    """Reads ``FAILED  Suite > test`` and what stands below it down to the next rule."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._open: Block | None = None

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text.rstrip()
        if (failed := _FAILED.match(text)) and " > " in failed[1]:
            # What was thrown stands at the end of the line.
            name, _, raised = failed[1].rpartition("  ")
            thrown = bool(name) and bool(_RAISED.match(raised))
            self._open = Block(name.rstrip() if thrown else failed[1], line, line, raised if thrown else None)
            if len(self.blocks) < MAX_BLOCKS:
                self.blocks.append(self._open)
        elif _RULED.match(text):
            self._open = None
        elif self._open is not None:
            self._open.feed(text.strip(), line)
