"""Failed tests and files from what AVA prints on a terminal.

The list with crosses says what failed, a part of the message behind the name; the blocks after the first rule are
headed by the name alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 2048
MESSAGE_LINES = 8
MAX_BODY_LINES = 200
MAX_BLOCKS = 2000
# Blocks are parted by that many blank lines at least.
BLANK_LINES = 3
# As many words of the message are looked at to find the end of the name before it.
MAX_SAID_WORDS = 60
RULE = "─"

_CROSS = re.compile(r"^ {1,4}[✘✖] \[fail\]: (\S.{0,2000}?)(?: \(\d[\d.]{0,9}m?s\))?$")
_EXITED = re.compile(r"^ {1,4}[✘✖] (\S.{0,600}?) exited (?:with a non-zero exit code: \d{1,9}|due to SIG[A-Z]{2,8})$")
_LOOSE = re.compile(r"^  (Uncaught exception|Unhandled rejection) in (\S.{0,600})$")
_TITLE = re.compile(r"^  (\S.{0,2000})$")
_PLACE = re.compile(r"^  (?:› (?:.{1,300} \()?(?:file://)?)?([^\s()]{1,600}\.\w{1,5}):(\d{1,9})(?::(\d{1,9}))?\)?$")
_FRAME = re.compile(r"^\s{4,16}at (?:.{1,400} \()?(?:file://)?([^()\s]{1,600}):(\d{1,9}):(\d{1,9})\)?$")
_SOURCE = re.compile(r"^\s{2,12}\d{1,7}:(?: |$)")
_TYPED = re.compile(r"^  ([A-Z]\w{0,100})(?: \[(\w{1,60})\])?: (\S.{0,4000})$")
_FOREIGN = re.compile(r"node_modules/|node:|^<")


@dataclass(slots=True)
class Block:
    """What stands below a heading."""

    title: str
    first: Line
    last: Line
    body: list[str] = field(default_factory=list)

    def feed(self, line: Line) -> None:
        """Take the next line of the block."""
        if len(self.body) < MAX_BODY_LINES:
            self.body.append(line.text.rstrip())
            self.last = line


class Reader:
    """Reads the list and the blocks of one stream."""

    def __init__(self) -> None:
        self.crossed: dict[str, Line] = {}
        self.exited: dict[str, Line] = {}
        self.loose: dict[str, Block] = {}
        self.blocks: dict[str, Block] = {}
        self._in_blocks = False
        self._blank = 0
        self._block: Block | None = None

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text.rstrip()
        if text.strip() == RULE:
            self._in_blocks, self._block, self._blank = True, None, BLANK_LINES
        elif not text:
            self._blank += 1
        else:
            self._told(text, line)
            self._blank = 0

    def _told(self, text: str, line: Line) -> None:
        if loose := _LOOSE.match(text):
            self._block = self._head(self.loose, loose[2], Block(loose[1], line, line))
        elif cross := _CROSS.match(text):
            self._list(self.crossed, cross[1], line)
        elif exited := _EXITED.match(text):
            self._list(self.exited, exited[1], line)
        elif self._in_blocks and self._blank >= BLANK_LINES and (title := _TITLE.match(text)):
            self._block = self._head(self.blocks, title[1], Block(title[1], line, line))
        elif self._block is not None:
            self._block.feed(line)

    def _list(self, known: dict[str, Line], name: str, line: Line) -> None:
        self._block = None
        if len(known) < MAX_BLOCKS:
            known.setdefault(name, line)

    def _head(self, known: dict[str, Block], name: str, block: Block) -> Block | None:
        return known.setdefault(name, block) if len(known) < MAX_BLOCKS else None


def extract(request: Request) -> Answer:
    """Answer with the failed tests of all streams, and with the files that could not be run to their end."""
    answer = Answer()
    readers = request.read(Reader)
    for reader in readers.values():
        for crossed, line in reader.crossed.items():
            name, said = _split(crossed, reader.blocks)
            _add(answer, request, name, said, reader.blocks.get(name, Block(name, line, line)))
        for file, line in reader.exited.items():
            _add_file(answer, request, file, reader.loose.get(file, Block("", line, line)))
    # The same test may have been printed on both streams: the first one stays.
    first = {finding["test_id"]: finding for finding in reversed(answer.findings)}
    answer.findings = list(first.values())[::-1][: request.max_findings]
    return answer


def _split(crossed: str, blocks: dict[str, Block]) -> tuple[str, str]:
    """Part the name from the message: the name is the longest one that heads a block."""
    at = len(crossed)
    for _ in range(MAX_SAID_WORDS):
        if crossed[:at] in blocks:
            return crossed[:at], crossed[at:].strip()
        if (at := crossed.rfind(" ", 0, at)) < 0:
            break
    return crossed, ""


def _add(answer: Answer, request: Request, name: str, said: str, block: Block) -> None:
    message, error_type, _ = _message(block.body)
    path, line, column = _location(request, block.body)
    answer.add(
        "test",
        test_id=name,
        error_type=error_type,
        message=message or said or "failed without a message",
        path=path,
        line=line,
        column=column,
        evidence=[span(block.first, block.last)],
    )


def _add_file(answer: Answer, request: Request, file: str, block: Block) -> None:
    message, error_type, code = _message(block.body)
    path, line, column = _location(request, block.body)
    cause = None
    if code == "ERR_MODULE_NOT_FOUND" or error_type == "SyntaxError":
        rule, fix = ("syntax", "correct the syntax at the named line")
        if code:
            rule, fix = ("import", "install the missing module, or correct the import")
        evidence = f"{error_type}: {message}".partition("\n")[0][:400]
        cause = {"kind": "deterministic", "rule": f"ava-{rule}", "evidence": evidence, "fix": fix}
    answer.add(
        "test",
        status="error",
        test_id=f"{file}: {block.title}" if block.title else file,
        error_type=error_type,
        code=code,
        message=message or "ended before its tests did",
        path=path or file,
        line=line,
        column=column,
        evidence=[span(block.first, block.last)],
        cause=cause,
    )


def _message(body: list[str]) -> tuple[str, str | None, str | None]:
    """Return what a block says besides places and source: the error's own words, else all of it; type and code."""
    if typed := next((found for text in body if (found := _TYPED.match(text))), None):
        return cut_bytes(typed[3], MAX_MESSAGE_BYTES), typed[1], typed[2]
    said: list[str] = []
    for text in body:
        if _FRAME.match(text) or text.startswith("  › ") or len(said) >= MESSAGE_LINES:
            break
        if not _SOURCE.match(text) and not _PLACE.match(text):
            said.append(text.removeprefix("  "))
    return cut_bytes("\n".join(said), MAX_MESSAGE_BYTES), None, None


def _location(request: Request, body: list[str]) -> tuple[str | None, int | None, int | None]:
    """Return the first place that is in no library."""
    for text in body:
        if (place := _PLACE.match(text) or _FRAME.match(text)) and not _FOREIGN.search(place[1]):
            return request.relative(place[1]), int(place[2]), int(place[3]) if place[3] else None
    return None, None, None


if __name__ == "__main__":
    main(extract)
