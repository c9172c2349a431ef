"""What the loop needs from the world, as small Protocols; `kos_retry.adapters` and `kos_retry.report` have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Protocol

from kos_retry.model import Decision, DiagnosticArtifact, FailureEnvelope, Sighting
from kos_retry.outcome import Captured, NextStep, Outcome, Proposal, Refusal, Result


class RunningAttempt(Protocol):
    """An attempt that was started."""

    def wait(self) -> Outcome:
        """Pass its output through until it ends, whatever ends it, and return what it did."""

    def captured(self) -> tuple[Captured, Captured]:
        """Return what was kept of standard output and standard error, once it has ended."""


class AttemptRunner(Protocol):
    """Starts attempts, one at a time."""

    def start(self, proposal: Proposal) -> RunningAttempt:
        """Start the command; one that cannot be started gives an attempt that has ended already."""


class Checks(Protocol):
    """What else has to hold for an attempt to count as a success."""

    def check(self, proposal: Proposal, attempt: RunningAttempt, outcome: Outcome) -> None:
        """Set the outcome's ``broken`` checks, and its ``cancelled_by`` where a signal came meanwhile."""


class Observer(Protocol):
    """Turns outcomes into envelopes."""

    def observe(self, proposal: Proposal, outcome: Outcome) -> FailureEnvelope:
        """Return the signed, redacted envelope of an attempt that did not pass."""

    def passed(self, proposal: Proposal, outcome: Outcome) -> FailureEnvelope | None:
        """Return what an attempt that passed was and has cost; None where nobody looked into it."""


class Judge(Protocol):
    """Decides what follows from a history."""

    def decide(
        self, history: list[FailureEnvelope], seconds_used: float, ledger: Sequence[FailureEnvelope]
    ) -> Decision:
        """Return what to do after the last attempt of the history; the ledger has all attempts that were paid for."""


class Proposer(Protocol):
    """Makes the next attempt out of the command and what was learned."""

    def propose(
        self, attempt: int, history: list[FailureEnvelope], decision: Decision | None, step: NextStep
    ) -> Proposal:
        """Return the attempt with this number, after ``step``."""

    def can_differ(self) -> bool:
        """Return whether guidance reaches the next attempt, so that it is more than the same again."""


class PolicyGate(Protocol):
    """Decides whether an attempt may start; a yes holds for the proposal that was asked about, and for no other one."""

    def ask(self, proposal: Proposal, decision: Decision | None) -> Refusal | None:
        """Return why the attempt may not start, None where it may; a gate that cannot answer refuses."""


class Recovery(Protocol):
    """The ladder of recovery steps, each tried once."""

    def next_step(self, proposal: Proposal) -> NextStep | None:
        """Run the next step of the ladder, record it, and return how to go on; None where there is none left."""


class Supervisor(Protocol):
    """Whoever help is called from."""

    @property
    def is_there(self) -> bool:
        """Return whether anybody can be asked."""

    def ask(self, proposal: Proposal, decision: Decision) -> NextStep | None:
        """Return how to go on after all, and record it; None where the run ends."""


class Journal(Protocol):
    """The record of a session; losing it never loses a run."""

    def begin(self) -> None:
        """Record that the session's first attempt was started."""

    def resume(self) -> None:
        """Record that the session goes on where it was left."""

    def attempt(self, envelope: FailureEnvelope, decision: Decision) -> None:
        """Record an attempt that did not pass and what was decided, on disk before it is acted on."""

    def end(self, result: Result) -> None:
        """Record how the session ended."""


class Memory(Protocol):
    """What is remembered from run to run; losing it never loses a run."""

    def remember(self, result: Result) -> None:
        """Record how a run ended that somebody did not cut short; a pass on the first attempt leaves nothing to record."""


class Store(Protocol):
    """Where sightings are kept, by whoever shares it; every method raises StoreError when it cannot be used."""

    @property
    def origin(self) -> str:
        """Return the store's own random id, which sightings that are recorded in it carry."""

    def add(self, sightings: Iterable[Sighting]) -> int:
        """Add sightings, all or none of them, and return how many were new: one that is known is not added twice."""

    def of_failure(self, command: str, signature: str, limit: int) -> tuple[Sighting, ...]:
        """Return the newest sightings of one failure of one command, the newest first."""

    def lessons(self, limit: int) -> tuple[Sighting, ...]:
        """Return the newest sightings that their runs ended with, the newest first."""

    def lessons_like(self, command: str, signature: str, coarse: str, limit: int) -> tuple[Sighting, ...]:
        """Return lessons of the same failure, whatever the command, then those of this command's failures of the class."""

    def failures(self, limit: int, *, flaky: bool) -> tuple[tuple[str, str], ...]:
        """Return commands with signatures: the last seen first, or those that passed on retry, the most costly first."""

    def all(self) -> Iterator[Sighting]:
        """Yield everything, the oldest first."""

    def prune(self, older_than: datetime | None = None, keep: int | None = None) -> int:
        """Drop what is older than a moment, and the oldest beyond a number; return how many were dropped."""

    def close(self) -> None:
        """Let go of it; what was added stays."""


class Reporter(Protocol):
    """Tells people what happened; a report that cannot be written never changes the exit code."""

    def attempt(self, envelope: FailureEnvelope, decision: Decision) -> None:
        """Tell of an attempt that did not pass."""

    def going_on(self, decision: Decision, step: NextStep) -> None:
        """Tell that another attempt follows, and why."""

    def refused(self, refusal: Refusal) -> None:
        """Tell that an attempt that was decided for may not start."""

    def output_lost(self, outcome: Outcome) -> None:
        """Tell that the command's output could not be passed on."""

    def left_running(self, outcome: Outcome) -> None:
        """Tell of processes that a successful command left behind."""

    def end(self, result: Result) -> None:
        """Tell how the run ended, and write the reports that were asked for."""


class Clock(Protocol):
    """Monotonic time, and interruptible waiting."""

    def now(self) -> float:
        """Return seconds on a clock that never goes back."""

    def wait(self, seconds: float) -> int | None:
        """Wait; return the number of the signal that ended the wait early, else None."""


class ExtractionContext(Protocol):
    """What an extractor is given: the attempt's request, and whether the run was cancelled."""

    @property
    def cancelled(self) -> bool:
        """Return whether no further extractor should be started."""

    @property
    def timeout_seconds(self) -> float | None:
        """Return how long one extractor may take, None for no limit of the caller's."""


class Extractor(Protocol):
    """The pluggable diagnostic extraction contract: free of side effects, aware of its context."""

    @property
    def name(self) -> str:
        """Return the unique name, `[a-z0-9][a-z0-9_-]{0,63}`."""

    def extract(self, context: ExtractionContext) -> DiagnosticArtifact:
        """Return what was found; raise when the extractor cannot answer."""
