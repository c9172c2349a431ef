"""`kos-retry hook`: answer the hooks of an agent from what the session knows. It never stands in the agent's way by a fault of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from kos_retry.adapters import journal, state
from kos_retry.adapters.extraction.hook_format import HookEvent, HookFormat
from kos_retry.adapters.extraction.manifest import bundled
from kos_retry.adapters.hook_record import HookRecord
from kos_retry.cli.inputs import parse_json, read_bytes
from kos_retry.cli.output import complain, write_bytes
from kos_retry.engine import actions, hooks
from kos_retry.errors import InputError
from kos_retry.limits import MAX_STOP_BLOCKS
from kos_retry.model import Action
from kos_retry.report.session import from_records

_SESSION = "KOS_RETRY_SESSION"
# How a run stands in which work is left; one that goes on has no end yet.
_OPEN = ("failed", "running")


class Asked(NamedTuple):
    """One question of an agent, and the format that it came in."""

    format: HookFormat
    event: HookEvent


def hook(session: str | None, state_dir: str | None, max_repeated_actions: int, unknown: Sequence[str]) -> None:
    """Write the answer to the event on standard input; an empty one lets the agent do as it likes."""
    answer: dict[str, Any] = {}
    try:
        if unknown:
            complain(f"hook: unknown option {unknown[0]}; going on without it")
        name = session or os.environ.get(_SESSION)
        asked = _asked()
        if name and asked:
            root = state.state_directory(state_dir, os.environ)
            directory = state.session_directory(root, state.check_session_id(name))
            answer = _answer(asked, name, directory, max_repeated_actions)
    except Exception as error:  # noqa: BLE001 - an agent that cannot stop for a fault of ours is worse than no answer
        complain(f"hook: {error}; the agent goes on as if there were no hook")
    write_bytes(orjson.dumps(answer, option=orjson.OPT_APPEND_NEWLINE))


def _asked() -> Asked | None:
    """Return what standard input asks; None where no format knows the event."""
    data = parse_json(read_bytes("-"), "standard input")
    if not isinstance(data, dict):
        raise InputError("standard input: should be an object")
    formats = [manifest.hook for manifest in bundled() if manifest.hook]
    return next((Asked(form, event) for form in formats if (event := form.read(data))), None)


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
