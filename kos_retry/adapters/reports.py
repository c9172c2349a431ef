"""Report files of an attempt: those that its globs name, told apart from what lay there before."""

from __future__ import annotations

import os

from kos_retry.limits import MAX_REPORT_FILES
from kos_retry.outcome import Reports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kos_retry.outcome import Outcome, Proposal
    from kos_retry.ports import AttemptRunner, RunningAttempt

    Stamp = tuple[int, int, int]


def matching(globs: Sequence[str]) -> dict[str, Stamp]:
    """Return the files that match, each with what changes when it is written: time, size and inode; of too many the first by name."""
    import glob

    found: dict[str, Stamp] = {}
    for pattern in globs:
        for path in sorted(glob.iglob(pattern, recursive=True)):
            if len(found) >= MAX_REPORT_FILES:
                return found
            try:
                status = os.stat(path)
            except OSError:
                continue
            if os.path.isfile(path):
                found[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return found


class Collected:
    """Starts attempts by another runner, and finds out which report files each of them wrote.

    A file that the attempt did not touch is stale: a test runner that aborts leaves the report of an earlier run in its place.
    """

    def __init__(self, runner: AttemptRunner, globs: Sequence[str]) -> None:
        self._runner = runner
        self._globs = globs

    def start(self, proposal: Proposal) -> RunningAttempt:
        """Start the command; see the port."""
        before = matching(self._globs)
        return _Running(self._runner.start(proposal), self._globs, before)


class _Running:
    def __init__(self, running: RunningAttempt, globs: Sequence[str], before: dict[str, Stamp]) -> None:
        self.captured = running.captured
        self._running = running
        self._globs = globs
        self._before = before

    def wait(self) -> Outcome:
        """Wait for the attempt; see the port."""
        outcome = self._running.wait()
        after = matching(self._globs)
        fresh = [path for path, stamp in after.items() if self._before.get(path) != stamp]
        outcome.reports = Reports(fresh, [path for path in after if path not in fresh])
        return outcome
