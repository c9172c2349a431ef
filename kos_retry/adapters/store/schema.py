"""The tables of the store, the same in every database, as numbered migrations.

A migration that was released is never changed; a new one is added. A store of a later version than the last one here is left
alone.
"""

from __future__ import annotations

from kos_retry.model import Sighting

PREFIX = "kos_retry_"
META = f"{PREFIX}meta"
TABLE = f"{PREFIX}sightings"

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        f"""CREATE TABLE {TABLE} (
            origin TEXT NOT NULL,
            run TEXT NOT NULL,
            time DOUBLE PRECISION NOT NULL,
            command TEXT NOT NULL,
            command_line TEXT NOT NULL,
            signature TEXT NOT NULL,
            coarse TEXT NOT NULL,
            message TEXT NOT NULL,
            passed SMALLINT NOT NULL,
            changed SMALLINT NOT NULL,
            last SMALLINT NOT NULL,
            attempts BIGINT NOT NULL,
            retries BIGINT NOT NULL,
            retry_seconds DOUBLE PRECISION NOT NULL,
            stop_reason TEXT NOT NULL,
            PRIMARY KEY (origin, run, signature)
        )""",
        f"CREATE INDEX {TABLE}_failure ON {TABLE} (command, signature, time)",
        f"CREATE INDEX {TABLE}_signature ON {TABLE} (signature, last, time)",
        f"CREATE INDEX {TABLE}_class ON {TABLE} (command, coarse, last, time)",
        f"CREATE INDEX {TABLE}_time ON {TABLE} (time)",
    ),
)
VERSION = len(MIGRATIONS)

# The columns are the fields of a sighting; the version of its line is the schema's business.
COLUMNS = tuple(name for name in Sighting.__struct_fields__ if name != "v")
FLAGS = frozenset({"passed", "changed", "last"})
