"""Lines of a long text by their number, without splitting all of it: half a million short lines are ten times their text."""

from __future__ import annotations

_NEAR_CHARS = 4096


def lines_at(text: str, number: int, count: int) -> list[str]:
    """Return ``count`` lines from the one with ``number`` (from 1) on, fewer where the text ends."""
    out: list[str] = []
    start = _start_of(text, number)
    while 0 <= start <= len(text) and len(out) < count:
        end = text.find("\n", start)
        out.append(text[start : end if end >= 0 else len(text)])
        start = end + 1 if end >= 0 else -1
    return out


def last_lines(text: str, count: int) -> list[tuple[int, str]]:
    """Return the last ``count`` lines that are not blank, with their numbers."""
    out: list[tuple[int, str]] = []
    number, end = text.count("\n") + 1, len(text)
    while end >= 0 and len(out) < count:
        start = text.rfind("\n", 0, end) + 1
        if text[start:end].strip():
            out.append((number, text[start:end]))
        number, end = number - 1, start - 1
    return out[::-1]


def _start_of(text: str, number: int) -> int:
    """Return where the line with a number starts, -1 where there is none; found by counting line feeds in ever smaller halves."""
    low, high, left = 0, len(text), number - 1
    while left and high - low > _NEAR_CHARS:
        middle = (low + high) // 2
        passed = text.count("\n", low, middle)
        if passed >= left:
            high = middle
        else:
            low, left = middle, left - passed
    for _ in range(left):
        at = text.find("\n", low)
        if at < 0:
            return -1
        low = at + 1
    return low
