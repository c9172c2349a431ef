"""The JSON report of RSpec: its failed examples."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from saying import Saying, place_of, told

from kos_retry.text.escapes import plain_text

MAX_FILE_BYTES = 64 * 1024 * 1024
MAX_FRAMES = 200
# How an expectation that was not met is raised: it says no more than that the example failed.
NOT_MET = ("ExpectationNotMetError", "MultipleExpectationsNotMetError")


class Example(NamedTuple):
    """One failed example: its whole description, where it stands, and what it says."""

    name: str
    place: tuple[str | None, int | None]
    saying: Saying


def examples(path: str) -> Iterator[Example]:
    """Yield the failed examples of the report at ``path``; nothing where it is no such report, or cut off."""
    with open(path, "rb") as report:
        raw = report.read(MAX_FILE_BYTES)
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return
    listed = data.get("examples") if isinstance(data, dict) else None
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, dict) and entry.get("status") == "failed":
            yield _example(entry)


def _example(entry: dict[str, Any]) -> Example:
    exception = entry.get("exception")
    exception = exception if isinstance(exception, dict) else {}
    frames = exception.get("backtrace")
    path, line = place_of(str(frame) for frame in (frames if isinstance(frames, list) else [])[:MAX_FRAMES])
    raised = _text(exception.get("class"))
    message = [text.strip() for text in _text(exception.get("message")).strip().splitlines()]
    number = entry.get("line_number")
    place = (_text(entry.get("file_path")) or None, number if isinstance(number, int) and number > 0 else None)
    return Example(
        _text(entry.get("full_description")).strip(),
        place,
        told(None if raised.endswith(NOT_MET) else raised or None, message, path, line),
    )


def _text(value: Any) -> str:
    return plain_text(value) if isinstance(value, str) else ""
