"""What is wrong with a value, in words: the field, what it should have been, and what it is."""

from __future__ import annotations

import re
from enum import Enum
from typing import Any, get_args, get_type_hints

_STEP = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")
_QUOTED = re.compile(r"`(\w+(?: \| \w+)*)`")
_WORDS = {
    "array": "an array",
    "bool": "true or false",
    "datetime": "a time",
    "float": "a number",
    "int": "an integer",
    "object": "an object",
    "str": "a string",
}
_MAX_SHOWN = 60


def fault(message: str, kind: type, data: Any) -> str:
    """Return what a reader said of ``data`` that is no ``kind``, as ``history[2].category: expected …, not 'weird'``.

    The reader's message ends with the place, as in "Expected `int`, got `str` - at `$.usage.tokens`"; none stands for the whole.
    """
    said, _, place = message.rpartition(" - at `") if " - at `" in message else (message, "", "")
    steps = [int(index) if index.isdigit() else name or index for name, index in _STEP.findall(place)]
    path = _path(steps)
    return f"{path + ': ' if path else ''}{_in_words(said, kind, data, steps)}"


def _in_words(said: str, kind: type, data: Any, steps: list[int | str]) -> str:
    for beginning, words in (
        ("Object missing required field `", "missing required field"),
        ("Object contains unknown field `", "unknown field"),
    ):
        if said.startswith(beginning):
            return f"{words} '{said.removeprefix(beginning).removesuffix('`')}'"
    known = _members(kind, steps) if said.startswith("Invalid enum value") else []
    expected = f"expected {' or '.join(known)}" if known else said.partition(", got ")[0]
    words = _QUOTED.sub(lambda m: " or ".join(_WORDS.get(w, w) for w in m[1].split(" | ")), expected)
    return f"{words[:1].lower()}{words[1:]}, not {_shown(data, steps)}"


def _members(kind: Any, steps: list[int | str]) -> list[str]:
    """Return the values of the closed set at a place in a type."""
    for step in steps:
        if isinstance(step, str) and step != "...":
            kind = get_type_hints(_among(kind, "__struct_fields__"))[step]
    closed = _among(kind, "__members__")
    return [str(member.value) for member in closed] if closed else [str(value) for value in get_args(kind)]


def _among(hint: Any, attribute: str) -> Any:
    """Return the class with an attribute in a type, which may be optional or one of several; None where there is none."""
    if isinstance(hint, type) and hasattr(hint, attribute):
        return hint
    return next((found for part in get_args(hint) if (found := _among(part, attribute)) is not None), None)


def _shown(data: Any, steps: list[int | str]) -> str:
    """Return the value at a place, shortened; of an object with any keys the object, since the place does not tell which key."""
    for step in steps:
        if step == "...":
            break
        data = getattr(data, str(step)) if hasattr(data, "__struct_fields__") else data[step]
    given = repr(data.value if isinstance(data, Enum) else data)
    return given if len(given) <= _MAX_SHOWN else f"{given[:_MAX_SHOWN]}…"


def _path(steps: list[int | str]) -> str:
    """Return ``history[2].category`` for a place in nested data."""
    out = ""
    for step in steps:
        out += f"[{step}]" if isinstance(step, int) or step == "..." else f".{step}" if out else step
    return out
