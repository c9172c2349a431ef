"""When to go on and when to stop: the thresholds and budgets of a decision."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta

from kos_retry import limits
from kos_retry.model.base import Count, Seconds, Wire, bounded

Condition = Annotated[str, bounded(512)]
Threshold = Annotated[int, Meta(ge=1)]


class NextAttempt(StrEnum):
    """Whether the next attempt would be the same command in the same state."""

    SAME = "same"
    MAY_DIFFER = "may_differ"


class StagnationPolicy(Wire, frozen=True, kw_only=True):
    """When repetition counts as stagnation; the defaults are the original's."""

    max_stagnant_attempts: Threshold = limits.MAX_STAGNANT_ATTEMPTS
    zero_delta_fail_fast: bool = True
    max_identical_signatures: Threshold = limits.MAX_IDENTICAL_SIGNATURES


class Policy(StagnationPolicy, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The stagnation policy with the budgets; a budget that is None is not set.

    ``reserve_budgets`` stops before an attempt that would not fit into what is left, by the mean of those so far; without it only a
    spent budget stops. An unknown key is an error: a budget that is spelt wrong must not pass for none.
    """

    max_attempts: Count | None = None
    deadline_seconds: Seconds | None = None
    max_cost_usd: Annotated[float, Meta(ge=0)] | None = None
    max_tokens: Count | None = None
    reserve_budgets: bool = False
    max_failures: Threshold | None = None
    max_transient_retries: Count = limits.MAX_TRANSIENT_RETRIES
    max_repeated_actions: Threshold = limits.MAX_REPEATED_ACTIONS
    retry_on: tuple[Condition, ...] = ()
    stop_on: tuple[Condition, ...] = ()
    next_attempt: NextAttempt = NextAttempt.MAY_DIFFER
    max_prompt_bytes: Count = limits.MAX_PROMPT_BYTES
    max_prompt_tokens: Count = limits.MAX_PROMPT_TOKENS
