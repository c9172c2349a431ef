"""What an agent's hooks are told: that its work is not done, or that it does the same thing over and over."""

from __future__ import annotations

from kos_retry.engine import actions
from kos_retry.model import Action, CauseKind, Decision, FailureEnvelope, Recommendation, StopReason
from kos_retry.text.escapes import plain_line
from kos_retry.text.words import count

_GO_ON = (Recommendation.CONTINUE, Recommendation.PIVOT)
# Reasons against the same attempt once more; an agent's next step is another one.
_SAME_AGAIN = (StopReason.MAX_ATTEMPTS, StopReason.NON_RETRYABLE)
_MAX_NAMED = 5


def unfinished(envelope: FailureEnvelope, decision: Decision | None) -> str:
    """Return why an agent should not stop yet, empty where it may.

    It may where a human is needed, or where a budget is spent: then going on is what has to end.
    """
    if decision is not None and decision.recommendation in _GO_ON and decision.guidance:
        return decision.guidance
    open_to_it = decision is None or decision.recommendation in _GO_ON or _only_same_again(envelope, decision)
    return _still_failing(envelope) if open_to_it else ""


def repeated(action: Action, times: int) -> str:
    """Return what to tell an agent that has made one successful call so many times in a row, with one result."""
    return (
        f"This call has now succeeded {count(times, 'time')} in a row with the same result: {actions.label(action)}\n"
        "Calling it again will show nothing new. Use what it said, or do something else."
    )


def _only_same_again(envelope: FailureEnvelope, decision: Decision) -> bool:
    """Return whether a halt speaks against the same attempt alone: no cause that a human has to settle stands behind it."""
    settled_by_agent = envelope.cause is None or envelope.cause.kind is CauseKind.DETERMINISTIC
    return decision.stop_reason in _SAME_AGAIN and settled_by_agent


def _still_failing(envelope: FailureEnvelope) -> str:
    names = [plain_line(name) for name in envelope.failing_constraints]
    if not names:
        return ""
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return f"The work is not done. Still failing: {', '.join(names[:_MAX_NAMED])}{more}."
