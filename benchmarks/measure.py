"""What the benchmarks share: timing commands against each other in one run, and naming the machine."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

KOS_RETRY = str(Path(sys.executable).with_name("kos-retry"))


def machine() -> str:
    """Return one line that says what the figures were measured on."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            model = next(line.partition(":")[2].strip() for line in info if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor() or "unknown processor"
    return f"{os.cpu_count()} cores of {model}, {platform.system()} {platform.release()}, Python {platform.python_version()}"


def compare(
    commands: Mapping[str, Sequence[str]], *, rounds: int, cwd: str | None = None, expect: int = 0
) -> dict[str, float]:
    """Return the median wall time of each command in milliseconds; one after the other in every round, so that drift hits all."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds + 1):
        for name, argv in commands.items():
            began = time.perf_counter()
            done = subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=cwd,
                check=False,
            )
            times[name].append((time.perf_counter() - began) * 1000)
            if done.returncode != expect:
                raise SystemExit(f"{name}: exit code {done.returncode}, not {expect}")
    # The first round fills caches.
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def present(commands: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    """Return the commands whose program is on this machine."""
    return {name: argv for name, argv in commands.items() if shutil.which(argv[0])}


def table(title: str, rows: Mapping[str, str]) -> None:
    """Print a table of two columns."""
    width = max(len(name) for name in rows)
    print(f"\n{title}")
    for name, value in rows.items():
        print(f"  {name:{width}}  {value}")


def peak_memory(work: Callable[[], object]) -> tuple[object, float]:
    """Return what ``work`` returns and the peak resident memory of its children in MiB.

    The peak is the largest of all children so far: measure the smallest first.
    """
    result = work()
    return result, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
