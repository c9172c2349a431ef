"""Failed examples from what RSpec prints below `Failures:`, and from its JSON report.

An example is called by its whole description. What is pending fails by intention and is not told.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from json_report import examples
from saying import Saying, read

from kos_retry.sdk import Answer, Line, Request, main, span

MAX_LINES = 80
MAX_BLOCKS = 2000
MAX_NAME_CHARS = 500

_ENTRY = re.compile(r"^ {2,6}\d{1,6}\) (.{0,2000})$")
_OUTSIDE = re.compile(r"^An error occurred (while loading|in an?) (.{1,400}?)\.?(?: - Did you mean\?)?$")
_RERUN = re.compile(r"^rspec (\S{1,600}?)(?::(\d{1,9})|\[[\d:]{1,60}\])? # (.{0,2000})$")
_END = re.compile(r"^(?:Finished in |Failed examples:|Pending: |\d{1,9} examples?, |Coverage report )")


@dataclass(slots=True)
class Block:
    """One failure: the example, or what failed outside of all examples, and what is said of it."""

    name: str
    first: Line
    last: Line
    file: str = ""
    lines: list[str] = field(default_factory=list)

    def feed(self, line: Line) -> None:
        """Take the next line of the block."""
        if line.text.strip() and len(self.lines) < MAX_LINES:
            self.last = line
        self.lines = [*self.lines, line.text] if len(self.lines) < MAX_LINES else self.lines


class Reader:
    """Cuts the failures out of one stream."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.places: dict[str, tuple[str, int | None]] = {}
        self._failures = False
        self._open: Block | None = None

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text.rstrip()
        if text == "Failures:":
            self._failures, self._open = True, None
        elif _END.match(text):
            self._failures, self._open = False, None
        elif outside := _OUTSIDE.match(text):
            loading = outside[1] == "while loading"
            self._begin(Block(outside[2] if loading else text, line, line, outside[2] if loading else ""))
        elif self._failures and (entry := _ENTRY.match(line.text)):
            self._begin(Block(entry[1].strip()[:MAX_NAME_CHARS], line, line))
        elif rerun := _RERUN.match(line.text):
            self.places.setdefault(rerun[3].strip(), (rerun[1], int(rerun[2]) if rerun[2] else None))
        elif self._open is not None:
            self._open.feed(line)

    def _begin(self, block: Block) -> None:
        self._open = block if len(self.blocks) < MAX_BLOCKS else None
        if self._open is not None:
            self.blocks.append(block)


def extract(request: Request) -> Answer:
    """Answer with the failed examples of all reports and streams, each once."""
    answer = Answer()
    seen: dict[str, int] = {}
    for report in request.reports:
        for example in examples(report.path):
            name = _distinct(example.name, example.place, seen)
            _add(answer, request, name, example.saying, example.place)
    readers: dict[str, Reader] = {}
    for line in request.lines():
        readers.setdefault(line.source, Reader()).feed(line)
    told = set(seen)
    seen.clear()
    for reader in readers.values():
        for block in reader.blocks:
            place = (block.file, None) if block.file else reader.places.get(block.name, (None, None))
            name = _distinct(request.relative(block.name), place, seen)
            if name not in told:
                _add(answer, request, name, read(block.lines), place, block)
    answer.findings = answer.findings[: request.max_findings]
    return answer


def _distinct(name: str, place: tuple[str | None, int | None], seen: dict[str, int]) -> str:
    """Return the name; of several examples that are called the same, the later ones with their place."""
    seen[name] = seen.get(name, 0) + 1
    return name if name and seen[name] == 1 else f"{name} ({place[0]}:{place[1]})".strip()


def _add(
    answer: Answer,
    request: Request,
    name: str,
    saying: Saying,
    place: tuple[str | None, int | None],
    block: Block | None = None,
) -> None:
    path, line = (saying.path, saying.line) if saying.path else place
    answer.add(
        "test",
        status="error" if saying.error_type else "failed",
        test_id=name,
        error_type=saying.error_type,
        message=saying.message or "failed",
        path=request.relative(path) if path else None,
        line=line,
        evidence=[span(block.first, block.last)] if block else [],
        confidence="likely" if block else "exact",
        cause=saying.cause,
    )


if __name__ == "__main__":
    main(extract)
