"""`kos-retry hook`: answer the hooks of an agent from what the session knows. It never stands in the agent's way by a fault of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import orjson

from kos_retry.adapters import journal, state
from kos_retry.adapters.extraction.hook_format import HookEvent, HookFormat
from kos_retry.adapters.extraction.manifest import hook_formats
from kos_retry.adapters.hook_record import HookRecord
from kos_retry.cli.inputs import parse_json, read_bytes, state_root
from kos_retry.cli.output import complain
from kos_retry.engine import actions, hooks
from kos_retry.errors import InputError
from kos_retry.limits import MAX_REPEATED_ACTIONS, MAX_STOP_BLOCKS
from kos_retry.model import Action

_SESSION = "KOS_RETRY_SESSION"
# Typer says the same in its help, see `kos_retry.cli.app`; a test holds the two equal.
OPTIONS = ("--session", "--state-dir", "--max-repeated-actions")
# How a run stands in which work is left; one that goes on has no end yet.
_OPEN = ("failed", "running")


class Asked(NamedTuple):
    """One question of an agent, and the format that it came in."""

    format: HookFormat
    event: HookEvent


def main(words: Sequence[str]) -> None:
    """Write the answer to the event on standard input, under the options in ``words``; an empty one lets the agent do as it likes.

    Where an option is wrong, the agent goes on without an answer, too.
    """
    answer: dict[str, Any] = {}
    try:
        given = _options(words)
        name = given.get("--session") or os.environ.get(_SESSION)
        most = _number(given.get("--max-repeated-actions", str(MAX_REPEATED_ACTIONS)))
        asked = _asked()
        if name and asked:
            root = state_root(given.get("--state-dir"))
            directory = state.session_directory(root, state.check_session_id(name))
            answer = _answer(asked, name, directory, most)
    except Exception as error:  # noqa: BLE001 - an agent that cannot stop for a fault of ours is worse than no answer
        complain(f"hook: {error}; the agent goes on as if there were no hook")
    with suppress(OSError):
        # Nobody reads it: no fault of the agent's. Python's own stream would fail once more at the end, with a status.
        os.write(1, orjson.dumps(answer, option=orjson.OPT_APPEND_NEWLINE))


def _options(words: Sequence[str]) -> dict[str, str]:
    """Return the options by name; one that is not known is told, and left out."""
    given: dict[str, str] = {}
    unknown: list[str] = []
    rest = list(words)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name not in OPTIONS:
            unknown.append(name)
        elif not equals and not rest:
            raise InputError(f"option {name} needs a value")
        else:
            given[name] = value if equals else rest.pop(0)
    if unknown:
        complain(f"hook: unknown option {unknown[0]}; going on without it")
    return given


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f"option --max-repeated-actions: '{text}' is no number") from None


def _asked() -> Asked | None:
    """Return what standard input asks; None where no format knows the event."""
    data = parse_json(read_bytes("-"), "standard input")
    if not isinstance(data, dict):
        raise InputError("standard input: should be an object")
    return next((Asked(form, event) for form in hook_formats() if (event := form.read(data))), None)


def _answer(asked: Asked, session: str, directory: str, max_repeated_actions: int) -> dict[str, Any]:
    record = HookRecord(directory)
    if asked.event.kind == "stop":
        text = _refusal(asked.event, session, directory, record)
        return asked.format.answer("block", asked.event, text) if text else {}
    action = Action(name=asked.event.tool, input=asked.event.input, result=asked.event.response)
    times = record.called(action.name, actions.mark(action), ok=asked.event.kind == "called")
    if times <= max_repeated_actions:
        return {}
    return asked.format.answer("context", asked.event, hooks.repeated(action, times))


def _refusal(event: HookEvent, session: str, directory: str, record: HookRecord) -> str:
    """Return why the agent should go on, empty where it may stop."""
    if not os.path.exists(os.path.join(directory, state.JOURNAL)):
        return ""
    from kos_retry.report.session import from_records

    records = journal.last_run(journal.read(directory))
    report = from_records(session, records)
    if report.status not in _OPEN or not report.entries:
        return ""
    latest = report.entries[-1]
    text = hooks.unfinished(latest.envelope, latest.decision)
    about = f"{len(records)} {records[-1].get('time')}"
    blocks = record.blocks(about, again=event.again is True)
    if not text or blocks >= MAX_STOP_BLOCKS:
        return ""
    record.blocked(about, blocks + 1)
    return text
