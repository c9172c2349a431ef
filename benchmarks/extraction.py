"""What the extractors cost: all that fit a long mixed log together, and each of them alone."""

from __future__ import annotations

import statistics
import time

from measure import machine, table

from kos_retry.adapters.extraction.dispatch import cores
from kos_retry.adapters.extraction.extract import Extraction
from kos_retry.adapters.extraction.manifest import bundled, bundled_root
from kos_retry.adapters.extraction.material import Material
from kos_retry.engine.redact import Redactor
from kos_retry.text.escapes import decode, plain_text

ROUNDS = 3
SIZES = {"1 MB": 10**6, "10 MB": 10**7}
NOISE = "2026-03-01T08:15:42Z INFO worker 7 handled request 4711 of queue orders in 12.5 ms\n" * 200


def mixed(size: int) -> str:
    """Return a log of this size: the recorded outputs of all bundled extractors, with quiet lines between them."""
    logs = [plain_text(decode(path.read_bytes())) for path in sorted(bundled_root().glob("*/fixtures/*/*.log"))]
    parts: list[str] = []
    length = 0
    while length < size:
        part = f"{logs[len(parts) % len(logs)].rstrip()}\n{NOISE}"
        parts.append(part)
        length += len(part)
    return "".join(parts)[:size]


def timed(text: str, names: tuple[str, ...]) -> float:
    """Return the milliseconds that the extractors of these names take for one log, with their hosts running."""
    chosen = [manifest for manifest in bundled() if manifest.id in names]
    material = Material(1, 1, None, False, ("make",), "", {"stdout": text, "stderr": ""})
    runs = []
    with Extraction(Redactor(), chosen) as extraction:
        for _ in range(ROUNDS):
            began = time.perf_counter()
            found = extraction.run(material)
            runs.append((time.perf_counter() - began) * 1000)
            if found.failures:
                print(found.failures)
    return statistics.median(runs)


def main() -> None:
    """Measure both."""
    print(machine())
    names = tuple(manifest.id for manifest in bundled())
    together = {name: f"{timed(mixed(size), names):.0f} ms" for name, size in SIZES.items()}
    table(f"all {len(names)} extractors on {cores()} cores", together)
    alone = {name: timed(mixed(10**6), (name,)) for name in names}
    slowest_first = sorted(alone.items(), key=lambda entry: -entry[1])
    table("each alone, 1 MB", {name: f"{taken:6.0f} ms" for name, taken in slowest_first})


if __name__ == "__main__":
    main()
