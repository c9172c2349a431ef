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

# What a stretch of output holds that speaks of a failure, in the spellings that cover most others.
_TELLING = (b"rror", b"FAIL", b"xception", b"anic", b"atal")


class Capture:
    """Collects chunks. Those that leave the tail are searched for a few fixed strings, up to a limit; no line is made."""

    def __init__(self) -> None:
        self._head: list[bytes] = []
        self._head_room = CAPTURE_HEAD_BYTES
        self._middle: list[bytes] = []
        self._middle_room = CAPTURE_MIDDLE_BYTES
        self._scan_room = CAPTURE_SCAN_BYTES
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
        """Return what was kept; cuts fall on line ends where there is one, so that no character is split."""
        head, tail = b"".join(self._head), b"".join(self._tail)[-CAPTURE_TAIL_BYTES:]
        if self._total == len(head) + len(tail):
            return Captured(head + tail)
        head = head[: head.rfind(b"\n") + 1] or _whole(head)
        tail = tail[tail.find(b"\n") + 1 :]
        middle = b"".join(self._middle)
        return Captured(head, tail, self._total - len(head) - len(middle) - len(tail), middle)

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
        """Keep a window of whole lines round the first telling string of each kind in a chunk."""
        hits = sorted(at for at in (chunk.find(word) for word in _TELLING) if at >= 0)
        end = 0
        for at in hits:
            if at < end:
                continue
            start = max(end, chunk.rfind(b"\n", max(0, at - CAPTURE_WINDOW_BYTES), at) + 1, at - CAPTURE_WINDOW_BYTES)
            end = chunk.rfind(b"\n", at, at + CAPTURE_WINDOW_BYTES) + 1 or min(len(chunk), at + CAPTURE_WINDOW_BYTES)
            window = chunk[start:end][: self._middle_room]
            self._middle.append(window + b"\n")
            self._middle_room -= len(window) + 1


def _whole(head: bytes) -> bytes:
    """Return the head without a character that its end cuts in half."""
    return head.decode("utf-8", "ignore").encode("utf-8") if not head.isascii() else head
