"""What the next attempt is told, before it is written out as text."""

from __future__ import annotations

from kos_retry.model.base import Attempt, Count, Wire
from kos_retry.model.delta import DiagnosticDelta


class NegativeConstraint(Wire, frozen=True, kw_only=True):
    """An action that preceded failures and should not be repeated as it is."""

    action_pattern: str
    reason: str
    violation_count: Count


class DisambiguationContext(Wire, frozen=True, kw_only=True):
    """What the history teaches the attempt with number ``attempt``."""

    attempt: Attempt
    negative_constraints: tuple[NegativeConstraint, ...] = ()
    deltas: tuple[DiagnosticDelta, ...] = ()
    guidance: tuple[str, ...] = ()
    max_prompt_bytes: Count
    max_prompt_tokens: Count
