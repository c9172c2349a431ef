"""What a failed step says, in the words of the language that its code is written in."""

from __future__ import annotations

import re
from itertools import takewhile

from kos_retry.sdk import one_line

MAX_SAID = 3

_TYPED = re.compile(r"^((?:[\w$]{1,100}(?:\.|::)){0,16}[A-Z]\w{0,100})(?: \[\w{1,60}\])?:(?: (.{0,4000}))?$")
_TYPED_BEHIND = re.compile(r"^(.{0,4000}) \(([A-Z]\w{0,100}(?:::\w{1,100}){0,8})\)$")
_FRAME = re.compile(r"^(?:at |\S{1,600}:\d{1,9}:in |\+ expected|\.{3} \d)")
_HEAD = "Traceback (most recent call last):"


def read(lines: list[str]) -> tuple[str | None, str]:
    """Return the type and the message; the first lines say them, of a traceback the last one."""
    if lines[0] == _HEAD:
        typed = next((found for line in reversed(lines) if (found := _TYPED.match(line))), None)
        return (typed[1], typed[2] or "") if typed else (None, lines[-1])
    if lines[0].startswith("Undefined. "):
        return None, "undefined step"
    if behind := _TYPED_BEHIND.match(lines[0]):
        return behind[2], behind[1]
    said = list(takewhile(lambda line: not _FRAME.match(line), lines))[:MAX_SAID]
    typed = _TYPED.match(lines[0])
    if typed is None or typed[1] == "Error":
        return None, one_line(said or lines[:1]).removeprefix("Error: ")
    return typed[1], one_line([typed[2] or "", *said[1:]])
