"""What a run leaves to later ones, and what earlier ones left to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from kos_retry.engine.estimate import Record
from kos_retry.limits import MAX_LESSONS
from kos_retry.model import FailureEnvelope, Sighting
from kos_retry.text.words import count


class Known(NamedTuple):
    """What is known of the latest failure: its record, and sightings that teach something, the most fitting first."""

    record: Record
    lessons: tuple[Sighting, ...] = ()


class Ended(NamedTuple):
    """How a run ended: its ids, its command, whether it passed, and whether its attempts differed."""

    origin: str
    run: str
    time: datetime
    command: str
    command_line: str
    attempts: int
    passed: bool
    changed: bool
    stop_reason: str = ""


def sightings_of(history: Sequence[FailureEnvelope], ended: Ended) -> tuple[Sighting, ...]:
    """Return one sighting for each failure that a run has seen, in the order in which they came first."""
    ends = [_ended(envelope, ended.time) for envelope in history] + ([ended.time] if ended.passed else [])
    out = []
    for signature in dict.fromkeys(envelope.signature for envelope in history):
        at = [i for i, envelope in enumerate(history) if envelope.signature == signature]
        followed = [(ends[i + 1] - ends[i]).total_seconds() for i in at if i + 1 < len(ends)]
        out.append(
            Sighting(
                origin=ended.origin,
                run=ended.run,
                time=ended.time,
                command=ended.command,
                command_line=ended.command_line,
                signature=signature,
                coarse=history[at[0]].coarse,
                message=_first_line(history[at[0]]),
                passed=ended.passed,
                changed=ended.changed,
                last=at[-1] == len(history) - 1,
                attempts=ended.attempts,
                retries=len(followed),
                retry_seconds=round(sum(max(0.0, seconds) for seconds in followed), 3),
                stop_reason=ended.stop_reason,
            )
        )
    return tuple(out)


def choose_lessons(sightings: Iterable[Sighting]) -> tuple[Sighting, ...]:
    """Return the first sightings that each teach something else."""
    taught: dict[tuple[str, str, bool, bool, int, str], Sighting] = {}
    for s in sightings:
        taught.setdefault((s.command, s.signature, s.passed, s.changed, s.attempts, s.stop_reason), s)
    return tuple(taught.values())[:MAX_LESSONS]


def lesson(sighting: Sighting, quote: Callable[[str], str]) -> str:
    """Return in one sentence what a run teaches; ``quote`` marks what an output or a caller said."""
    what = sighting.message or sighting.coarse
    return (
        f"{quote(sighting.command_line)} failed with {quote(what)} and {_ending(sighting)} ({sighting.time:%Y-%m-%d})"
    )


def _ending(sighting: Sighting) -> str:
    if sighting.passed:
        how = "after a change" if sighting.changed else "unchanged"
        return f"passed {how} on attempt {sighting.attempts}"
    why = f": {sighting.stop_reason}" if sighting.stop_reason else ""
    return f"was given up after {count(sighting.attempts, 'attempt')}{why}"


def _ended(envelope: FailureEnvelope, otherwise: datetime) -> datetime:
    if envelope.timestamp is None:
        return otherwise
    return envelope.timestamp + timedelta(seconds=envelope.duration_seconds or 0.0)


def _first_line(envelope: FailureEnvelope) -> str:
    first = next((line for line in envelope.error_message.splitlines() if line.strip()), "")
    return first.strip()
