"""Keeping the head, the tail and the telling middle of a stream in bounded memory while it passes through."""

from __future__ import annotations

from kos_retry.limits import (
    CAPTURE_HEAD_BYTES,
    CAPTURE_MIDDLE_BYTES,
    CAPTURE_SCAN_BYTES,
    CAPTURE_TAIL_BYTES,
    CAPTURE_WINDOW_BYTES,
)
from kos_retry.outcome import Captured

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# What a stretch of output holds that speaks of a failure: words that stand in front of one, of which several are kept in a chunk…
_ANNOUNCING = (
    b"rror: ",
    b"rror:\n",
    b"ERROR ",
    b"FAIL: ",
    b"FAILED ",
    b"xception: ",
    b"anic: ",
    b"atal: ",
    b"FATAL",
    b"Traceback",
)
_ANNOUNCED_A_CHUNK = 4
# … and spellings that cover most others, which file names and sums hold as well: they get a part of the room.
_TELLING = (b"rror", b"FAIL", b"xception", b"anic", b"atal")
_TELLING_BYTES = CAPTURE_MIDDLE_BYTES // 4


class Capture:
    """Collects chunks. Those that leave the tail are searched for a few fixed strings; no line is made.

    The search ends at a limit, unless the ``whole`` stream is to be searched.
    """

    def __init__(self, *, whole: bool = False) -> None:
        self._head: list[bytes] = []
        self._head_room = CAPTURE_HEAD_BYTES
        self._middle: list[bytes] = []
        self._middle_room = CAPTURE_MIDDLE_BYTES
        self._telling_room = _TELLING_BYTES
        self._scan_room = float("inf") if whole else CAPTURE_SCAN_BYTES
        self._tail: list[bytes] = []
        self._tail_size = 0
        self._first = 0
        self._total = 0

    def add(self, chunk: bytes) -> None:
        """Take the next chunk of the stream."""
        self._total += len(chunk)
        if self._head_room > 0:
            self._head.append(chunk[: self._head_room])
            rest = chunk[self._head_room :]
            self._head_room -= len(chunk) - len(rest)
            if not rest:
                return
            chunk = rest
        self._tail.append(chunk)
        self._tail_size += len(chunk)
        while self._tail_size - len(self._tail[self._first]) >= CAPTURE_TAIL_BYTES:
            self._drop_oldest()

    def result(self) -> Captured:
        """Return what was kept; cuts fall on line ends where one is near, and on the ends of characters elsewhere."""
        head, tail = b"".join(self._head), b"".join(self._tail)[-CAPTURE_TAIL_BYTES:]
        if self._total == len(head) + len(tail):
            return Captured(head + tail)
        head, tail = _cut_end(head), _cut_start(tail)
        middle = tuple(self._middle)
        return Captured(head, tail, self._total - len(head) - sum(map(len, middle)) - len(tail), middle)

    def _drop_oldest(self) -> None:
        chunk = self._tail[self._first]
        self._tail[self._first] = b""
        self._tail_size -= len(chunk)
        self._first += 1
        # Taking spent entries one by one from the front would move the list each time.
        if self._first > 64:
            del self._tail[: self._first]
            self._first = 0
        if self._middle_room > 0 and self._scan_room > 0:
            self._scan_room -= len(chunk)
            self._keep_telling(chunk)

    def _keep_telling(self, chunk: bytes) -> None:
        """Keep windows of whole lines round the telling strings in a chunk."""
        announced = [at for word in _ANNOUNCING for at in _first_places(chunk, word)]
        told = [at for at in (chunk.find(word) for word in _TELLING) if at >= 0] if self._telling_room > 0 else []
        end = 0
        for at in sorted({*announced, *told}):
            if at < end:
                continue
            start = max(end, chunk.rfind(b"\n", max(0, at - CAPTURE_WINDOW_BYTES), at) + 1, at - CAPTURE_WINDOW_BYTES)
            end = chunk.rfind(b"\n", at, at + CAPTURE_WINDOW_BYTES) + 1 or min(len(chunk), at + CAPTURE_WINDOW_BYTES)
            window = _cut_end(_cut_start(chunk[start:end][: self._middle_room], at_most=0), at_most=0)
            self._middle.append(window)
            self._middle_room -= len(window)
            if at not in announced:
                self._telling_room -= len(window)


def _first_places(chunk: bytes, word: bytes) -> Iterator[int]:
    """Yield where a word stands in a chunk, a few times, each far enough from the last to need a window of its own."""
    at = -CAPTURE_WINDOW_BYTES
    for _ in range(_ANNOUNCED_A_CHUNK):
        at = chunk.find(word, max(0, at + CAPTURE_WINDOW_BYTES))
        if at < 0:
            return
        yield at


def captured(chunks: Iterable[bytes]) -> Captured:
    """Return what `run` would have kept of an output; all of it is searched, since no command waits meanwhile."""
    capture = Capture(whole=True)
    for chunk in chunks:
        capture.add(chunk)
    return capture.result()


def _cut_end(part: bytes, at_most: int = CAPTURE_WINDOW_BYTES) -> bytes:
    """Return a part without the broken line at its end, if that is short, else without the broken character."""
    newline = part.rfind(b"\n", max(0, len(part) - at_most))
    if newline >= 0 and at_most:
        return part[: newline + 1]
    for size in range(1, min(4, len(part)) + 1):
        lead = part[-size]
        if lead < 0x80:
            return part
        if lead >= 0xC0:
            # A character's first byte says how long it is.
            whole = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return part if size >= whole else part[:-size]
    return part


def _cut_start(part: bytes, at_most: int = CAPTURE_WINDOW_BYTES) -> bytes:
    """Return a part without the broken line at its start, if that is short, else without the broken character."""
    newline = part.find(b"\n", 0, at_most)
    if newline >= 0 and newline + 1 < len(part):
        return part[newline + 1 :]
    skip = 0
    while skip < min(3, len(part)) and 0x80 <= part[skip] < 0xC0:
        skip += 1
    return part[skip:]
