"""Failed tests from what Minitest prints, numbered at the end or, under Rails, as they fail."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kos_retry.sdk import Answer, Line, Request, main, one_line, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 2048
MESSAGE_LINES = 8
MAX_LINES = 60
MAX_BLOCKS = 2000

_HEADING = re.compile(r"^(?: {1,5}\d{1,6}\) )?(Failure|Error|Skipped):$")
_NAME = re.compile(r"^([^\s#][^#]{0,400}#.{1,400}?)(?: \[([^\[\]]{1,600}):(\d{1,9})\])?:$")
_RAISED = re.compile(r"^([A-Z]\w{0,100}(?:::\w{1,100}){0,8}): ?(.{0,4000})$")
_FRAME = re.compile(r"^ {4}(\S.{0,600}?):(\d{1,9}):in ")
_END = re.compile(r"^(?:\d{1,9} (?:runs|tests), |Finished in |(?:bin/)?rails test |rake aborted)")
_FOREIGN = re.compile(r"/gems/|/lib/ruby/|^<internal:")


@dataclass(slots=True)
class Block:
    """One failure: its test, and what is said of it."""

    word: str
    first: Line
    last: Line
    name: str = ""
    place: tuple[str, int] | None = None
    lines: list[str] = field(default_factory=list)


class Reader:
    """Cuts the failures out of one stream."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._open: Block | None = None

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text, block = line.text.rstrip(), self._open
        if heading := _HEADING.match(text):
            self._open = Block(heading[1], line, line) if len(self.blocks) < MAX_BLOCKS else None
        elif block is None or _END.match(text):
            self._open = None
        elif not block.name:
            self._name(block, text, line)
        elif len(block.lines) < MAX_LINES:
            block.lines.append(text)
            block.last = line if text else block.last

    def _name(self, block: Block, text: str, line: Line) -> None:
        found = _NAME.match(text)
        if found is None or block.word == "Skipped":
            self._open = None
            return
        block.name, block.last = found[1], line
        block.place = (found[2], int(found[3])) if found[2] else None
        self.blocks.append(block)


def extract(request: Request) -> Answer:
    """Answer with the failed tests of all streams, each once."""
    answer = Answer()
    readers = request.read(Reader)
    first = {block.name: block for reader in readers.values() for block in reversed(reader.blocks)}
    for block in sorted(first.values(), key=lambda block: (block.first.source, block.first.start)):
        _add(answer, request, block)
    answer.findings = answer.findings[: request.max_findings]
    return answer


def _add(answer: Answer, request: Request, block: Block) -> None:
    said = [line for line in block.lines if not _FRAME.match(line)]
    raised = _RAISED.match(said[0]) if said and block.word == "Error" else None
    if raised:
        said[0] = raised[2]
    end = said.index("") if "" in said else len(said)
    lines = [one_line(said[:end]), *(text.strip() for text in said[end:] if text)][:MESSAGE_LINES]
    path, number = block.place or _own_frame(block.lines) or (None, None)
    answer.add(
        "test",
        status="error" if block.word == "Error" else "failed",
        test_id=block.name,
        error_type=raised[1] if raised else None,
        message=cut_bytes("\n".join(lines).strip(), MAX_MESSAGE_BYTES) or "failed",
        path=request.relative(path) if path else None,
        line=number,
        evidence=[span(block.first, block.last)],
    )


def _own_frame(lines: list[str]) -> tuple[str, int] | None:
    frames = (found for line in lines if (found := _FRAME.match(line)) and not _FOREIGN.search(found[1]))
    return next(((frame[1], int(frame[2])) for frame in frames), None)


if __name__ == "__main__":
    main(extract)
