"""Failed tests from what test-unit prints between rules as they fail."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kos_retry.sdk import Answer, Line, Request, main, one_line, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 2048
MAX_LINES = 80
MAX_BLOCKS = 2000

_HEADING = re.compile(r"^(Failure|Error): (.{1,500}?)\(([A-Z][\w:]{0,300})\)(?::(?: (.{0,4000}))?)?$")
_RULE = re.compile(r"^={20,400}$")
_FRAME = re.compile(r"^(\S.{0,600}?):(\d{1,9}):in [`']")
_SOURCE = re.compile(r"^ {1,8}(?:=> {1,8})?\d{1,9}:(?: |$)")
_RAISED = re.compile(r"^([A-Z]\w{0,100}(?:::\w{1,100}){0,8}): (.{0,4000})$")
_FOREIGN = re.compile(r"/gems/|/lib/ruby/|^<internal:")


@dataclass(slots=True)
class Block:
    """One failure: its test, and the lines down to the next rule."""

    word: str
    name: str
    first: Line
    last: Line
    said: list[str]
    frames: list[tuple[str, int]] = field(default_factory=list)

    def feed(self, line: Line) -> None:
        """Take the next line of the block."""
        self.last = line
        if frame := _FRAME.match(line.text):
            if len(self.frames) < MAX_LINES:
                self.frames.append((frame[1], int(frame[2])))
        elif not _SOURCE.match(line.text) and len(self.said) < MAX_LINES:
            self.said.append(line.text.strip())


class Reader:
    """Cuts the failures out of one stream; each stands between two rules."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._open: Block | None = None
        self._ruled = False

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        ruled, self._ruled = self._ruled, bool(_RULE.match(line.text))
        if self._ruled:
            self._open = None
        elif ruled and (heading := _HEADING.match(line.text)) and len(self.blocks) < MAX_BLOCKS:
            name = f"{heading[2]}({heading[3]})"
            self._open = Block(heading[1], name, line, line, [heading[4] or ""])
            self.blocks.append(self._open)
        elif self._open is not None:
            self._open.feed(line)


def extract(request: Request) -> Answer:
    """Answer with the failed tests of all streams, each once."""
    answer = Answer()
    readers = request.read(Reader)
    seen: set[str] = set()
    for block in (block for reader in readers.values() for block in reader.blocks):
        if block.name not in seen:
            _add(answer, request, block)
        seen.add(block.name)
    answer.findings = answer.findings[: request.max_findings]
    return answer


def _add(answer: Answer, request: Request, block: Block) -> None:
    said = [text for text in block.said if text]
    raised = _RAISED.match(said[0]) if said and block.word == "Error" else None
    message = raised[2] if raised else one_line(said)
    path, number = next((frame for frame in block.frames if not _FOREIGN.search(frame[0])), (None, None))
    answer.add(
        "test",
        status="error" if block.word == "Error" else "failed",
        test_id=block.name,
        error_type=raised[1] if raised else None,
        message=cut_bytes(message, MAX_MESSAGE_BYTES) or "failed",
        path=request.relative(path) if path else None,
        line=number,
        evidence=[span(block.first, block.last)],
    )


if __name__ == "__main__":
    main(extract)
