"""What changed between two envelopes."""

from __future__ import annotations

from kos_retry.model.base import Wire


class DiagnosticDelta(Wire, frozen=True, kw_only=True):
    """The difference between two attempts.

    ``entropy_bits`` is the Jensen-Shannon divergence of the two feature sets: 0 when they are equal, 1 when
    they share nothing. ``zero_delta`` is true when failure and approach are both the same.
    """

    from_attempt: int
    to_attempt: int
    prior_signature: str
    current_signature: str
    entropy_introduced: bool
    entropy_bits: float
    zero_delta: bool
    same_signature: bool
    same_approach: bool
    constraints_fixed: tuple[str, ...] = ()
    constraints_broken: tuple[str, ...] = ()
    constraints_still_failing: tuple[str, ...] = ()
    actions_new: tuple[str, ...] = ()
    actions_repeated: tuple[str, ...] = ()
    features_gone: tuple[str, ...] = ()
    features_new: tuple[str, ...] = ()
    differential_summary: str
