"""Whether a history still gets anywhere: checkpoints, and the assessment of the stagnation policy."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from kos_retry.engine import sign
from kos_retry.engine.compare import divergence_bits, features, is_zero_delta
from kos_retry.model import (
    Category,
    FailureEnvelope,
    Recommendation,
    Retryable,
    StagnationAssessment,
    StagnationPolicy,
    StateCheckpoint,
)
from kos_retry.model.cause import CauseKind

# Longer ones are ids, which the signature masks.
_NUMBER = re.compile(r"\d{1,9}")

History = Sequence[FailureEnvelope]


def checkpoints(history: History) -> tuple[StateCheckpoint, ...]:
    """Return one checkpoint for each attempt; the first one is news by definition."""
    out = []
    for i, envelope in enumerate(history):
        before = history[i - 1] if i else None
        zero = before is not None and is_zero_delta(before, envelope)
        bits = 1.0 if before is None else 0.0 if zero else divergence_bits(features(before), features(envelope))
        out.append(
            StateCheckpoint(
                attempt=envelope.attempt,
                signature=envelope.signature,
                timestamp=envelope.timestamp,
                entropy_delta=not zero,
                entropy_bits=round(bits, 6),
            )
        )
    return tuple(out)


def is_transient(envelope: FailureEnvelope) -> bool:
    """Return whether a failure's cause is one that waiting mends."""
    cause = envelope.cause
    return (
        cause is not None
        and cause.kind in (CauseKind.TRANSIENT, CauseKind.RUNNER_LOST)
        and cause.retryable is not Retryable.NO
    )


def evidential(history: History) -> tuple[FailureEnvelope, ...]:
    """Return the attempts that say something about the approach: without successes and transient trouble."""
    return tuple(e for e in history if e.category is not Category.SUCCESS and not is_transient(e))


def zero_delta_run(history: History) -> int:
    """Return how many attempts at the end brought nothing new."""
    run = 0
    for before, after in zip(reversed(history[:-1]), reversed(history[1:]), strict=True):
        if not is_zero_delta(before, after):
            break
        run += 1
    return run


def sightings(history: History) -> tuple[int, bool]:
    """Return how often the latest failure and approach were seen, and whether another stood between."""
    if not history:
        return 0, False
    same = [i for i, e in enumerate(history) if is_zero_delta(e, history[-1])]
    return len(same), same != list(range(same[0], len(history)))


def cycle(history: History, period_limit: int, rounds: int) -> int:
    """Return the shortest period of at least two that the history ends in ``rounds`` times, or 0."""
    marks = [(e.signature, e.approach) for e in history]
    for period in range(2, min(period_limit, len(marks) // rounds) + 1):
        tail = marks[-period * rounds :]
        if len(set(tail)) > 1 and all(tail[i] == tail[i - period] for i in range(period, len(tail))):
            return period
    return 0


def monotony(history: History) -> int:
    """Return how many failures at the end differ from each other in the numbers of their messages alone.

    Constraints and approach are the same throughout. Numbers that only rise or only fall may be progress (10, 9, 8 failures
    left): a row of such failures is none.
    """
    run: list[tuple[int, ...]] = []
    shape = None
    for envelope in reversed(history):
        text = "\n".join(sign.message_lines(envelope))
        here = (_NUMBER.sub("#", text), envelope.failing_constraints, envelope.approach, envelope.exit_code)
        if shape is not None and here != shape:
            break
        shape = here
        run.append(tuple(int(n) for n in _NUMBER.findall(text)))
    if any(_leads_somewhere(column) for column in zip(*run, strict=True)) or len(set(run)) < 2:
        return 1 if run else 0
    return len(run)


def _leads_somewhere(numbers: tuple[int, ...]) -> bool:
    """Return whether numbers change, and in one direction only."""
    steps = {(b > a) - (b < a) for a, b in pairwise(numbers)} - {0}
    return len(steps) == 1


def assess(history: History, policy: StagnationPolicy) -> StagnationAssessment:
    """Return what the stagnation policy alone makes of a signed history.

    A history of at most one failure never stagnates. ``max_stagnant_attempts`` zero deltas in a row
    escalate; a single one asks for a pivot where the policy fails fast; as many sightings of one failure
    as ``max_identical_signatures``, with another failure between them, escalate.
    """
    seen = evidential(history)
    if len(seen) <= 1:
        return _verdict(0, len(seen), Recommendation.CONTINUE, "at most one failure: nothing to compare")
    run = zero_delta_run(seen)
    count, apart = sightings(seen)
    if run >= policy.max_stagnant_attempts:
        return _verdict(run, count, Recommendation.ESCALATE, f"{run} attempts in a row brought nothing new")
    if run and policy.zero_delta_fail_fast:
        return _verdict(run, count, Recommendation.PIVOT, "the last attempt brought nothing new")
    if apart and count >= policy.max_identical_signatures:
        return _verdict(run, count, Recommendation.ESCALATE, f"the same failure came back: seen {count} times")
    return _verdict(run, count, Recommendation.CONTINUE, "the attempts still bring news")


def _verdict(run: int, count: int, recommendation: Recommendation, reason: str) -> StagnationAssessment:
    return StagnationAssessment(
        is_stagnant=recommendation is not Recommendation.CONTINUE,
        consecutive_zero_delta=run,
        identical_sig_occurrences=count,
        escalate=recommendation is Recommendation.ESCALATE,
        recommendation=recommendation,
        reason=reason,
    )
