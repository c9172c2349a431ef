"""What is said of a failure: the message, the type of what was raised, and the first place in the own code."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple

from kos_retry.sdk import one_line
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 2048
MESSAGE_LINES = 8

_SUB = re.compile(r"^\d{1,6}\.\d{1,6}\) ")
_RAISED = re.compile(r"^([A-Z]\w{0,100}(?:::\w{1,100}){0,8}):$")
_FRAME = re.compile(r"^# (\S{1,600}?):(\d{1,9})(?::in |$)")
_FOREIGN = re.compile(r"/gems/|/lib/ruby/|^<internal:|/bin/|^\(eval")
IMPORTS = ("LoadError", "SyntaxError")


class Saying(NamedTuple):
    """What one failure says."""

    message: str
    error_type: str | None = None
    path: str | None = None
    line: int | None = None
    cause: dict[str, str] | None = None


def read(lines: Iterable[str]) -> Saying:
    """Read the lines below the name of an example."""
    said = [_SUB.sub("", line.strip()) for line in lines]
    starts = [n for n, line in enumerate(said) if line.startswith("Failure/Error:")]
    code = said[starts[0] :] if starts else said
    # The code that failed ends with an empty line, the message with the first frame.
    after = code[code.index("") + 1 :] if starts and "" in code else code
    message = list(takewhile(lambda line: not line.startswith("# ") and not line.startswith("Failure/Error:"), after))
    while message and not message[0]:
        del message[0]
    raised = _RAISED.match(message[0]) if message else None
    path, line = place_of(line[2:] for line in said if _FRAME.match(line))
    return told(raised[1] if raised else None, message[1:] if raised else message, path, line)


def told(error_type: str | None, message: list[str], path: str | None, line: int | None) -> Saying:
    """Return a saying; what was expected and what came stand in several lines and make one."""
    first = list(takewhile(bool, message))
    rest = message[len(first) :]
    lines = [one_line(first), *(text for text in rest if text)][:MESSAGE_LINES]
    whole = cut_bytes("\n".join(lines).strip(), MAX_MESSAGE_BYTES)
    return Saying(whole, error_type, path, line, _cause(error_type, whole))


def place_of(frames: Iterable[str]) -> tuple[str | None, int | None]:
    """Return the first frame of a backtrace that is in no library."""
    for frame in frames:
        if (found := _FRAME.match(f"# {frame}")) and not _FOREIGN.search(found[1]):
            return found[1], int(found[2])
    return None, None


def _cause(error_type: str | None, message: str) -> dict[str, str] | None:
    if error_type not in IMPORTS:
        return None
    fix = "install what is missing, or correct the name" if error_type == "LoadError" else "correct the syntax"
    evidence = f"{error_type}: {message}".partition("\n")[0]
    return {"kind": "deterministic", "rule": "rspec-load", "evidence": evidence, "fix": fix}
