"""The store on a PostgreSQL server, shared by a fleet of runners."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from kos_retry.adapters.store.schema import META
from kos_retry.adapters.store.sql import SqlStore
from kos_retry.errors import StoreError

try:
    import psycopg
except ImportError as error:
    raise StoreError("it needs psycopg: install kos-retry[postgres]") from error

# Any number that is the same for all of us.
_MIGRATION_LOCK = 0x6B6F7372


class PostgresStore(SqlStore):
    """A store in the tables of one database."""

    def __init__(self, url: str, wait_seconds: float) -> None:
        """Connect, and make the tables where there are none; raises StoreError where that is not possible.

        The server is asked to give up any statement, and any wait for a lock, after ``wait_seconds``.
        """
        with _faults():
            # The library takes whole seconds, and no less than two.
            self._connection = psycopg.connect(
                url, autocommit=True, connect_timeout=max(2, round(wait_seconds)), prepare_threshold=None
            )
        try:
            limit = max(1, round(wait_seconds * 1000))
            self._run(f"SET statement_timeout = {limit}")
            self._run(f"SET lock_timeout = {limit}")
            self._migrate()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Hang up; see the port."""
        self._connection.close()

    def _has_meta(self) -> bool:
        # Asked of the catalogue itself: functions that look a name up remember what was there when the transaction began.
        found = self._rows("SELECT 1 FROM pg_catalog.pg_class WHERE relname = ? AND pg_table_is_visible(oid)", (META,))
        return bool(list(found))

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> Iterator[Sequence[Any]]:
        with _faults(), self._connection.cursor() as cursor:
            # Row by row: an export must not fill the memory.
            yield from cursor.stream(_placed(statement), values)

    def _run(self, statement: str, values: Sequence[Any] = ()) -> int:
        with _faults(), self._connection.cursor() as cursor:
            return cursor.execute(_placed(statement), values).rowcount

    @contextmanager
    def _transaction(self, *, alone: bool = False) -> Iterator[None]:
        with _faults(), self._connection.transaction():
            if alone:
                self._run("SELECT pg_advisory_xact_lock(?)", (_MIGRATION_LOCK,))
            yield


def _placed(statement: str) -> Any:
    """Return a statement of ours with the places for values as the library wants them."""
    return statement.replace("?", "%s")


@contextmanager
def _faults() -> Iterator[None]:
    """Turn the server's errors into ours, on one line."""
    try:
        yield
    except psycopg.Error as error:
        raise StoreError(" ".join(str(error).split())) from error
