"""What `run` says on standard error, and the report files it was asked for."""

from __future__ import annotations

import os

from kos_retry.outcome import CANCELLED, FLAKY, PASSED, REPAIRED
from kos_retry.text.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kos_retry.model import Decision, FailureEnvelope
    from kos_retry.outcome import NextStep, Outcome, Refusal, Result
    from kos_retry.settings import RunSettings

_PREFIX = "kos-retry: "
# Why a run ended where the last decision was for another attempt.
_REFUSED = {
    "gate_denied": "the gate said no",
    "verdict_void": "the gate said no",
    "deadline": "the time was up",
    "cancelled": "somebody said stop",
}
# How reports and exit code fit together, where that needs saying.
_REPORTS = {
    "masked_failure": "the command exited with 0, and its own report tells of failures",
    "failed_afterwards": "everything in the command's report passed; it failed otherwise, or afterwards",
    "unfinished": "the command's report tells of something that was started and never ended",
    "stale": "the report files are of an earlier run, and count for nothing",
}


def tell(message: str) -> None:
    """Write one line of ours to standard error; where that is closed or full, the run goes on in silence."""
    try:
        os.write(2, f"{_PREFIX}{_one_line(message)}\n".encode("utf-8", "replace"))
    except OSError:
        pass


def _one_line(message: str) -> str:
    """Return a message of ours with what it may quote made safe; plain words need nothing."""
    if message.isascii() and message.isprintable() and "##" not in message:
        return message
    from kos_retry.text.escapes import printable

    return printable(message)


class TerminalReporter:
    """Tells a run's story in a line an event; a run that passes at once says nothing."""

    def __init__(self, *, session: str, argv: Sequence[str], started: str, settings: RunSettings) -> None:
        self._session = session
        self._argv = tuple(argv)
        self._started = started
        self._max_attempts = settings.max_attempts
        self._settings = settings
        self._entries: list[tuple[FailureEnvelope, Decision]] = []

    def attempt(self, envelope: FailureEnvelope, decision: Decision) -> None:
        """Tell of an attempt that did not pass; see the port."""
        from kos_retry.report.render import ending, headline
        from kos_retry.text.escapes import printable

        self._entries.append((envelope, decision))
        if self._settings.quiet:
            return
        of = f" of {self._max_attempts}" if self._max_attempts else ""
        said = headline(envelope)
        tell(f"attempt {envelope.attempt}{of} failed ({ending(envelope)})" + (f": {said}" if said else ""))
        for name, why in sorted(envelope.extractors.items()):
            tell(f"extractor {name} failed: {printable(why)}")
        if envelope.reports is not None and (words := _REPORTS.get(envelope.reports.value)):
            tell(words)
        if self._settings.verbose:
            self._tell_more(envelope, decision)

    def going_on(self, decision: Decision, step: NextStep) -> None:
        """Tell that another attempt follows; see the port."""
        if self._settings.quiet:
            return
        from kos_retry.text.durations import format_duration
        from kos_retry.text.escapes import printable

        why = "; ".join(printable(r.evidence) for r in decision.reasons)
        since = " after a recovery step" if step.ran else " as whoever was asked says" if step.helped else ""
        tell(f"trying again in {format_duration(decision.delay_seconds or 0.0)}{since}: {why}")

    def refused(self, refusal: Refusal) -> None:
        """Tell that an attempt that was decided for may not start; see the port."""
        who = (
            "the attempt was not started" if refusal.stop_reason == "deadline" else "the gate did not allow the attempt"
        )
        tell(f"{who} ({refusal.stop_reason}): {refusal.reason}")

    def output_lost(self, outcome: Outcome) -> None:
        """Tell that output could not be passed on; see the port."""
        tell(f"output was lost: it cannot be written: {outcome.sink_error}")

    def left_running(self, outcome: Outcome) -> None:
        """Tell of processes that a successful command left behind; see the port."""
        if self._settings.quiet:
            return
        from kos_retry.text.escapes import printable

        names = ", ".join(printable(name) for name in outcome.survivors)
        tell(f"the command passed and left {count(len(outcome.survivors), 'process')} running: {names}")

    def end(self, result: Result) -> None:
        """Tell how the run ended; see the port."""
        if not self._settings.quiet:
            self._tell_end(result)
            self._tell_spent(result)
        for format_name, path in self._settings.report:
            self._write_report(format_name, path, result)

    def _tell_end(self, result: Result) -> None:
        if result.status in (FLAKY, REPAIRED):
            how = "flaky" if result.status == FLAKY else "repaired after a change"
            failures = count(result.attempts - 1, "failure")
            tell(
                f"passed on attempt {result.attempts} after {failures}: {how}; kos-retry report --session {self._session} tells more"
            )
        elif result.status != PASSED:
            self._tell_stop(result)

    def _tell_spent(self, result: Result) -> None:
        """Tell what all attempts have spent, where any of them said so; unknown is not zero."""
        if not result.ledger:
            return
        from kos_retry.report.spending import spending

        if told := spending(result.ledger):
            tell(told)

    def _tell_more(self, envelope: FailureEnvelope, decision: Decision) -> None:
        from kos_retry.text.escapes import printable

        tell(f"  signature {envelope.signature}, class {printable(envelope.coarse)}")
        for constraint in envelope.failing_constraints:
            tell(f"  failing: {printable(constraint)}")
        if envelope.cause is not None:
            tell(f"  cause: {envelope.cause.kind} by rule {envelope.cause.rule}")
        if decision.delta is not None:
            tell(f"  changed: {printable(decision.delta.differential_summary)}, {decision.delta.entropy_bits:.3f} bits")

    def _tell_stop(self, result: Result) -> None:
        from kos_retry.text.escapes import printable

        decision = result.decision
        if decision is None:
            return
        left = max(0, self._max_attempts - result.attempts)
        saved = f", {left} not tried" if left and result.status != CANCELLED else ""
        why = _REFUSED.get(result.stop_reason or "") or "; ".join(printable(r.evidence) for r in decision.reasons)
        if result.stop_reason == "escalated":
            why = f"help was called for, and nobody sent the run on: {why}"
        stop = result.ended_by
        reason = f" ({stop})" if stop and result.status != CANCELLED else ""
        tell(f"stopped after {count(result.attempts, 'attempt')}{saved}: {why}{reason}")
        if decision.fix:
            tell(f"to mend it: {printable(decision.fix)}")
        if self._settings.retries_dropped:
            tell("another kos-retry around this one does the retrying; --nested keep retries here, too")

    def _write_report(self, format_name: str, path: str, result: Result) -> None:
        from kos_retry.report.render import FORMATS
        from kos_retry.report.session import Entry, SessionReport

        report = SessionReport(
            session=self._session,
            argv=self._argv,
            started=self._started,
            status=result.status,
            exit_code=result.exit_code,
            attempts=result.attempts,
            entries=tuple(Entry(*entry) for entry in self._entries),
            ledger=result.ledger,
            ended_by=result.ended_by,
        )
        try:
            with open(path, "w", encoding="utf-8", errors="replace") as file:
                file.write(FORMATS[format_name](report))
        except OSError as error:
            tell(f"cannot write the report {path}: {error.strerror}")
