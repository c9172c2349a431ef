"""The last lines of the output: what is left to show where nobody knows the tool that failed."""

from __future__ import annotations

from collections import deque

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import byte_length, cut_bytes

MAX_LINES = 40
MAX_BYTES = 4096
# The end of a stream that holds more than enough lines.
READ_BYTES = 64 * 1024
# Where several streams say something, the first of these is read.
PREFERENCE = ("stderr", "output", "stdout")


def extract(request: Request) -> Answer:
    """Answer with one guess made of the last lines, or with nothing where nothing was printed."""
    answer = Answer()
    tails = _tails(request)
    source = next((name for name in PREFERENCE if name in tails), min(tails, default=None))
    if source is not None:
        lines = _fitting(tails[source])
        message = cut_bytes("\n".join(line.text.rstrip() for line in lines), MAX_BYTES)
        answer.add("diagnostic", message=message, confidence="guess", evidence=[span(lines[0], lines[-1])])
    return answer


def _tails(request: Request) -> dict[str, deque[Line]]:
    """Return the last non-blank lines of every stream that has any."""
    tails: dict[str, deque[Line]] = {}
    for line in request.lines(last_bytes=READ_BYTES):
        if line.text.strip():
            tails.setdefault(line.source, deque(maxlen=MAX_LINES)).append(line)
    return tails


def _fitting(tail: deque[Line]) -> list[Line]:
    """Return the last whole lines that fit together, and the very last one in any case."""
    kept = [tail[-1]]
    room = MAX_BYTES - byte_length(tail[-1].text.rstrip())
    for line in list(tail)[-2::-1]:
        room -= byte_length(line.text.rstrip()) + 1
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]


if __name__ == "__main__":
    main(extract)
