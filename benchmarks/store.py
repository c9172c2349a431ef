"""What a failure waits for the store: one lookup and one record, in a file with a million outcomes.

The file is filled with SQL alone, so that filling it takes a minute and not an hour.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from kos_retry import limits
from kos_retry.adapters.store.schema import COLUMNS, TABLE
from kos_retry.adapters.store.sqlite import SqliteStore
from kos_retry.engine.estimate import record_of
from kos_retry.model import Sighting

OUTCOMES = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
ROUNDS = 31
# A hundred commands with a hundred failures each; every tenth run passed.
FILL = f"""
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)
INSERT INTO {TABLE} ({", ".join(COLUMNS)})
SELECT 'bench', printf('%016x', i), ? - i * 1.0, printf('c0:%064d', i % 100), 'make check', printf('k0:%064d', i % 10000),
  'ValueError', 'ValueError: bad total in the cart of the shop', i % 10 = 0, 0, 1, 2, 1, 3.5, '' FROM n
"""


def main() -> None:
    """Fill a store, and time what a failing run does with it."""
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory) / "store.sqlite3")
        now = time.time()
        with closing(SqliteStore(path, 60.0)) as store:
            store._run(FILL, (OUTCOMES, now))  # noqa: SLF001 - the port has no way to add a million at once
        size = Path(path).stat().st_size / 2**20
        print(f"{OUTCOMES} outcomes, {size:.0f} MiB")
        for name, work in (("lookup", lookup), ("record", record), ("prune", prune)):
            print(
                f"{name}: {statistics.median(timed(work, path, n) for n in range(ROUNDS)) * 1000:.1f} ms (median of {ROUNDS})"
            )


def timed(work: Callable[[SqliteStore, int], None], path: str, number: int) -> float:
    """Return the seconds that opening the store, the work and closing it took."""
    began = time.perf_counter()
    with closing(SqliteStore(path, 60.0)) as store:
        work(store, number)
    return time.perf_counter() - began


def lookup(store: SqliteStore, number: int) -> None:
    """Do what a failure waits for."""
    command, signature = f"c0:{number:064d}", f"k0:{number:064d}"
    record_of(store.of_failure(command, signature, limits.STORE_LOOKUP_ROWS), datetime.now(UTC))
    store.lessons_like(command, signature, "ValueError", 20)


def record(store: SqliteStore, number: int) -> None:
    """Do what the end of a failing run waits for."""
    store.add(
        [
            Sighting(
                origin=store.origin,
                run=f"run{number}",
                time=datetime.now(UTC),
                command="c0:x",
                signature="k0:x",
                passed=True,
                attempts=2,
            )
        ]
    )


def prune(store: SqliteStore, number: int) -> None:
    """Do what one run in many does as well."""
    store.prune(datetime.fromtimestamp(0, UTC), OUTCOMES + 1000 - number)


if __name__ == "__main__":
    main()
