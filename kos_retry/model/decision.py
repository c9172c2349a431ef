"""What was decided, why, and what is left."""

from __future__ import annotations

from enum import StrEnum

from kos_retry.model.base import Count, Seconds, Wire
from kos_retry.model.delta import DiagnosticDelta
from kos_retry.model.stagnation import Recommendation, StagnationAssessment


class StopReason(StrEnum):
    """Why a loop ended or should change course; the first that applies."""

    SUCCEEDED = "succeeded"
    DONE_SIGNAL = "done_signal"
    ZERO_DELTA = "zero_delta"
    IDENTICAL_SIGNATURES = "identical_signatures"
    OSCILLATION = "oscillation"
    NO_NOVELTY = "no_novelty"
    REPEATED_ACTION = "repeated_action"
    NON_RETRYABLE = "non_retryable"
    MAX_ATTEMPTS = "max_attempts"
    DEADLINE = "deadline"
    COST_BUDGET = "cost_budget"
    TOKEN_BUDGET = "token_budget"  # noqa: S105 - a count of tokens, not a secret
    FAILURE_BUDGET = "failure_budget"
    GATE_DENIED = "gate_denied"
    VERDICT_VOID = "verdict_void"
    CANCELLED = "cancelled"
    ESCALATED = "escalated"
    ESCALATION_IGNORED = "escalation_ignored"
    TRANSIENT_EXHAUSTED = "transient_exhausted"
    UNUSABLE_OUTPUT = "unusable_output"


class Reason(Wire, frozen=True, kw_only=True):
    """The rule that decided, and what it saw."""

    rule: str
    evidence: str


class ConsideredRule(Wire, frozen=True, kw_only=True):
    """One rule that was looked at: whether it matches, whether it is the first that does, and why."""

    rule: str
    matches: bool
    decides: bool
    evidence: str


class Budget(Wire, frozen=True, kw_only=True):
    """What was spent and what is left; None where there is no limit or the amount is not known."""

    attempts_used: Count
    attempts_left: Count | None = None
    seconds_used: Seconds = 0.0
    seconds_left: Seconds | None = None
    cost_usd_used: float | None = None
    cost_usd_left: float | None = None
    tokens_used: Count | None = None
    tokens_left: Count | None = None


class Decision(Wire, frozen=True, kw_only=True):
    """What to do next.

    ``delay_seconds`` is how long to wait first where the decision is to go on; ``fix`` what a human must do
    where that is known; ``guidance`` the text for the next attempt, empty for an empty history.
    """

    recommendation: Recommendation
    stop_reason: StopReason | None = None
    reasons: tuple[Reason, ...]
    fix: str | None = None
    delay_seconds: Seconds | None = None
    guidance: str = ""
    budget: Budget
    assessment: StagnationAssessment
    delta: DiagnosticDelta | None = None
