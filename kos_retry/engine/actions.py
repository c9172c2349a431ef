"""Actions compared by what they did: canonical form, fingerprint, and the digest of an approach."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
import xxhash

from kos_retry.limits import MAX_ACTION_INPUT_BYTES
from kos_retry.model import Action
from kos_retry.text.bounds import cut_bytes
from kos_retry.text.jsonvalue import json_value
from kos_retry.text.times import without_times

# What changes from call to call without changing what is done: ids, clocks and prose.
_INCIDENTAL = frozenset(
    {
        "call_id",
        "correlation_id",
        "description",
        "request_id",
        "span_id",
        "thought",
        "timestamp",
        "tool_call_id",
        "tool_use_id",
        "trace_id",
        "ts",
    }
)

# Fields of a result that hold nothing but the time that it took.
_DURATION = re.compile(r"(?i)(?:duration|elapsed)(?:_?(?:ms|millis|seconds|secs|s))?$")


def fingerprint(action: Action) -> str:
    """Return what identifies an action: its name and input, keys sorted deeply, list order kept.

    The outcome is not part of it: a failed call that is tried again is the same action.
    """
    return xxhash.xxh3_64_hexdigest(_canonical(action))


def approach(actions: Sequence[Action]) -> str | None:
    """Return the digest of all actions in their order, or None where there were none."""
    if not actions:
        return None
    return xxhash.xxh3_128_hexdigest(b"\n".join(_canonical(a) for a in actions))


def label(action: Action, limit: int = 120) -> str:
    """Return an action on one line for people, at most ``limit`` bytes."""
    if action.input is None:
        return cut_bytes(action.name, limit)
    return cut_bytes(f"{action.name} {orjson.dumps(action.input, option=orjson.OPT_SORT_KEYS).decode()}", limit)


def mark(action: Action) -> str:
    """Return what identifies an action together with what came of it; the time that something took is no difference."""
    return f"{fingerprint(action)}:{xxhash.xxh3_64_hexdigest(_outcome(action.result))}"


def longest_repeat(actions: Sequence[Action]) -> tuple[int, Action | None]:
    """Return how often in a row one action was repeated at most, with the same result, and that action."""
    best, best_action, run, before = 0, None, 0, ""
    for action in actions:
        seen = mark(action)
        run = run + 1 if seen == before else 1
        before = seen
        if run > best:
            best, best_action = run, action
    return best, best_action


def counted(actions: Iterable[Action]) -> dict[str, tuple[int, Action]]:
    """Return each distinct action with how often it occurs, by fingerprint, in order of appearance."""
    counts: dict[str, tuple[int, Action]] = {}
    for action in actions:
        mark = fingerprint(action)
        counts[mark] = (counts[mark][0] + 1 if mark in counts else 1, action)
    return counts


def _outcome(result: Any) -> bytes:
    """Return what two results have in common where they differ only in the time that something took."""
    return orjson.dumps(_timeless(result), option=orjson.OPT_SORT_KEYS)


def _timeless(value: Any) -> Any:
    if isinstance(value, str):
        return without_times(value)
    if isinstance(value, dict):
        return {key: _timeless(item) for key, item in value.items() if not _DURATION.search(key)}
    return [_timeless(item) for item in value] if isinstance(value, list) else value


def _canonical(action: Action) -> bytes:
    """Return name and input as canonical JSON, cut to a bound with the digest of the rest."""
    raw = orjson.dumps([action.name, _without_incidentals(_parsed(action.input))], option=orjson.OPT_SORT_KEYS)
    if len(raw) <= MAX_ACTION_INPUT_BYTES:
        return raw
    return raw[:MAX_ACTION_INPUT_BYTES] + xxhash.xxh3_128_digest(raw)


def _parsed(value: Any) -> Any:
    """Return the JSON in a string that holds an object: some callers send arguments encoded twice."""
    if isinstance(value, str) and value[:1] == "{":
        try:
            return json_value(orjson.loads(value))
        except orjson.JSONDecodeError:
            return value
    return value


def _without_incidentals(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {k: v for k, v in value.items() if k not in _INCIDENTAL}
