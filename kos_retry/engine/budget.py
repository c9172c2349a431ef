"""What a history has spent, and what is left of the budgets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from kos_retry.model import Budget, FailureEnvelope, Policy, Usage
from kos_retry.model.base import MAX_COUNT, MAX_SECONDS

Amount = TypeVar("Amount", int, float)


class Spent(NamedTuple):
    """What attempts have cost together, None where none of them says; ``unknown`` are those that leave out what others say."""

    cost_usd: float | None
    tokens: int | None
    unknown: tuple[FailureEnvelope, ...] = ()

    @property
    def is_known(self) -> bool:
        """Return whether any attempt says what it has cost."""
        return self.cost_usd is not None or self.tokens is not None


def spent_by(ledger: Sequence[FailureEnvelope]) -> Spent:
    """Return what all attempts of a ledger have cost together."""
    own = own_usages(ledger)
    cost = _sum(usage.cost_usd for usage in own if usage)
    known = [usage.tokens for usage in own if usage and usage.tokens is not None]
    tokens = min(sum(known), MAX_COUNT) if known else None
    unknown = [
        envelope
        for envelope, usage in zip(ledger, own, strict=True)
        if (cost is not None and (usage is None or usage.cost_usd is None))
        or (tokens is not None and (usage is None or usage.tokens is None))
    ]
    return Spent(cost, tokens, tuple(unknown))


def budget_of(
    history: Sequence[FailureEnvelope],
    policy: Policy,
    seconds_used: float | None = None,
    ledger: Sequence[FailureEnvelope] | None = None,
) -> Budget:
    """Return the state of all budgets after ``history``.

    ``seconds_used`` is the wall-clock time, waits included; without it the durations are summed. The ``ledger`` has all attempts that were
    paid for, where these are more than the history. An amount that no attempt reports stays None: unknown is not zero.
    """
    seconds = seconds_used if seconds_used is not None else sum(e.duration_seconds or 0.0 for e in history)
    seconds = min(seconds, MAX_SECONDS)
    cost, tokens, _ = spent_by(history if ledger is None else ledger)
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
    known = [usage.cost_usd for usage in own_usages(history) if usage and usage.cost_usd is not None]
    return sum(known) / len(known) if known else None


def mean_tokens(history: Sequence[FailureEnvelope]) -> float | None:
    """Return how many tokens an attempt needs in the mean of those that say so, None where none does."""
    known = [usage.tokens for usage in own_usages(history) if usage and usage.tokens is not None]
    return sum(known) / len(known) if known else None


def own_usages(history: Sequence[FailureEnvelope]) -> list[Usage | None]:
    """Return what each attempt has cost by itself, None where it says nothing.

    An agent that goes on in its session reports the session's totals: what the attempts before it in the same session had
    reported is taken off. Totals that went down were counted anew.
    """
    totals: dict[str, Usage] = {}
    out: list[Usage | None] = []
    for envelope in history:
        usage = envelope.usage
        session = envelope.transcript.session if usage and usage.cumulative and envelope.transcript else None
        if usage is None or session is None:
            out.append(usage)
            continue
        before = totals.get(session, Usage())
        out.append(Usage(tokens=_risen(before.tokens, usage.tokens), cost_usd=_risen(before.cost_usd, usage.cost_usd)))
        totals[session] = Usage(
            tokens=before.tokens if usage.tokens is None else usage.tokens,
            cost_usd=before.cost_usd if usage.cost_usd is None else usage.cost_usd,
        )
    return out


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


def _risen(before: Amount | None, now: Amount | None) -> Amount | None:
    return now if now is None or before is None or now < before else now - before


def _left(limit: float | None, used: float | None) -> float | None:
    return None if limit is None else round(max(0.0, limit - (used or 0.0)), 6)
