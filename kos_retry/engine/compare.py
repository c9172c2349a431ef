"""What changed between two envelopes, and whether that is news."""

from __future__ import annotations

from collections.abc import Iterable
from math import log2

from kos_retry.engine import actions, sign
from kos_retry.limits import MAX_CONSTRAINTS
from kos_retry.model import DiagnosticDelta, FailureEnvelope
from kos_retry.text.bounds import cut_bytes

_FEATURE_BYTES = 400


def divergence_bits(old: Iterable[str], new: Iterable[str]) -> float:
    """Return the Jensen-Shannon divergence in bits of the uniform distributions over two sets.

    0.0 exactly when the sets are equal, 1.0 when they share nothing (Lin, "Divergence measures based on
    the Shannon entropy", 1991). An empty set against another is 1.0.
    """
    p, q = set(old), set(new)
    if p == q:
        return 0.0
    if not p or not q:
        return 1.0
    return min(1.0, max(0.0, _to_mixture(p, q) / 2 + _to_mixture(q, p) / 2))


def _to_mixture(p: set[str], q: set[str]) -> float:
    """Return the Kullback-Leibler divergence of uniform P to the even mixture of uniform P and Q."""
    mass = 1 / len(p)
    shared = len(p & q)
    mixed = (mass + 1 / len(q)) / 2
    return (shared * log2(mass / mixed) + (len(p) - shared)) / len(p)


def features(envelope: FailureEnvelope) -> set[str]:
    """Return everything that counts as news: what the signature is made of, and the distinct actions."""
    return {*sign.features(envelope), *(f"action:{mark}" for mark in actions.counted(envelope.executed_actions))}


def is_zero_delta(old: FailureEnvelope, new: FailureEnvelope) -> bool:
    """Return whether nothing new was learned: same failure, and same approach (both absent is the same)."""
    return old.signature == new.signature and old.approach == new.approach


def compare(old: FailureEnvelope, new: FailureEnvelope) -> DiagnosticDelta:
    """Return the delta from one signed envelope to the next."""
    before, after = set(old.failing_constraints), set(new.failing_constraints)
    done, doing = actions.counted(old.executed_actions), actions.counted(new.executed_actions)
    gone, came = _apart(sign.features(old), sign.features(new))
    zero = is_zero_delta(old, new)
    bits = 0.0 if zero else divergence_bits(features(old), features(new))
    return DiagnosticDelta(
        from_attempt=old.attempt,
        to_attempt=new.attempt,
        prior_signature=old.signature,
        current_signature=new.signature,
        entropy_introduced=not zero,
        entropy_bits=round(bits, 6),
        zero_delta=zero,
        same_signature=old.signature == new.signature,
        same_approach=old.approach == new.approach,
        constraints_fixed=_sorted(before - after),
        constraints_broken=_sorted(after - before),
        constraints_still_failing=_sorted(before & after),
        actions_new=tuple(actions.label(a) for mark, (_, a) in doing.items() if mark not in done),
        actions_repeated=tuple(actions.label(a) for mark, (_, a) in doing.items() if mark in done),
        features_gone=gone,
        features_new=came,
        differential_summary=_summary(old, new, zero, before, after),
    )


def _apart(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return _sorted(set(old) - set(new)), _sorted(set(new) - set(old))


def _sorted(items: set[str]) -> tuple[str, ...]:
    return tuple(cut_bytes(item, _FEATURE_BYTES) for item in sorted(items)[:MAX_CONSTRAINTS])


def _summary(old: FailureEnvelope, new: FailureEnvelope, zero: bool, before: set[str], after: set[str]) -> str:
    if zero:
        return "no change: the same failure, reached the same way"
    if new.is_success:
        return "the failure is gone"
    if old.signature == new.signature:
        return "the same failure, reached another way"
    counts = [
        f"{len(items)} {word}"
        for items, word in ((before - after, "fixed"), (after - before, "newly failing"))
        if items
    ]
    if before & after and counts:
        counts.append(f"{len(before & after)} still failing")
    if counts:
        return "constraints: " + ", ".join(counts)
    return f"another failure: {_class(old)} became {_class(new)}"


def _class(envelope: FailureEnvelope) -> str:
    """Return a failure's class computed anew: what a caller wrote there is not ours to repeat."""
    return sign.coarse(envelope)
