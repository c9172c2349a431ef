"""What `run --dry-run` and `config show` print: the values, where each was written, and the schedule."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from kos_retry.cli.output import write_json, write_text
from kos_retry.engine.backoff import Schedule
from kos_retry.settings import DEFAULT, RUN_OPTIONS, Check, Option, RunSettings
from kos_retry.text.durations import format_duration
from kos_retry.text.escapes import printable
from kos_retry.text.urls import without_password
from kos_retry.text.words import count

# An uncapped schedule is shown this far.
_SHOWN_WAITS = 10
_DURATION = "DURATION"


def show_plan(settings: RunSettings, command: Sequence[str]) -> None:
    """Print what a run would do, without running anything."""
    lines = [f"command: {printable(shlex.join(command))}", _attempts(settings)]
    lines += [f"  wait before attempt {n}: {wait}" for n, wait in enumerate(_waits(settings), 2)]
    lines += [f"values that are not the default, of profile {settings.profile}:"]
    lines += [f"  {line}" for line in _values(settings, all_of_them=False)] or ["  none"]
    write_text("\n".join(lines) + "\n")


def show_config(settings: RunSettings, form: str) -> None:
    """Print every value with its source."""
    if form == "json":
        write_json({o.name: {"value": shown(o, settings), "source": settings.sources[o.field]} for o in RUN_OPTIONS})
    else:
        write_text("".join(f"{line}\n" for line in _values(settings, all_of_them=True)))


def shown(option: Option, settings: RunSettings) -> str | bool | list[str] | None:
    """Return an option's value as one would write it."""
    value = settings.values[option.field]
    if isinstance(value, list):
        return [_one(option, v) for v in value]
    return value if value is None or isinstance(value, bool) else _one(option, value)


def _one(option: Option, value: Any) -> str:
    if isinstance(value, Check):
        return value.text if value.name == value.text else f"{value.name}={value.text}"
    if isinstance(value, tuple):
        return ":".join(value)
    if option.metavar == _DURATION:
        return format_duration(value)
    # An address can hold a password.
    return f"{value:g}" if isinstance(value, float) else without_password(str(value))


def _values(settings: RunSettings, *, all_of_them: bool) -> list[str]:
    out = []
    for option in RUN_OPTIONS:
        source = settings.sources[option.field]
        if source == DEFAULT and not all_of_them:
            continue
        value = shown(option, settings)
        text = (
            ", ".join(value)
            if isinstance(value, list)
            else option.unset
            if value is None
            else str(value).lower()
            if isinstance(value, bool)
            else value
        )
        out.append(f"{option.name} = {printable(text or 'none')}  ({source})")
    return out


def _attempts(settings: RunSettings) -> str:
    limit = count(settings.max_attempts, "attempt") if settings.max_attempts else "no limit of attempts"
    parts = [f"at most {limit}" if settings.max_attempts else limit]
    parts += [f"each within {format_duration(settings.timeout)}"] if settings.timeout else []
    parts += [f"all within {format_duration(settings.deadline)}"] if settings.deadline else []
    return "plan: " + ", ".join(parts)


def _waits(settings: RunSettings) -> list[str]:
    """Return the waits: exact where nothing is random or the seed is given, else their range."""
    number = min(settings.max_attempts - 1, _SHOWN_WAITS) if settings.max_attempts else _SHOWN_WAITS
    top = Schedule(settings.delay, settings.backoff, settings.max_delay, "none")
    if settings.jitter == "none" or settings.seed is not None:
        exact = top if settings.jitter == "none" else top._replace(jitter=settings.jitter, seed=settings.seed or 0)
        return [format_duration(round(exact.delay(n), 3)) for n in range(1, number + 1)]
    share = 0.0 if settings.jitter == "full" else 0.5
    return [
        f"{format_duration(round(top.delay(n) * share, 3))} to {format_duration(round(top.delay(n), 3))}"
        for n in range(1, number + 1)
    ]
