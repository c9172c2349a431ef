"""What a history has spent, and what is left of the budgets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kos_retry.model import Budget, FailureEnvelope, Policy
from kos_retry.model.base import MAX_COUNT, MAX_SECONDS


def budget_of(history: Sequence[FailureEnvelope], policy: Policy, seconds_used: float | None = None) -> Budget:
    """Return the state of all budgets after ``history``.

    ``seconds_used`` is the wall-clock time, waits included; without it the durations are summed. An amount
    that no attempt reports stays None: unknown is not zero.
    """
    seconds = seconds_used if seconds_used is not None else sum(e.duration_seconds or 0.0 for e in history)
    seconds = min(seconds, MAX_SECONDS)
    cost = _sum(e.usage.cost_usd for e in history if e.usage)
    known = [e.usage.tokens for e in history if e.usage and e.usage.tokens is not None]
    tokens = min(sum(known), MAX_COUNT) if known else None
    used = max([len(history), *(e.attempt for e in history)]) if history else 0
    return Budget(
        attempts_used=used,
        # No cap, and a cap of 0, both mean that evidence alone ends the loop.
        attempts_left=max(0, policy.max_attempts - used) if policy.max_attempts else None,
        seconds_used=round(seconds, 3),
        seconds_left=_left(policy.deadline_seconds, seconds),
        cost_usd_used=cost,
        cost_usd_left=_left(policy.max_cost_usd, cost),
        tokens_used=tokens,
        tokens_left=None if policy.max_tokens is None else max(0, policy.max_tokens - (tokens or 0)),
    )


def mean_cost_usd(history: Sequence[FailureEnvelope]) -> float | None:
    """Return what an attempt costs in the mean of those that say so, None where none does."""
    known = [e.usage.cost_usd for e in history if e.usage and e.usage.cost_usd is not None]
    return sum(known) / len(known) if known else None


def mean_tokens(history: Sequence[FailureEnvelope]) -> float | None:
    """Return how many tokens an attempt needs in the mean of those that say so, None where none does."""
    known = [e.usage.tokens for e in history if e.usage and e.usage.tokens is not None]
    return sum(known) / len(known) if known else None


def failed_actions_in_a_row(history: Sequence[FailureEnvelope]) -> int:
    """Return how many of the last actions failed, across attempts; one that succeeded ends the row."""
    run = 0
    for action in reversed([a for e in history for a in e.executed_actions]):
        if action.ok is not False:
            break
        run += 1
    return run


def _sum(amounts: Iterable[float | int | None]) -> float | None:
    known = [a for a in amounts if a is not None]
    # Cents add up in binary fractions; a millionth of a dollar is finer than any price.
    return round(sum(known), 6) if known else None


def _left(limit: float | None, used: float | None) -> float | None:
    return None if limit is None else round(max(0.0, limit - (used or 0.0)), 6)
