"""What the loop passes around: proposals, outcomes and results, as plain values without imports."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kos_retry.model import Decision, FailureEnvelope


class Proposal:
    """The next attempt: what will be run, with which environment and which standard input.

    ``stdin`` is None where the command inherits ours. ``guidance`` is what the command is told in one way or another, "" where nothing is.
    """

    __slots__ = ("argv", "attempt", "environment", "guidance", "stdin")

    def __init__(
        self,
        attempt: int,
        argv: Sequence[str],
        environment: Mapping[str, str],
        stdin: bytes | None = None,
        guidance: str = "",
    ) -> None:
        self.attempt = attempt
        self.argv = tuple(argv)
        self.environment = environment
        self.stdin = stdin
        self.guidance = guidance

    @property
    def delivered(self) -> bool:
        """Return whether guidance reaches the command, so that the attempt is another one than the last."""
        return bool(self.guidance)


class Captured:
    """What was kept of one stream: its head, telling parts of its middle, its tail, and how many bytes were left out."""

    __slots__ = ("head", "middle", "omitted", "tail")

    def __init__(self, head: bytes = b"", tail: bytes = b"", omitted: int = 0, middle: tuple[bytes, ...] = ()) -> None:
        self.head = head
        self.middle = middle
        self.tail = tail
        self.omitted = omitted


class Broken:
    """A check of success that did not hold: its name, and what it said."""

    __slots__ = ("detail", "name")

    def __init__(self, name: str, detail: str) -> None:
        self.name = name
        self.detail = detail


class Reports:
    """The report files of an attempt: those it wrote, and those that were there before and it left alone."""

    __slots__ = ("fresh", "stale")

    def __init__(self, fresh: Sequence[str] = (), stale: Sequence[str] = ()) -> None:
        self.fresh = tuple(fresh)
        self.stale = tuple(stale)


class Outcome:
    """What an attempt did, raw.

    ``exit_code`` is what a shell would report (128 + N for signal N). ``cancelled_by`` is the number of the
    signal that ended kos-retry's own work, ``limit_seconds`` the time limit that ended the command, a deadline of the
    whole run where ``at_deadline`` says so.
    ``sink_closed`` says that nobody takes the output any more, ``sink_error`` why where that is a fault.
    ``not_started`` says why the command could not be started; it then counts as the attempt's output.
    ``broken`` are the checks of success that did not hold, ``told_failed`` says that its own transcript tells of a failure. ``survivors`` names what a successful command left running. ``done`` says that the output holds the signal that the work
    is done, ``reports`` which report files the attempt wrote.
    """

    __slots__ = (
        "at_deadline",
        "broken",
        "cancelled_by",
        "done",
        "duration_seconds",
        "exit_code",
        "killed",
        "limit_seconds",
        "not_started",
        "reports",
        "signal",
        "sink_closed",
        "sink_error",
        "started_at",
        "stderr",
        "stdout",
        "survivors",
        "timed_out",
        "told_failed",
    )

    def __init__(self, exit_code: int, started_at: float) -> None:
        self.exit_code = exit_code
        self.started_at = started_at
        self.signal: str | None = None
        self.timed_out = False
        self.at_deadline = False
        self.killed = False
        self.limit_seconds: float | None = None
        self.cancelled_by: int | None = None
        self.not_started: str | None = None
        self.duration_seconds = 0.0
        self.sink_closed = False
        self.sink_error: str | None = None
        self.stdout = Captured()
        self.stderr = Captured()
        self.survivors: tuple[str, ...] = ()
        self.broken: tuple[Broken, ...] = ()
        self.done = False
        self.reports = Reports()
        self.told_failed = False

    @property
    def succeeded(self) -> bool:
        """Return whether the command passed."""
        passed = self.exit_code == 0 and not self.timed_out and self.cancelled_by is None
        return passed and not self.broken and not self.told_failed


class NextStep:
    """How a run goes on: the recovery step that ``ran`` first, if any, whether a supervisor ``helped``, and what it said to the next attempt.

    ``cancelled_by`` is the number of a signal that came meanwhile, and ends the run instead.
    """

    __slots__ = ("cancelled_by", "guidance", "helped", "ran")

    def __init__(
        self, ran: str | None = None, guidance: str = "", cancelled_by: int | None = None, helped: bool = False
    ) -> None:
        self.ran = ran
        self.guidance = guidance
        self.cancelled_by = cancelled_by
        self.helped = helped

    @property
    def differs(self) -> bool:
        """Return whether the next attempt is another one for it: what ran or helped may have changed anything."""
        return self.ran is not None or self.helped


class Refusal:
    """Why an attempt that was decided for may not start: a stop reason, and words; ``cancelled_by`` where a signal came instead."""

    __slots__ = ("cancelled_by", "reason", "stop_reason")

    def __init__(self, stop_reason: str, reason: str, cancelled_by: int | None = None) -> None:
        self.stop_reason = stop_reason
        self.reason = reason
        self.cancelled_by = cancelled_by


class Past:
    """What a resumed session has behind it: its failures, the time spent, what was paid for, and the recovery steps that were tried.

    The ``ledger`` has the failures and the attempts that were cut short, in their order. ``step`` is how it went on after the
    last failure, None where that was not settled: the attempt that it was for is still to be made. ``differed`` says that
    a recovery step or help, this one or an earlier one, made an attempt another one.
    """

    __slots__ = ("differed", "history", "ledger", "seconds_used", "step", "tried")

    def __init__(
        self,
        history: Sequence[FailureEnvelope],
        seconds_used: float,
        ledger: Sequence[FailureEnvelope],
        tried: Sequence[str] = (),
        step: NextStep | None = None,
        differed: bool = False,
    ) -> None:
        self.history = tuple(history)
        self.seconds_used = seconds_used
        self.ledger = tuple(ledger)
        self.tried = tuple(tried)
        self.step = step
        self.differed = differed


# How a whole run ended.
PASSED = "passed"
FLAKY = "flaky"
REPAIRED = "repaired"
FAILED = "failed"
CANCELLED = "cancelled"
# Those of runs whose last attempt passed, whatever came before.
PASSES = (PASSED, FLAKY, REPAIRED)


class Result:
    """How a run ended: its status, our exit code, and the history of its failures.

    ``differed`` says that guidance, a recovery step or help made an attempt another one, so that they were not all the same.
    ``stop_reason`` is what ended the run where that was not the decision. The ``ledger`` has all attempts that were paid for, in their order:
    the failures, those of a resumed session that were cut short, and the one that passed where anything is known of it.
    """

    __slots__ = ("attempts", "decision", "differed", "exit_code", "history", "ledger", "status", "stop_reason")

    def __init__(
        self,
        status: str,
        exit_code: int,
        attempts: int,
        history: Sequence[FailureEnvelope],
        decision: Decision | None,
        differed: bool = False,
        ledger: Sequence[FailureEnvelope] = (),
    ) -> None:
        self.status = status
        self.exit_code = exit_code
        self.attempts = attempts
        self.history = tuple(history)
        self.decision = decision
        self.differed = differed
        self.ledger = tuple(ledger)
        self.stop_reason: str | None = None

    @property
    def ended_by(self) -> str | None:
        """Return the stop reason of the whole run, None where a pass or nothing but the last exit code ended it."""
        if self.stop_reason is None and self.decision is not None and self.exit_code:
            return None if self.decision.stop_reason is None else str(self.decision.stop_reason)
        return self.stop_reason

    @property
    def passed(self) -> bool:
        """Return whether the last attempt passed, whatever came before."""
        return self.status in PASSES
