"""Commands of the shell that run beside the wrapped one: verify commands, recovery steps, and whoever is asked.

All run like the command itself: in a group of their own, killed at a time limit, interrupted by the same signals.
"""

from __future__ import annotations

import os

from kos_retry.adapters.process import standard
from kos_retry.adapters.process.runner import ProcessRunner, RunnerOptions
from kos_retry.outcome import Proposal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kos_retry.adapters.process.signals import SignalPipe
    from kos_retry.outcome import Outcome
    from kos_retry.ports import RunningAttempt

# What runs a command that a user wrote as one text.
SHELL = ("/bin/sh", "-c")


class Shell:
    """Runs commands beside the wrapped one, under the options of its run."""

    def __init__(self, signal_pipe: SignalPipe, options: RunnerOptions) -> None:
        self._signals = signal_pipe
        self._options = options

    def run(self, command: str, proposal: Proposal) -> Outcome:
        """Run a command with nothing on standard input, its output on our standard error: standard output is the command's own."""
        return self._start(command, proposal, b"", beside(self._options)).wait()

    def ask(self, command: str, proposal: Proposal, question: bytes, seconds: float) -> tuple[Outcome, bytes]:
        """Run a command with a question on standard input and a time limit of its own; return how it ended and what it answered."""
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            options = beside(self._options, outputs=(nowhere, standard.STDERR))
            options.timeout_seconds = seconds
            asked = self._start(command, proposal, question, options)
            outcome = asked.wait()
        finally:
            os.close(nowhere)
        return outcome, asked.captured()[0].head

    def _start(self, command: str, proposal: Proposal, stdin: bytes, options: RunnerOptions) -> RunningAttempt:
        told = Proposal(proposal.attempt, (*SHELL, command), proposal.environment, stdin)
        return ProcessRunner(self._signals, options).start(told)


def beside(options: RunnerOptions, outputs: tuple[int, int] = (standard.STDERR, standard.STDERR)) -> RunnerOptions:
    """Return how such commands are run: under the same limits, apart from the command's streams."""
    return RunnerOptions(
        timeout_seconds=options.timeout_seconds,
        deadline_at=options.deadline_at,
        deadline_seconds=options.deadline_seconds,
        grace_seconds=options.grace_seconds,
        outputs=outputs,
        closed=options.closed,
        fell=options.fell,
    )
