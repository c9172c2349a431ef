"""How likely a failure passes when it is run again: a beta-binomial estimate that forgets.

The rate has a beta prior (see `kos_retry.limits`); every run in which the same was tried again is a trial, weighed by its age.
The posterior is a beta distribution again, whose mean and central interval are exact to about eight digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from kos_retry import limits
from kos_retry.model import Sighting

_DAY_SECONDS = 86_400.0
_TINY = 1e-300
# Of the function, and of its inverse: finer than any count of runs can tell.
_PRECISION = 1e-12
_QUANTILE_PRECISION = 1e-9
_MAX_STEPS = 2000


class Estimate(NamedTuple):
    """The expected rate, and the bounds between which it lies with the probability `limits.CREDIBLE_MASS`."""

    rate: float
    low: float
    high: float


class Record(NamedTuple):
    """What is known of one failure of one command.

    ``runs`` have seen it; in ``retried`` of them the same was tried again, and ``passed`` of these passed, after at most
    ``most_attempts``. ``failed`` runs ended without a pass; what passed after a change was ``repaired``. ``retries`` and
    ``retry_seconds`` are what trying again has cost in all.
    """

    runs: int
    retried: int
    passed: int
    repaired: int
    failed: int
    most_attempts: int
    retries: int
    retry_seconds: float
    first_seen: datetime | None
    last_seen: datetime | None
    estimate: Estimate


def record_of(sightings: Iterable[Sighting], now: datetime) -> Record:
    """Return what the sightings of one failure of one command add up to, in whatever order they come."""
    seen = tuple(sightings)
    trials = [s for s in seen if is_trial(s)]
    passes = [s for s in trials if s.passed]
    times = [s.time for s in seen]
    return Record(
        runs=len(seen),
        retried=len(trials),
        passed=len(passes),
        repaired=sum(s.passed and s.changed for s in seen),
        failed=sum(not s.passed for s in seen),
        most_attempts=max((s.attempts for s in passes), default=0),
        retries=sum(s.retries for s in seen),
        retry_seconds=math.fsum(s.retry_seconds for s in seen),
        first_seen=min(times, default=None),
        last_seen=max(times, default=None),
        estimate=estimate((s.passed, (now - s.time).total_seconds() / _DAY_SECONDS) for s in trials),
    )


def is_trial(sighting: Sighting) -> bool:
    """Return whether a run says something about the same thing run again: it was, and nothing was changed."""
    return sighting.retries > 0 and not sighting.changed


def estimate(trials: Iterable[tuple[bool, float]]) -> Estimate:
    """Return the estimate after trials, each a pass or not, with its age in days."""
    weighed = [(passed, weight(age)) for passed, age in trials]
    a = limits.PRIOR_PASSES + math.fsum(w for passed, w in weighed if passed)
    b = limits.PRIOR_FAILURES + math.fsum(w for passed, w in weighed if not passed)
    tail = (1.0 - limits.CREDIBLE_MASS) / 2
    return Estimate(a / (a + b), beta_quantile(tail, a, b), beta_quantile(1.0 - tail, a, b))


def weight(age_days: float) -> float:
    """Return what a sighting of this age weighs; one from a clock that is ahead of ours is as good as new."""
    return math.exp2(-max(0.0, age_days) / limits.HALF_LIFE_DAYS) if age_days < math.inf else 0.0


def beta_quantile(p: float, a: float, b: float) -> float:
    """Return the ``p`` quantile of the beta distribution, by bisection: its distribution function only grows."""
    low, high = 0.0, 1.0
    while high - low > _QUANTILE_PRECISION * high:
        middle = (low + high) / 2
        if beta_cdf(middle, a, b) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b) by its continued fraction (DLMF 8.17.22).

    The fraction converges fast below the mean; above it the mirror image is taken.
    """
    if x <= 0.0 or x >= 1.0:
        return 0.0 if x <= 0.0 else 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - beta_cdf(1.0 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    return min(1.0, front * _fraction(x, a, b) / a)


def _fraction(x: float, a: float, b: float) -> float:
    """Return 1 / (1 + d1 / (1 + d2 / …)) by the modified method of Lentz."""
    value, c, d = 1.0, 1.0, 0.0
    for step in range(_MAX_STEPS):
        m = step // 2
        if step == 0:
            term = 1.0
        elif step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1.0 / _kept_from_zero(1.0 + term * d)
        c = _kept_from_zero(1.0 + term / c)
        value *= c * d
        if abs(c * d - 1.0) < _PRECISION:
            break
    return value - 1.0


def _kept_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
