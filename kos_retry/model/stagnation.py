"""Whether a loop still gets anywhere: recommendations, assessments, checkpoints."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from kos_retry.model.base import Attempt, Count, Wire


class Recommendation(StrEnum):
    """What to do next."""

    CONTINUE = "continue"
    PIVOT = "pivot_strategy"
    ESCALATE = "escalate_to_supervisor"
    HALT = "halt_loop"


class StateCheckpoint(Wire, frozen=True, kw_only=True):
    """Where a session stood after one attempt.

    ``entropy_delta`` says whether the attempt brought anything new, ``entropy_bits`` how much.
    """

    attempt: Attempt
    signature: str
    timestamp: datetime | None = None
    entropy_delta: bool
    entropy_bits: float = 0.0


class StagnationAssessment(Wire, frozen=True, kw_only=True):
    """What repetition there is in a history, and what the stagnation policy makes of it.

    ``consecutive_zero_delta`` counts the attempts at the end that brought nothing new;
    ``identical_sig_occurrences`` how often the latest failure was seen with the same approach, now included.
    """

    is_stagnant: bool
    consecutive_zero_delta: Count = 0
    identical_sig_occurrences: Count = 0
    escalate: bool
    recommendation: Recommendation
    reason: str
