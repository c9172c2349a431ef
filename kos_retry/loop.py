"""The one loop: propose, gate, attempt, verify, observe, decide, record, report, wait.

It knows nothing of processes, files or terminals: those are behind the ports. It imports nothing, since it
runs before the wrapped command starts.
"""

from __future__ import annotations

from kos_retry.outcome import CANCELLED, FAILED, FLAKY, PASSED, REPAIRED, NextStep, Refusal, Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kos_retry.model import Decision, FailureEnvelope
    from kos_retry.outcome import Outcome, Past, Proposal
    from kos_retry.ports import (
        AttemptRunner,
        Checks,
        Clock,
        Journal,
        Judge,
        Memory,
        Observer,
        PolicyGate,
        Proposer,
        Recovery,
        Reporter,
        RunningAttempt,
        Supervisor,
    )

_SIGNAL_BASE = 128
# Nothing was started.
_NOT_STARTED = 125


class Unsupervised:
    """Gate, recovery and supervisor of a run that nobody else has a say in."""

    is_there = False

    def ask(self, proposal: Proposal, decision: Decision | None) -> None:
        """Let every attempt pass, and know no help."""

    def next_step(self, proposal: Proposal) -> None:
        """Know no recovery step."""


class Loop:
    """The ports of one run, and the loop over them.

    ``run`` is the whole of it. Who brings attempts of their own calls ``propose`` and ``conclude`` in turns instead.
    """

    def __init__(
        self,
        *,
        proposer: Proposer,
        runner: AttemptRunner,
        checks: Checks,
        observer: Observer,
        judge: Judge,
        journal: Journal,
        reporter: Reporter,
        clock: Clock,
        memory: Memory,
        gate: PolicyGate,
        recovery: Recovery,
        supervisor: Supervisor,
        past: Past | None = None,
        flaky_fails: bool = False,
        pivot_retries: bool = False,
    ) -> None:
        self._proposer = proposer
        self._runner = runner
        self._checks = checks
        self._observer = observer
        self._judge = judge
        self._journal = journal
        self._reporter = reporter
        self._clock = clock
        self._memory = memory
        self._gate = gate
        self._recovery = recovery
        self._supervisor = supervisor
        self._flaky_fails = flaky_fails
        self._pivot_retries = pivot_retries
        self._began = clock.now() - (past.seconds_used if past else 0.0)
        self._history: list[FailureEnvelope] = list(past.history) if past else []
        self._ledger: list[FailureEnvelope] = list(past.ledger) if past else []
        self._decision: Decision | None = None
        self._ends_at: float | None = None
        self._attempt = len(self._history) + 1
        self._resumed = past is not None
        self._stop_reason: str | None = None
        self._settled = past.step if past else None
        self._differed = past.differed if past else False
        self._step = NextStep()

    def run(self) -> Result:
        """Attempt until an attempt passes, nothing speaks for another one, or somebody says stop."""
        if self._resumed:
            self._journal.resume()
        if self._ledger and (result := self._go_on_anyway()):
            return result
        while True:
            proposal = self.propose()
            result = self._refused(proposal)
            if result is None:
                running = self._runner.start(proposal)
                self.started(proposal)
                result = self.conclude(proposal, running.wait(), running)
            if result is not None:
                return result

    def _go_on_anyway(self) -> Result | None:
        """Decide anew over a past: budgets may have been lifted. Return how the run ends where there is no reason to go on."""
        self._decision = self._decide(self._history)
        if self._settled is not None and self._decision.recommendation != "halt_loop":
            # The attempt that this step was for was cut short, or never started.
            self._step = self._settled
            return None
        step = self._next_step(self.propose(), self._decision)
        if step is not None and step.cancelled_by is not None:
            return self._cancelled(step.cancelled_by, len(self._history))
        if step is not None:
            self._step = step
            return None
        return self._end(self._result(FAILED, self._last_code(), len(self._history)), counts=False)

    def propose(self) -> Proposal:
        """Return the next attempt."""
        proposal = self._proposer.propose(self._attempt, self._history, self._decision, self._step)
        self._differed = self._differed or proposal.delivered or self._step.differs
        return proposal

    def started(self, proposal: Proposal) -> None:
        """Take note that an attempt was started."""
        if proposal.attempt == 1 and not self._resumed:
            self._journal.begin()

    def conclude(self, proposal: Proposal, outcome: Outcome, running: RunningAttempt) -> Result | None:
        """Take in how an attempt ended; return how the run ended, or None where another attempt is due, after the wait."""
        if outcome.sink_error is not None:
            self._reporter.output_lost(outcome)
        if outcome.succeeded:
            self._checks.check(proposal, running, outcome)
        if outcome.succeeded:
            return self._passed(proposal, outcome)
        envelope = self._observer.observe(proposal, outcome)
        self._ledger.append(envelope)
        decision = self._decide([*self._history, envelope])
        envelope = envelope.replace(emitted_recommendation=decision.recommendation)
        self._history.append(envelope)
        self._decision = decision
        self._journal.attempt(envelope, decision)
        self._reporter.attempt(envelope, decision)
        decided_at = self._clock.now()
        step = None if outcome.sink_closed or outcome.cancelled_by is not None else self._next_step(proposal, decision)
        if step is None:
            return self._stopped(outcome)
        if step.cancelled_by is not None:
            return self._cancelled(step.cancelled_by)
        self._reporter.going_on(decision, step)
        self._step = step
        # A step that took its time was a wait, too: the wait that was decided ends before the deadline, a longer one may not.
        left = (decision.delay_seconds or 0.0) - (self._clock.now() - decided_at)
        interrupted = self._clock.wait(max(0.0, left))
        if interrupted is not None:
            return self._cancelled(interrupted)
        self._attempt += 1
        return None

    def _decide(self, history: list[FailureEnvelope]) -> Decision:
        """Return what follows from a history, and note how long the run may go on."""
        now = self._clock.now()
        decision = self._judge.decide(history, now - self._began, self._ledger)
        left = decision.budget.seconds_left
        self._ends_at = None if left is None else now + left
        return decision

    def _refused(self, proposal: Proposal) -> Result | None:
        """Return how the run ends where no time is left for the attempt, or the gate does not let it pass."""
        refusal = self._too_late() or self._gate.ask(proposal, self._decision) or self._too_late()
        if refusal is None:
            return None
        self._reporter.refused(refusal)
        self.started(proposal)
        result = self._result(FAILED, self._last_code(), attempts=len(self._history))
        result.stop_reason = refusal.stop_reason
        if refusal.cancelled_by is not None:
            result.status, result.exit_code = CANCELLED, _SIGNAL_BASE + refusal.cancelled_by
        return self._end(result, counts=False)

    def _too_late(self) -> Refusal | None:
        """Return why the attempt may not start where whatever came since the decision has taken the rest of the time."""
        if self._ends_at is None or self._clock.now() < self._ends_at:
            return None
        return Refusal("deadline", "the time was up before it could start")

    def _next_step(self, proposal: Proposal, decision: Decision) -> NextStep | None:
        """Return how the run goes on after a decision, None where it ends."""
        if decision.recommendation == "continue":
            return NextStep()
        if decision.recommendation == "pivot_strategy":
            step = self._recovery.next_step(proposal)
            if step is not None:
                return step
            # Running the same thing again is no pivot.
            if self._proposer.can_differ() or self._pivot_retries:
                return NextStep()
        if decision.recommendation in ("pivot_strategy", "escalate_to_supervisor"):
            # A pivot that nothing is left for is a matter for whoever can be asked.
            step = self._supervisor.ask(proposal, decision)
            self._stop_reason = "escalated" if step is None and self._supervisor.is_there else None
            return step
        return None

    def _passed(self, proposal: Proposal, outcome: Outcome) -> Result:
        if outcome.survivors:
            self._reporter.left_running(outcome)
        if (known := self._observer.passed(proposal, outcome)) is not None:
            self._ledger.append(known)
        status = PASSED if not self._history else REPAIRED if self._differed else FLAKY
        fails = status == FLAKY and self._flaky_fails
        result = self._result(status, self._history[0].exit_code or 1 if fails else 0)
        result.stop_reason = "done_signal" if outcome.done else None
        return self._end(result, counts=True)

    def _stopped(self, outcome: Outcome) -> Result:
        status = FAILED if outcome.cancelled_by is None else CANCELLED
        # A command that exits with 0 and fails a check has failed all the same.
        result = self._result(status, outcome.exit_code or 1)
        result.stop_reason = self._stop_reason
        # What was cut short says nothing about what it would have come to.
        return self._end(result, counts=status == FAILED and not outcome.sink_closed)

    def _cancelled(self, signal: int, attempts: int | None = None) -> Result:
        result = self._result(CANCELLED, _SIGNAL_BASE + signal, attempts)
        result.stop_reason = "cancelled"
        return self._end(result, counts=False)

    def _last_code(self) -> int:
        """Return the exit code of a run that starts no other attempt."""
        return self._history[-1].exit_code or 1 if self._history else _NOT_STARTED

    def _result(self, status: str, code: int, attempts: int | None = None) -> Result:
        used = self._attempt if attempts is None else attempts
        return Result(status, code, used, self._history, self._decision, self._differed, self._ledger)

    def _end(self, result: Result, *, counts: bool) -> Result:
        self._journal.end(result)
        self._reporter.end(result)
        if counts and result.history:
            self._memory.remember(result)
        return result
