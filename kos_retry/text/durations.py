"""Durations and sizes as people write them: ``90s``, ``10m``, ``1h30m``, ``500ms``, ``64KiB``.

Hand-written scanning instead of a regular expression: this runs before the wrapped command starts.
"""

from __future__ import annotations

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {"": 1, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "kib": 1024, "mib": 1024**2, "gib": 1024**3}
# Ten years: longer is a slip of the keyboard, and it keeps every sum far from overflow.
_MAX_SECONDS = 10 * 366 * 86400.0


def parse_duration(text: str) -> float:
    """Return the number of seconds that ``text`` names; a bare number is in seconds.

    Raises ValueError with a sentence for people when the text is not a duration.
    """
    total, rest, seen = 0.0, text.strip().lower(), False
    while rest:
        number, unit, rest = _take(rest)
        if not number or (not unit and (rest or seen)):
            break
        seen = True
        factor = _SECONDS.get(unit or "s")
        if factor is None:
            break
        total += float(number) * factor
    else:
        if seen and total <= _MAX_SECONDS:
            return total
    raise ValueError(f"'{text}' is not a duration such as 500ms, 90s, 10m or 1h30m")


def parse_size(text: str) -> int:
    """Return the number of bytes that ``text`` names; a bare number is in bytes."""
    number, unit, rest = _take(text.strip().lower())
    factor = _BYTES.get(unit)
    if not number or rest or factor is None or float(number) * factor > 2**53:
        raise ValueError(f"'{text}' is not a size such as 2048, 64KiB or 10MB")
    return int(float(number) * factor)


def format_duration(seconds: float) -> str:
    """Return the shortest exact-enough form that `parse_duration` reads: ``0.25s``, ``1m30s``."""
    if seconds < 60:
        return (
            f"{seconds:.3f}".rstrip("0").rstrip(".") + "s" if seconds < 1 else f"{seconds:.1f}".removesuffix(".0") + "s"
        )
    whole = round(seconds)
    hours, minutes, left = whole // 3600, whole % 3600 // 60, whole % 60
    return "".join(f"{n}{unit}" for n, unit in ((hours, "h"), (minutes, "m"), (left, "s")) if n)


def format_size(count: int) -> str:
    """Return a size in the largest binary unit that keeps it readable: ``4.0MiB``."""
    size, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{count}B" if unit == "B" else f"{size:.1f}{unit}"


def _take(text: str) -> tuple[str, str, str]:
    """Split a leading number and the letters behind it from ``text``."""
    i = 0
    while i < len(text) and (text[i] in "0123456789" or text[i] == "."):
        i += 1
    number = text[:i]
    if number.count(".") > 1 or number in ("", "."):
        number = ""
    j = i
    while j < len(text) and "a" <= text[j] <= "z":
        j += 1
    return number, text[i:j], text[j:]
