"""Success is more than exit code 0: verify commands, what the output must and must not contain, what a transcript says."""

from __future__ import annotations

from kos_retry.outcome import Broken
from kos_retry.settings import Check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kos_retry.adapters.shell import Shell
    from kos_retry.outcome import Captured, Outcome, Proposal
    from kos_retry.ports import RunningAttempt

# The name of the constraint that an attempt without the signal fails.
DONE = "done"
_SAID_CHARS = 200


class SuccessChecks:
    """Runs the checks of one run, the cheap ones first; a verify command gets the same care as the command."""

    def __init__(
        self,
        *,
        verify: Sequence[Check],
        require: Sequence[Check],
        forbid: Sequence[Check],
        shell: Shell,
        warn: Callable[[str], None],
        told_failed: Callable[[Proposal, Outcome], bool] | None = None,
        reported: Callable[[Proposal, Outcome], Sequence[Broken]] | None = None,
        done: str | None = None,
    ) -> None:
        self._told_failed = told_failed
        self._reported = reported
        # The signal that the work is done is something that the output must contain, by another name.
        self._done = Check(DONE, done) if done is not None else None
        self._verify = verify
        self._require = [*require, self._done] if self._done is not None else require
        self._forbid = forbid
        self._shell = shell
        self._warn = warn

    def check(self, proposal: Proposal, attempt: RunningAttempt, outcome: Outcome) -> None:
        """Check an attempt that exited with 0; see the port.

        Where the command's own transcript tells of a failure, nothing else is asked.
        """
        if self._told_failed is not None:
            outcome.stdout, outcome.stderr = attempt.captured()
            outcome.told_failed = self._told_failed(proposal, outcome)
            if outcome.told_failed:
                return
        broken = self._of_reports(proposal, attempt, outcome)
        if self._require or self._forbid:
            broken += self._of_output(attempt)
        outcome.done = self._done is not None and not any(check.name == DONE for check in broken)
        for check in self._verify:
            if outcome.cancelled_by is None:
                broken += self._of_command(check, proposal, outcome)
        if broken or outcome.cancelled_by is not None:
            outcome.stdout, outcome.stderr = attempt.captured()
        outcome.broken = tuple(broken)

    def _of_reports(self, proposal: Proposal, attempt: RunningAttempt, outcome: Outcome) -> list[Broken]:
        """Return the failures in fresh reports: the command exited with 0 all the same, and masks them."""
        if self._reported is None or not outcome.reports.fresh:
            return []
        outcome.stdout, outcome.stderr = attempt.captured()
        return list(self._reported(proposal, outcome))

    def _of_output(self, attempt: RunningAttempt) -> list[Broken]:
        from kos_retry.adapters.expressions import search
        from kos_retry.text.escapes import decode, plain_text

        texts = [plain_text(decode(b"\n".join(_parts(stream)))) for stream in attempt.captured()]
        found = search([check.text for check in (*self._require, *self._forbid)], texts, self._warn)
        missing = [
            Broken(c.name, "the output does not contain what it must") for c in self._require if found[c.text] is False
        ]
        present = [Broken(c.name, "the output contains what it must not") for c in self._forbid if found[c.text]]
        # What could not be found out does not pass for success.
        unknown = [
            Broken(c.name, "the expression takes too long on this output")
            for c in (*self._require, *self._forbid)
            if found[c.text] is None
        ]
        return missing + present + unknown

    def _of_command(self, check: Check, proposal: Proposal, outcome: Outcome) -> list[Broken]:
        """Run one verify command."""
        done = self._shell.run(check.text, proposal)
        if done.cancelled_by is not None:
            outcome.cancelled_by, outcome.exit_code = done.cancelled_by, done.exit_code
            return []
        if done.succeeded:
            return []
        return [Broken(check.name, _said(done))]


def _parts(stream: Captured) -> tuple[bytes, ...]:
    return (stream.head, *stream.middle, stream.tail) if stream.omitted else (stream.head,)


def _said(done: Outcome) -> str:
    """Return how a verify command ended, and the last thing it said."""
    from kos_retry.text.escapes import decode, plain_line

    ending = "timed out" if done.timed_out else f"ended by {done.signal}" if done.signal else f"exit {done.exit_code}"
    lines = [
        line
        for part in (*_parts(done.stdout), *_parts(done.stderr))
        for line in decode(part).splitlines()
        if line.strip()
    ]
    return ending + (f": {plain_line(lines[-1]).strip()[:_SAID_CHARS]}" if lines else "")
