"""The one loop: attempt, observe, decide, record, report, wait.

It knows nothing of processes, files or terminals: those are behind the ports. It imports nothing, since it
runs before the wrapped command starts.
"""

from __future__ import annotations

from kos_retry.outcome import CANCELLED, FAILED, FLAKY, PASSED, REPAIRED, Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kos_retry.model import Decision, FailureEnvelope
    from kos_retry.outcome import Outcome
    from kos_retry.ports import AttemptRunner, Checks, Clock, Journal, Judge, Memory, Observer, Proposer, Reporter

_SIGNAL_BASE = 128


class Loop:
    """The ports of one run, and the loop over them."""

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
        flaky_fails: bool = False,
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
        self._flaky_fails = flaky_fails

    def run(self) -> Result:
        """Attempt until an attempt passes, nothing speaks for another one, or somebody says stop."""
        began = self._clock.now()
        history: list[FailureEnvelope] = []
        decision: Decision | None = None
        attempt, differed = 1, False
        while True:
            proposal = self._proposer.propose(attempt, history, decision)
            differed = differed or proposal.delivered
            running = self._runner.start(proposal)
            if attempt == 1:
                self._journal.begin()
            outcome = running.wait()
            if outcome.sink_error is not None:
                self._reporter.output_lost(outcome)
            if outcome.succeeded:
                self._checks.check(proposal, running, outcome)
            if outcome.succeeded:
                if outcome.survivors:
                    self._reporter.left_running(outcome)
                status = _passed(history, differed)
                code = self._code_of_pass(status, history)
                return self._end(Result(status, code, attempt, history, decision, differed), counts=True)
            envelope = self._observer.observe(proposal, outcome)
            decision = self._judge.decide([*history, envelope], self._clock.now() - began)
            envelope = envelope.model_copy(update={"emitted_recommendation": decision.recommendation})
            history.append(envelope)
            goes_on = self._goes_on(decision, outcome)
            self._journal.attempt(envelope, decision)
            self._reporter.attempt(envelope, decision, goes_on)
            if not goes_on:
                status = FAILED if outcome.cancelled_by is None else CANCELLED
                # A command that exits with 0 and fails a check has failed all the same.
                code = outcome.exit_code or 1
                # What was cut short says nothing about what it would have come to.
                counts = status == FAILED and not outcome.sink_closed
                return self._end(Result(status, code, attempt, history, decision, differed), counts=counts)
            interrupted = self._clock.wait(decision.delay_seconds or 0.0)
            if interrupted is not None:
                code = _SIGNAL_BASE + interrupted
                return self._end(Result(CANCELLED, code, attempt, history, decision, differed), counts=False)
            attempt += 1

    def _goes_on(self, decision: Decision, outcome: Outcome) -> bool:
        """Return whether the recommendation leads to another attempt."""
        if outcome.sink_closed or outcome.cancelled_by is not None:
            return False
        if decision.recommendation == "continue":
            return True
        # Running the same thing again is no pivot.
        return decision.recommendation == "pivot_strategy" and self._proposer.can_differ()

    def _code_of_pass(self, status: str, history: list[FailureEnvelope]) -> int:
        return history[0].exit_code or 1 if status == FLAKY and self._flaky_fails else 0

    def _end(self, result: Result, *, counts: bool) -> Result:
        self._journal.end(result)
        self._reporter.end(result)
        if counts and result.history:
            self._memory.remember(result)
        return result


def _passed(history: list[FailureEnvelope], differed: bool) -> str:
    if not history:
        return PASSED
    return REPAIRED if differed else FLAKY
