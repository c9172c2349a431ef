"""Passing output through: one gibibyte in writes of 64 KiB, bare and behind kos-retry, into a pipe."""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

from measure import KOS_RETRY, machine, peak_memory, table

ROUNDS = 3
MIB = 1024 * 1024
EMITTER = r"""
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    static char block[65536];
    long left = atol(argv[1]);
    memset(block, 'x', sizeof block);
    for (size_t i = 99; i < sizeof block; i += 100) block[i] = '\n';
    while (left > 0) {
        ssize_t n = write(1, block, left < (long)sizeof block ? (size_t)left : sizeof block);
        if (n < 0) return 1;
        left -= n;
    }
    return argc > 2 ? atoi(argv[2]) : 0;
}
"""


def seconds_into_pipe(argv: list[str]) -> float:
    """Return the seconds that a command needs to write all its output into a pipe that somebody reads."""
    began = time.perf_counter()
    writer = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    reader = subprocess.Popen(["cat"], stdin=writer.stdout, stdout=subprocess.DEVNULL)
    if writer.stdout is not None:
        writer.stdout.close()
    writer.wait()
    reader.wait()
    return time.perf_counter() - began


def main() -> None:
    """Build the emitter, then measure memory and rate."""
    print(machine())
    with tempfile.TemporaryDirectory() as directory:
        source, emit = Path(directory, "emit.c"), str(Path(directory, "emit"))
        source.write_text(EMITTER, encoding="utf-8")
        subprocess.run(["cc", "-O2", "-o", emit, str(source)], check=True)
        memory = {}
        for size, code in ((10, 0), (1024, 0), (1024, 1)):
            argv = [KOS_RETRY, "run", "--max-attempts", "1", "--", emit, str(size * MIB), str(code)]
            _, peak = peak_memory(lambda argv=argv: seconds_into_pipe(argv))
            memory[f"{size} MiB, {'failing' if code else 'passing'}"] = f"{peak:.1f} MiB at most so far"
        table("peak memory of the wrapper and its helpers", memory)
        rates: dict[str, list[float]] = {"bare": [], "kos-retry run": []}
        for _ in range(ROUNDS):
            rates["bare"].append(1 / seconds_into_pipe([emit, str(1024 * MIB)]))
            rates["kos-retry run"].append(1 / seconds_into_pipe([KOS_RETRY, "run", "--", emit, str(1024 * MIB)]))
        best = {name: max(values) for name, values in rates.items()}
        table(
            f"1 GiB into a pipe (best of {ROUNDS})",
            {n: f"{r:.2f} GiB/s  {r / best['bare']:.2f} x bare" for n, r in best.items()},
        )


if __name__ == "__main__":
    main()
