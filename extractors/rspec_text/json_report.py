"""The JSON report of RSpec: its failed examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from saying import Saying, place_of, told

from kos_retry.sdk import Report
from kos_retry.sdk.json_files import document, object_of, objects_of
from kos_retry.text.escapes import plain_text

MAX_FRAMES = 200
# How an expectation that was not met is raised: it says no more than that the example failed.
NOT_MET = ("ExpectationNotMetError", "MultipleExpectationsNotMetError")


class Example(NamedTuple):
    """One failed example: its whole description, where it stands, and what it says."""

    name: str
    place: tuple[str | None, int | None]
    saying: Saying


def examples(report: Report) -> Iterator[Example]:
    """Yield the failed examples of a report, of one that is cut off the complete ones; nothing where it is no such report."""
    data, _ = document(report)
    for entry in objects_of(object_of(data).get("examples")):
        if entry.get("status") == "failed":
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
