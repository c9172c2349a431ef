"""What a block says: the message, the type of what was thrown, and the place in the own code."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import NamedTuple

from blocks import Block

from kos_retry.sdk import one_line

MESSAGE_LINES = 8

_RAISED = re.compile(r"^([A-Z]\w{0,100}(?:\\\w{1,100}){0,12}): (.{0,4000})$")
_PLACE = re.compile(r"^(?:at )?(\S.{0,600}\.\w{1,8}):(\d{1,9})$")


class Saying(NamedTuple):
    """What one failure says."""

    message: str
    error_type: str | None
    path: str | None
    line: int | None


def read(block: Block) -> Saying:
    """Read the lines of a block: the message down to the stack, which an empty line parts from it."""
    message = list(takewhile(lambda line: not _PLACE.match(line), block.lines))
    while message and not message[0]:
        del message[0]
    raised = _RAISED.match(message[0]) if message else None
    if raised:
        message[0] = raised[2]
    first = list(takewhile(lambda line: line and not line.startswith("--- "), message))
    rest = [line for line in message[len(first) :] if line]
    changed = [line for line in rest if line.startswith(("+", "-")) and not line.startswith(("+++ ", "--- "))]
    error_type = raised[1] if raised else block.raised
    places = [found for line in block.lines if (found := _PLACE.match(line))]
    own = next((place for place in places if "/vendor/" not in f"/{place[1]}"), None)
    lines = [one_line([*(first or rest[:1]), *changed]), *rest][:MESSAGE_LINES]
    return Saying("\n".join(lines), error_type, own[1] if own else None, int(own[2]) if own else None)
