"""The same runs as real processes: a shell script that fails as it was drawn, in shell loops and in `kos-retry run`."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from measure import KOS_RETRY
from retries.failures import RENDERINGS
from retries.scenarios import MOST_ATTEMPTS, Drawn, Run
from retries.simulation import ARGV
from retries.ways import KNOWING, End, Way

SCRIPT = 'n=$(($(cat attempts) + 1)); echo $n >attempts; cat printed.$n >&2; exit "$(cat code.$n)"\n'
LOOP = 'n=$1; shift; while :; do "$@" && exit 0; code=$?; n=$((n - 1)); [ $n -gt 0 ] || exit $code; done'


def play(drawn: Drawn, ways: Sequence[Way], directory: Path) -> Iterator[dict[Way, End]]:
    """Yield how the measured runs of a step end in each way, in a directory of its own; nothing waits between attempts."""
    directory.mkdir()
    (directory / ARGV[1]).write_text(SCRIPT, encoding="utf-8")
    learned = directory / "learned"
    if KNOWING in ways:
        for _, run in drawn.past:
            _run(run, KNOWING, directory, learned)
    for _, run in drawn.present:
        # What is measured teaches nothing.
        store = directory / "store"
        store.unlink(missing_ok=True)
        if learned.exists():
            shutil.copyfile(learned, store)
        yield {way: _run(run, way, directory, store) for way in ways}


def _run(run: Run, way: Way, directory: Path, store: Path) -> End:
    _prepare(run, directory)
    began = time.perf_counter()
    done = subprocess.run(_argv(way, directory, store), cwd=directory, capture_output=True, check=False)
    seconds = time.perf_counter() - began
    attempts = int((directory / "attempts").read_text(encoding="utf-8"))
    return End(attempts, done.returncode == 0, seconds)


def _prepare(run: Run, directory: Path) -> None:
    """Write down what each attempt prints, and how it ends."""
    (directory / "attempts").write_text("0", encoding="utf-8")
    for attempt in range(1, MOST_ATTEMPTS + 1):
        failure = run(attempt, 0.0)
        printed = failure.printed(attempt % RENDERINGS) if failure else "ok\n"
        (directory / f"printed.{attempt}").write_text(printed, encoding="utf-8")
        (directory / f"code.{attempt}").write_text(str(failure.exit_code if failure else 0), encoding="utf-8")


def _argv(way: Way, directory: Path, store: Path) -> Sequence[str]:
    if not way.judges:
        return ("sh", "-c", LOOP, "loop", str(way.attempts), *ARGV)
    options = ["--max-attempts", str(way.attempts), "--delay", "0s", "--max-delay", "0s"]
    options += ["--state-dir", str(directory / "state"), "--store", f"sqlite:{store}" if way.remembers else "none"]
    return (KOS_RETRY, "run", *options, "--", *ARGV)
