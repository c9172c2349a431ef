"""What a failing attempt costs: the first one, a further one, and the way from the command's death to our exit."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import KOS_RETRY, machine, table

ROUNDS = 11
FURTHER = 20
# Runs for a while, prints a megabyte of log with an error in it, says when it is done, and fails.
NOISY = """
import sys, time
time.sleep(float(sys.argv[2]))
line = b"2026-03-01T08:15:42Z worker 7 handled request 4711 of queue orders\\n"
sys.stdout.buffer.write(line * (1024 * 1024 // len(line)) + b"error: cart total is off by one: expected 12, got 11\\n")
sys.stdout.buffer.flush()
open(sys.argv[1], "w").write(repr(time.monotonic()))
sys.exit(3)
"""


def further_attempt() -> float:
    """Return the milliseconds that one more failing attempt of `false` costs, journal and extractors included."""
    options = ["--delay", "0", "--retry-on", "exit:1"]
    times = {}
    for attempts in (2, 2 + FURTHER):
        runs = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            argv = [KOS_RETRY, "run", *options, "--max-attempts", str(attempts), "--", "false"]
            subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            runs.append((time.perf_counter() - began) * 1000)
        times[attempts] = statistics.median(runs)
    return (times[2 + FURTHER] - times[2]) / FURTHER


def death_to_exit(directory: str, ran: float) -> list[float]:
    """Return the milliseconds from the end of the output of a command that ran for ``ran`` seconds to our exit, for each round."""
    mark = Path(directory, "mark")
    out = []
    for _ in range(ROUNDS):
        argv = [KOS_RETRY, "run", "--max-attempts", "1", "--", sys.executable, "-c", NOISY, str(mark), str(ran)]
        subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        out.append((time.monotonic() - float(mark.read_text(encoding="utf-8"))) * 1000)
    return out


def breakdown() -> dict[str, str]:
    """Return what the failure path spends its time on, each part measured alone in a fresh process."""
    parts = {
        "import of the failure path": "import kos_retry.adapters.observation, kos_retry.engine.decide, kos_retry.report.render",
        "start of the extractor host": "from kos_retry.adapters.extraction.child import Host; h = Host(); h.start(); h.close()",
        "reading the manifests": "from kos_retry.adapters.extraction.manifest import bundled; bundled()",
    }
    out = {}
    for name, code in parts.items():
        timed = (
            f"import json, time; b = time.perf_counter()\n{code}\nprint(json.dumps((time.perf_counter() - b) * 1000))"
        )
        runs = [
            json.loads(subprocess.run([sys.executable, "-c", timed], capture_output=True, check=True).stdout)
            for _ in range(ROUNDS)
        ]
        out[name] = f"{statistics.median(runs):6.1f} ms"
    return out


def main() -> None:
    """Measure all three."""
    print(machine())
    table("one more failing attempt of false", {"kos-retry": f"{further_attempt():.1f} ms"})
    with tempfile.TemporaryDirectory() as directory:
        rows = {}
        for name, ran in (("that failed at once", 0.0), ("that ran for a second", 1.0)):
            runs = death_to_exit(directory, ran)
            rows[name] = f"median {statistics.median(runs):4.0f} ms, slowest {max(runs):4.0f} ms"
    table(f"from the death of a command to our exit, 1 MB of output (of {ROUNDS})", rows)
    table("of which, measured alone", breakdown())


if __name__ == "__main__":
    main()
