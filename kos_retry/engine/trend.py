"""Whether a failure is seen more often than before."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from kos_retry.limits import TREND_DAYS


def trend(times: Iterable[datetime], now: datetime) -> str:
    """Return how the sightings of the last days compare with those of as many days before.

    ``new`` where none is older, ``gone`` where none is recent, else ``rising``, ``falling`` or ``steady``.
    """
    seen = list(times)
    span = timedelta(days=TREND_DAYS)
    recent = sum(time > now - span for time in seen)
    before = sum(now - 2 * span < time <= now - span for time in seen)
    if recent == len(seen):
        return "new"
    if not recent:
        return "gone"
    return "rising" if recent > before else "falling" if recent < before else "steady"
