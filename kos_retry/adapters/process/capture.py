"""Keeping the head and the tail of a stream in bounded memory while it passes through."""

from __future__ import annotations

from kos_retry.limits import CAPTURE_HEAD_BYTES, CAPTURE_TAIL_BYTES
from kos_retry.outcome import Captured


class Capture:
    """Collects chunks; no chunk is looked into, so that the cost is the same for any content."""

    def __init__(self, head_bytes: int = CAPTURE_HEAD_BYTES, tail_bytes: int = CAPTURE_TAIL_BYTES) -> None:
        self._head_bytes = head_bytes
        self._tail_bytes = tail_bytes
        self._head: list[bytes] = []
        self._head_size = 0
        self._tail: list[bytes] = []
        self._tail_size = 0
        self._first = 0
        self._total = 0

    def add(self, chunk: bytes) -> None:
        """Take the next chunk of the stream."""
        self._total += len(chunk)
        room = self._head_bytes - self._head_size
        if room > 0:
            self._head.append(chunk[:room])
            self._head_size += min(room, len(chunk))
            chunk = chunk[room:]
            if not chunk:
                return
        self._tail.append(chunk)
        self._tail_size += len(chunk)
        while self._tail_size - len(self._tail[self._first]) >= self._tail_bytes:
            self._tail_size -= len(self._tail[self._first])
            self._tail[self._first] = b""
            self._first += 1
        # Dropping spent entries one by one from the front would move the list each time.
        if self._first > 64:
            del self._tail[: self._first]
            self._first = 0

    def result(self) -> Captured:
        """Return what was kept; cuts fall on line ends where there is one, so that no character is split."""
        head, tail = b"".join(self._head), b"".join(self._tail)[-self._tail_bytes :]
        omitted = self._total - len(head) - len(tail)
        if not omitted:
            return Captured(head + tail)
        head, tail = head[: head.rfind(b"\n") + 1] or _whole(head), tail[tail.find(b"\n") + 1 :]
        return Captured(head, tail, self._total - len(head) - len(tail))


def _whole(head: bytes) -> bytes:
    """Return the head without a character that its end cuts in half."""
    return head.decode("utf-8", "ignore").encode("utf-8") if not head.isascii() else head
