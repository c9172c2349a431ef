"""How long to wait before the next attempt."""

from __future__ import annotations

import random
from typing import Literal, NamedTuple

from kos_retry import limits

Jitter = Literal["full", "equal", "none"]
JITTERS: tuple[Jitter, ...] = ("full", "equal", "none")


class Schedule(NamedTuple):
    """Exponential backoff: ``delay × factor^(n-1)``, capped, with jitter.

    "full" draws from zero to the computed delay, "equal" from its half (Brooker, "Exponential Backoff And
    Jitter", 2015). The same seed gives the same schedule, whatever was drawn before.
    """

    delay_seconds: float = limits.DELAY_SECONDS
    factor: float = limits.BACKOFF_FACTOR
    max_delay_seconds: float = limits.MAX_DELAY_SECONDS
    jitter: Jitter = "full"
    seed: int = 0

    def delay(self, failures: int) -> float:
        """Return the seconds to wait after the ``failures``-th failure in a row (from 1)."""
        full = self._capped(failures)
        if self.jitter == "none":
            return full
        share = random.Random(f"{self.seed}:{failures}").random()  # noqa: S311 - spreads load, guards nothing
        return full * share if self.jitter == "full" else full * (1 + share) / 2

    def _capped(self, failures: int) -> float:
        if not self.delay_seconds:
            return 0.0
        try:
            grown = self.delay_seconds * self.factor ** max(0, failures - 1)
        except OverflowError:
            return self.max_delay_seconds
        return min(grown, self.max_delay_seconds)
