"""Failed tests from what busted prints, the Lua test runner."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kos_retry.sdk import Answer, Line, Request, main, one_line, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 2048
MAX_LINES = 40
MAX_BLOCKS = 2000

_HEADING = re.compile(r"^(Failure|Error) -> (\S.{0,2000})$")
_AT = re.compile(r"^(.{1,600}) @ (\d{1,9})$")
_OTHER = re.compile(r"^(?:Pending -> |\d{1,9} success(?:es)? / )")
_PLACED = re.compile(r"^([^\s:]{1,600}):(\d{1,9}): ?(.{0,4000})$")


@dataclass(slots=True)
class Block:
    """One failure: its test, or the file that could not be loaded, and what is said of it."""

    word: str
    path: str
    number: int | None
    first: Line
    last: Line
    lines: list[str] = field(default_factory=list)
    traced: bool = False

    def feed(self, line: Line) -> None:
        """Take the next line of the block."""
        self.traced = self.traced or line.text.startswith("stack traceback:")
        if not self.traced and line.text.strip() and len(self.lines) < MAX_LINES:
            self.lines.append(line.text.strip())
            self.last = line


class Reader:
    """Cuts the failures out of one stream."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._open: Block | None = None

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        if heading := _HEADING.match(line.text.rstrip()):
            self._open = _begun(heading[1], heading[2], line)
            if self._open is not None and len(self.blocks) < MAX_BLOCKS:
                self.blocks.append(self._open)
        elif _OTHER.match(line.text):
            self._open = None
        elif self._open is not None:
            self._open.feed(line)


def _begun(word: str, about: str, line: Line) -> Block | None:
    """Return the block that a heading begins: of a test, or of a file that cannot be loaded, which says why at once."""
    if at := _AT.match(about):
        return Block(word, at[1], int(at[2]), line, line)
    placed = _PLACED.match(about)
    return Block(word, placed[1], None, line, line, [placed[1], about]) if placed else None


def extract(request: Request) -> Answer:
    """Answer with the failed tests of all streams, each once."""
    answer = Answer()
    readers = request.read(Reader)
    seen: set[str] = set()
    for block in (block for reader in readers.values() for block in reader.blocks if block.lines):
        if block.lines[0] not in seen:
            _add(answer, request, block)
        seen.add(block.lines[0])
    answer.findings = answer.findings[: request.max_findings]
    return answer


def _add(answer: Answer, request: Request, block: Block) -> None:
    name, said = block.lines[0], block.lines[1:]
    placed = _PLACED.match(said[0]) if said else None
    path, number = (placed[1], int(placed[2])) if placed else (block.path, block.number)
    message = placed[3] if placed else one_line(said[:1])
    if block.number is not None:
        message = one_line([message, *said[1:]])
    answer.add(
        "test",
        status="error" if block.word == "Error" else "failed",
        test_id=request.relative(name) if block.number is None else name,
        message=cut_bytes(message, MAX_MESSAGE_BYTES) or "failed",
        path=request.relative(path),
        line=number,
        evidence=[span(block.first, block.last)],
    )


if __name__ == "__main__":
    main(extract)
