"""What a block says: the type and the message of the error, the place, and the cause where that is beyond doubt."""

from __future__ import annotations

import re

from blocks import FILE, MESSAGE_LINES, TYPED, Block, looks_typed
from node_ids import FOREIGN

from kos_retry.sdk import Request
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 2048

SYNTAX = ("SyntaxError", "IndentationError", "TabError")
IMPORTS = ("ImportError", "ModuleNotFoundError")
SYSTEM = ("OSError", "ConnectionError", "gaierror", "ConnectionRefusedError", "ConnectionResetError", "TimeoutError")
# How the line of a group ends.
GROUP = ("sub-exceptions)", "sub-exception)")
# What the system says of a passing state, as OSError words it.
TRANSIENT = (
    "Address already in use",
    "Connection refused",
    "Connection reset by peer",
    "Connection timed out",
    "Temporary failure in name resolution",
)

_ERRNO = re.compile(r"^\[Errno -?\d{1,5}\] ([^:]{1,100})")


def told_by(block: Block, request: Request) -> tuple[str | None, str, tuple[str, int] | None]:
    """Return the type, the message and the place that a block tells of."""
    hint = next((tail for _, _, tail in reversed(block.places) if tail.isidentifier()), "")
    lines = _dedent(block.margin) or _leaves(block.native) or block.native[-1:] or block.said
    places = list(block.places)
    for number, line in enumerate(lines):
        if file := FILE.match(line):
            places.append((file[1], int(file[2]), ""))
        if number and line.startswith(tuple(f"{name}:" for name in SYNTAX)):
            lines = lines[number:]
            break
    error_type, message = split_type("\n".join(lines[:MESSAGE_LINES]).strip(), hint)
    own = [p for p in places if not FOREIGN.search(p[0])]
    place = (request.relative(own[-1][0]), own[-1][1]) if own else None
    return error_type, cut_bytes(message, MAX_MESSAGE_BYTES), place


def _leaves(native: list[str]) -> list[str]:
    """Return the leaves of an exception group, and last the group; nothing where it is none.

    A leaf that is no assertion stands first. The order of the others is the group's.
    """
    if len(native) < 2 or not native[0].endswith(GROUP):
        return []
    leaves = [line for line in native[1:] if not line.endswith(GROUP)]
    leaves.sort(key=lambda line: line.startswith("AssertionError"))
    return [*leaves, native[0]]


def split_type(text: str, hint: str) -> tuple[str | None, str]:
    """Split ``Type: message``; ``hint`` is the type's bare name where the report gives it."""
    first, _, rest = text.partition("\n")
    if (match := TYPED.match(first)) and (match[1].rpartition(".")[2] == hint or (not hint and looks_typed(first))):
        return match[1], "\n".join(part for part in (match[2], rest) if part)
    if first.startswith("assert "):
        return hint or "AssertionError", text
    return hint or None, text


def cause_of(error_type: str | None, message: str, collecting: bool) -> dict[str, str] | None:
    """Return why a test failed, where that is beyond doubt."""
    name, first = (error_type or "").rpartition(".")[2], message.partition("\n")[0]
    evidence = f"{error_type}: {first}" if error_type else first
    rule = fix = ""
    if collecting and name in SYNTAX:
        rule, fix = "syntax", "correct the syntax at the named line"
    elif collecting and name in IMPORTS:
        rule, fix = "import", "install the missing module, or correct the import"
    elif not error_type and first.startswith("fixture '") and first.endswith("' not found"):
        rule, fix = "fixture", "define the fixture, or correct its name"
    if rule:
        return {"kind": "deterministic", "rule": f"pytest-{rule}", "evidence": evidence, "fix": fix}
    errno = _ERRNO.match(first) if name.endswith(SYSTEM) else None
    if errno and errno[1].strip() in TRANSIENT:
        return {"kind": "transient", "rule": "pytest-system-error", "evidence": evidence}
    return None


def _dedent(margin: list[str]) -> list[str]:
    """Return the lines of a margin without the indentation of the first one."""
    lead = len(margin[0]) - len(margin[0].lstrip()) if margin else 0
    return [line[lead:].rstrip() if not line[:lead].strip() else line.strip() for line in margin]
