"""Making ready what a failure needs while a command runs."""

from __future__ import annotations

import os

from kos_retry.adapters.process.runner import ProcessRunner, RunnerOptions
from kos_retry.outcome import Proposal


def _steps(signal_pipe, line, steps, after=0.01):
    """Run a command line, and return how many steps were asked for while it ran, the one that said that it was the last included."""
    asked = []

    def warm_up():
        asked.append(len(asked) + 1)
        return len(asked) < steps

    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        options = RunnerOptions(
            grace_seconds=1.0,
            warm_up=warm_up,
            warm_up_seconds=after,
            outputs=(nowhere, nowhere),
        )
        ProcessRunner(signal_pipe, options).start(Proposal(1, ("/bin/sh", "-c", line), dict(os.environ))).wait()
    finally:
        os.close(nowhere)
    return len(asked)


def test_pauses_of_a_command_are_used_until_all_is_ready(signal_pipe):
    assert _steps(signal_pipe, "sleep 2", steps=3) == 3


def test_command_that_ends_before_has_no_time_taken(signal_pipe):
    assert _steps(signal_pipe, ":", steps=3, after=60.0) == 0


def test_command_that_never_pauses_is_not_kept_waiting(signal_pipe):
    """A step is taken where there is nothing to pass on; a flood leaves next to no such moment."""
    assert _steps(signal_pipe, "head -c 50000000 /dev/zero", steps=10**6, after=0.0) < 1000
