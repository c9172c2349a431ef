"""Runs played in one process, with the signatures and rules of `kos-retry run` and a clock that only counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import cache

from retries.failures import RENDERINGS, Failure
from retries.scenarios import Drawn, Run
from retries.ways import KNOWING, WAYS, End, Played, Way

from kos_retry import limits
from kos_retry.adapters.extraction.extract import Extraction
from kos_retry.adapters.observation import conclude, inquire
from kos_retry.engine.backoff import Schedule
from kos_retry.engine.decide import decide
from kos_retry.engine.estimate import record_of
from kos_retry.engine.memory import Ended, Known, sightings_of
from kos_retry.engine.observe import Evidence
from kos_retry.model import FailureEnvelope, NextAttempt, Policy, Recommendation, Sighting

ARGV = ("sh", "step.sh")
NOW = datetime(2026, 3, 1, 8, 15, 42, tzinfo=UTC)


class Memory:
    """What the store would hold of one step's earlier runs."""

    def __init__(self) -> None:
        self._seen: dict[str, list[Sighting]] = {}
        self._known: dict[str, Known] = {}
        self._runs = 0

    def recall(self, envelope: FailureEnvelope) -> Known:
        """Return what is known of a failure."""
        signature = envelope.signature
        if signature not in self._known:
            self._known[signature] = Known(record_of(self._seen.get(signature, ()), NOW))
        return self._known[signature]

    def knows_flake(self, envelope: FailureEnvelope) -> bool:
        """Return whether what is known of a failure makes it worth another attempt."""
        record = self.recall(envelope).record
        return record.passed > 0 and record.estimate.rate >= limits.KNOWN_FLAKE_RATE

    def remember(self, history: Sequence[FailureEnvelope], end: End) -> None:
        """Keep how a run ended that failed at least once."""
        self._runs += 1
        ended = Ended(
            "bench", f"r{self._runs}", NOW, "c0:step", " ".join(ARGV), end.attempts, end.passed, changed=False
        )
        for sighting in sightings_of(history, ended):
            self._seen.setdefault(sighting.signature, []).append(sighting)
            self._known.pop(sighting.signature, None)


class Simulation:
    """Plays steps; one set of extractors reads the failures of all of them."""

    def __init__(self, extraction: Extraction) -> None:
        """Take the extractors."""
        self._extraction = extraction
        self._observed = cache(self._observe)

    def play(self, drawn: Drawn) -> Iterator[Played]:
        """Yield the measured runs of a step, each retried in every way; its history is the same for all of them."""
        seconds, memory = drawn.scenario.seconds, Memory()
        for seed, run in drawn.past:
            history, end = self._run(run, seconds, KNOWING, Schedule(seed=seed), memory)
            memory.remember(history, end)
        for seed, run in drawn.present:
            ends = {way: self._run(run, seconds, way, Schedule(seed=seed), memory) for way in WAYS}
            first = ends[KNOWING][0][0]
            yield Played(memory.knows_flake(first), {way: end for way, (_, end) in ends.items()})

    def _run(
        self, run: Run, seconds: float, way: Way, schedule: Schedule, memory: Memory
    ) -> tuple[list[FailureEnvelope], End]:
        """Play one run to its end, and return its failures with it."""
        history: list[FailureEnvelope] = []
        elapsed, attempt = 0.0, 1
        while failure := run(attempt, elapsed):
            elapsed += seconds
            history.append(self._observed(failure, attempt))
            delay = _delay(history, way, schedule, memory)
            if delay is None:
                return history, End(attempt, passed=False, seconds=elapsed)
            elapsed += delay
            attempt += 1
        return history, End(attempt, passed=True, seconds=elapsed + seconds)

    def _observe(self, failure: Failure, attempt: int) -> FailureEnvelope:
        streams = {"stderr": failure.printed(attempt % RENDERINGS)}
        evidence = Evidence(attempt=attempt, exit_code=failure.exit_code, argv=ARGV)
        redactor = self._extraction.redactor
        return conclude(evidence, streams, redactor, inquire(self._extraction, evidence, streams, redactor))


def _delay(history: list[FailureEnvelope], way: Way, schedule: Schedule, memory: Memory) -> float | None:
    """Return the wait before the next attempt, None where there is none."""
    if not way.judges:
        if len(history) >= way.attempts:
            return None
        return schedule.delay(len(history)) if way.waits else 0.0
    policy = Policy(max_attempts=way.attempts, next_attempt=NextAttempt.SAME)
    known = memory.recall(history[-1]) if way.remembers else None
    decision = decide(history, policy, schedule=schedule, known=known)
    # Without guidance a pivot has nothing to change.
    return decision.delay_seconds if decision.recommendation is Recommendation.CONTINUE else None
