"""What is noted below a result: a block of YAML, or comments."""

from __future__ import annotations

import json
import re

from kos_retry.sdk import Request

MESSAGE_LINES = 8

_KEY = re.compile(r"^( {0,160})([A-Za-z_]\w{0,40}|'[^']{1,200}'): ?(.{0,4000})$")
_SCALAR = re.compile(r"^[|>][-+\d]{0,3}$")
_POINT = re.compile(r"(?:^|[\s(])(?:file://)?([^\s()'\":]{1,600}\.[A-Za-z]\w{0,5}):(\d{1,9})(?::(\d{1,9}))?\)?$")
_PLACE = re.compile(r"^ {0,128}# {1,4}(?:at |\(in test file |\(from .{1,300} in file )(\S.{0,600}?),? line (\d{1,9})")
_TYPED = re.compile(r"^([A-Z]\w{0,100}(?:Error|Exception)|Error)(?: \[(\w{1,60})\])?: (.{1,4000})$")
_FOREIGN = re.compile(r"node_modules/|node:|^internal/|^<")


def told_by(notes: list[str]) -> dict[str, str]:
    """Return what the notes tell, by the names of YAML's fields."""
    return _yaml(notes) if any(note.strip() == "---" for note in notes) else _plain(notes)


def place_of(request: Request, told: dict[str, str], notes: list[str]) -> tuple[str | None, int | None, int | None]:
    """Return the innermost frame that is in no library, else where the test is said to be."""
    stack = told.get("stack", "").split("\n") if "stack" in told else [note.strip(" #") for note in notes]
    for text in (*stack, told.get("location", ""), told.get("at", "")):
        if (point := _POINT.search(text[-700:])) and not _FOREIGN.search(point[1]):
            return request.relative(point[1]), int(point[2]), int(point[3]) if point[3] else None
    if place := next((found for note in notes if (found := _PLACE.match(note))), None):
        return request.relative(place[1]), int(place[2]), None
    number = told.get("line", "")
    return told.get("file"), int(number) if number.isdecimal() and len(number) < 10 else None, None


def _yaml(notes: list[str]) -> dict[str, str]:
    """Return the fields of a block of YAML that say something, wherever they are nested, the first of each name."""
    told: dict[str, str] = {}
    at = 0
    while at < len(notes):
        found = _KEY.match(notes[at])
        at += 1
        if found is None:
            continue
        value, indent = found[3].strip(), len(found[1])
        if _SCALAR.match(value):
            block: list[str] = []
            while at < len(notes) and (not notes[at].strip() or notes[at][: indent + 1].isspace()):
                block.append(notes[at].strip())
                at += 1
            value = (" " if value.startswith(">") else "\n").join(text for text in block if text)
        if value and value != "~" and found[2].startswith("'"):
            # A heading rather than a field: what a library says of a comparison.
            told.setdefault("details", f"{_unquoted(found[2])}\n{value}")
        elif value and value != "~":
            told.setdefault(found[2], _unquoted(value))
    return told


def _unquoted(value: str) -> str:
    if value.startswith("'") and value.endswith("'") and len(value) > 1:
        return value[1:-1].replace("''", "'")
    if value.startswith('"') and value.endswith('"') and len(value) > 1:
        try:
            return str(json.loads(value))
        except (ValueError, RecursionError):
            return value[1:-1]
    return value.removeprefix('"')


def _plain(notes: list[str]) -> dict[str, str]:
    """Return what comments or indented lines say: a typed error, else all of them that are no place."""
    said = [note.strip(" #") for note in notes if not _PLACE.match(note)]
    if typed := next((found for text in said if (found := _TYPED.match(text))), None):
        return {"name": typed[1], "code": typed[2] or "", "message": typed[3]}
    return {"message": "\n".join([text for text in said if text and not text.startswith("at ")][:MESSAGE_LINES])}
