"""The ways to retry that are compared, and how a run ends that is retried in one of them."""

from __future__ import annotations

from typing import NamedTuple


class Way(NamedTuple):
    """A way to retry: how many attempts it may make, whether it judges failures, and whether it remembers runs."""

    name: str
    attempts: int
    judges: bool = False
    remembers: bool = False
    waits: bool = True


NO_RETRY = Way("no retry", 1)
THREE = Way("three blind", 3, waits=False)
FIVE = Way("five blind", 5)
ALONE = Way("kos-retry", 5, judges=True)
KNOWING = Way("kos-retry, 20 runs known", 5, judges=True, remembers=True)
WAYS = (NO_RETRY, THREE, FIVE, ALONE, KNOWING)


class End(NamedTuple):
    """How a run ended."""

    attempts: int
    passed: bool
    seconds: float

    @property
    def wasted(self) -> int:
        """How many attempts after the first brought nothing: the run failed all the same."""
        return 0 if self.passed else self.attempts - 1


class Played(NamedTuple):
    """A run whose first attempt failed, retried in every way; ``known`` if its history shows that it is a flake."""

    known: bool
    ends: dict[Way, End]
