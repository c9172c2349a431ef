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

Place = tuple[str | None, int | None]

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
        self.places: dict[str, Place] = {}
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
    names = Names()
    for report in request.reports:
        for example in examples(report):
            if name := names.of(example.name, example.place):
                _add(answer, request, name, example.saying, example.place)
    readers = request.read(Reader)
    told, names = names.given, Names()
    for reader in readers.values():
        for block in reader.blocks:
            place = (block.file, None) if block.file else reader.places.get(block.name, (None, None))
            saying = read(block.lines)
            name = names.of(request.relative(block.name), place, (saying.path, saying.line))
            if name and name not in told:
                _add(answer, request, name, saying, place, block)
    answer.findings = answer.findings[: request.max_findings]
    return answer


class Names:
    """The names of examples. What has the same description is another example only where it stands or fails elsewhere."""

    def __init__(self) -> None:
        self.given: set[str] = set()
        self._known: set[tuple[str, Place, Place]] = set()

    def of(self, description: str, place: Place, failed_at: Place = (None, None)) -> str:
        """Return the name of an example: its description, with its place where another one has it; nothing if it was named."""
        if (description, place, failed_at) in self._known:
            return ""
        self._known.add((description, place, failed_at))
        first = bool(description) and description not in self.given
        name = description if first else f"{description} ({place[0]}:{place[1]})".strip()
        self.given.add(name)
        return name


def _add(
    answer: Answer,
    request: Request,
    name: str,
    saying: Saying,
    place: Place,
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
