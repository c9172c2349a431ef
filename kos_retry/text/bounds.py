"""Cutting text to a number of bytes without splitting a character or a line."""

from __future__ import annotations


def cut_bytes(text: str, limit: int) -> str:
    """Return the longest prefix of ``text`` whose UTF-8 form has at most ``limit`` bytes."""
    if len(text) * 4 <= limit:
        return text
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return text
    return raw[: max(0, limit)].decode("utf-8", "ignore")


def byte_length(text: str) -> int:
    """Return the size of ``text`` in UTF-8 bytes."""
    return len(text.encode("utf-8", "replace"))


def well_formed(text: str) -> str:
    """Return ``text`` with lone surrogates replaced, so that it can be encoded."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
