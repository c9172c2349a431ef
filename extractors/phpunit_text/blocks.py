"""One failure as it was printed: the test, and the lines below it."""

from __future__ import annotations

from dataclasses import dataclass, field

from kos_retry.sdk import Line

MAX_LINES = 80


@dataclass(slots=True)
class Block:
    """One failure; ``raised`` is the type of what was thrown where the heading names it."""

    name: str
    first: Line
    last: Line
    raised: str | None = None
    lines: list[str] = field(default_factory=list)

    def feed(self, text: str, line: Line) -> None:
        """Take the next line of the block, without its margin."""
        if len(self.lines) < MAX_LINES:
            self.lines.append(text.rstrip())
            self.last = line if text.strip() else self.last
