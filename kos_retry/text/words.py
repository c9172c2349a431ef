"""Small words for sentences that hold numbers."""

from __future__ import annotations


def count(number: int, noun: str) -> str:
    """Return ``1 attempt``, ``2 attempts``; ``process`` becomes ``processes``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}{'es' if noun.endswith(('s', 'x', 'ch', 'sh')) else 's'}"
