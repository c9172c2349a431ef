"""Failed tests from what Bats prints on a terminal; elsewhere it prints the Test Anything Protocol."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kos_retry.sdk import Answer, Line, Request, main, one_line, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 2048
MAX_LINES = 40
MAX_BLOCKS = 2000

MAX_NAME_CHARS = 500

_TOTAL_TIME = re.compile(r"^\d{1,9} tests?, .{1,100} in \d{1,9} seconds?$")
_TIME = re.compile(r" \[\d{1,9}(?: ms)?\]$")
_PLACE = re.compile(r"^ {3,4}\(?(?:from function .{1,200} )?in test file (.{1,600}), line (\d{1,9})\)$")
# The line of the next test, over which the counter was written before the result.
_NEXT = re.compile(r"^ {3}.{1,500}?\d{1,6}/\d{1,6}(?: in \d{1,6} sec)? (?:✓|-) ")
_WITHIN = re.compile(r"^ {3}\(from function .{1,400} in file (.{1,600}), line \d{1,9},$")


@dataclass(slots=True)
class Test:
    """One test that failed; ``place`` is what shows that it is one of Bats."""

    name: str
    first: Line
    last: Line
    place: tuple[str, int] | None = None
    lines: list[str] = field(default_factory=list)


class Reader:
    """Cuts the failures out of one stream."""

    def __init__(self) -> None:
        self.tests: list[Test] = []
        self.timed = False
        self._open: Test | None = None

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text, test = line.text.rstrip(), self._open
        _, cross, title = text.rpartition("✗ ")
        if cross and len(self.tests) < MAX_BLOCKS:
            self._open = Test(title[:MAX_NAME_CHARS], line, line)
            self.tests.append(self._open)
        elif _TOTAL_TIME.match(text):
            self.timed = True
        elif test is None or not text.startswith("   ") or _NEXT.match(text):
            self._open = None
        elif place := _PLACE.match(text):
            test.place, test.last = (place[1], int(place[2])), line
        elif not _WITHIN.match(text) and len(test.lines) < MAX_LINES:
            test.lines.append(text)
            test.last = line


def extract(request: Request) -> Answer:
    """Answer with the failed tests of all streams, each once."""
    answer = Answer()
    readers = request.read(Reader)
    seen: set[str] = set()
    for timed, test in ((reader.timed, test) for reader in readers.values() for test in reader.tests):
        name = _TIME.sub("", test.name) if timed else test.name
        if test.place is not None and name not in seen:
            seen.add(name)
            answer.add(
                "test",
                test_id=name,
                message=cut_bytes(one_line(test.lines), MAX_MESSAGE_BYTES) or "failed",
                path=request.relative(test.place[0]),
                line=test.place[1],
                evidence=[span(test.first, test.last)],
            )
    answer.findings = answer.findings[: request.max_findings]
    return answer


if __name__ == "__main__":
    main(extract)
