"""The store over any SQL database: the statements, and rows to and from sightings."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

from kos_retry.adapters.store.schema import COLUMNS, FLAGS, META, MIGRATIONS, TABLE, VERSION
from kos_retry.errors import StoreError
from kos_retry.model import Sighting
from kos_retry.model.base import MAX_COUNT

_SELECT = f"SELECT {', '.join(COLUMNS)} FROM {TABLE}"
_INSERT = f"INSERT INTO {TABLE} ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))}) ON CONFLICT DO NOTHING"
_NEWEST = "ORDER BY time DESC LIMIT ?"


class SqlStore(ABC):
    """What all databases share; an adapter says how statements are run, and turns their faults into StoreError."""

    @property
    def origin(self) -> str:
        """Return the store's id; see the port."""
        return str(self._meta("origin"))

    def add(self, sightings: Iterable[Sighting]) -> int:
        """Add sightings; see the port."""
        with self._transaction():
            return sum(self._run(_INSERT, _row(sighting)) for sighting in sightings)

    def of_failure(self, command: str, signature: str, limit: int) -> tuple[Sighting, ...]:
        """Return the sightings of one failure; see the port."""
        return self._sightings(
            f"{_SELECT} WHERE command = ? AND signature = ? {_NEWEST}", (command, signature, _rows_at_most(limit))
        )

    def lessons(self, limit: int) -> tuple[Sighting, ...]:
        """Return the newest lessons; see the port."""
        return self._sightings(f"{_SELECT} WHERE last = 1 {_NEWEST}", (_rows_at_most(limit),))

    def lessons_like(self, command: str, signature: str, coarse: str, limit: int) -> tuple[Sighting, ...]:
        """Return similar lessons; see the port."""
        limit = _rows_at_most(limit)
        same = self._sightings(f"{_SELECT} WHERE signature = ? AND last = 1 {_NEWEST}", (signature, limit))
        alike = self._sightings(
            f"{_SELECT} WHERE command = ? AND coarse = ? AND last = 1 {_NEWEST}", (command, coarse, limit)
        )
        return tuple(dict.fromkeys([*same, *alike]))[:limit]

    def failures(self, limit: int, *, flaky: bool) -> tuple[tuple[str, str], ...]:
        """Return commands with signatures; see the port."""
        chosen = (
            "HAVING SUM(CASE WHEN passed = 1 AND changed = 0 AND retries > 0 THEN 1 ELSE 0 END) > 0" if flaky else ""
        )
        order = "SUM(retry_seconds) DESC, SUM(retries) DESC" if flaky else "MAX(time) DESC"
        rows = self._rows(
            f"SELECT command, signature FROM {TABLE} GROUP BY command, signature {chosen}"
            f" ORDER BY {order}, command, signature LIMIT ?",
            (_rows_at_most(limit),),
        )
        return tuple((str(command), str(signature)) for command, signature in rows)

    def all(self) -> Iterator[Sighting]:
        """Yield everything; see the port."""
        return map(_sighting, self._rows(f"{_SELECT} ORDER BY time, origin, run, signature"))

    def prune(self, older_than: datetime | None = None, keep: int | None = None) -> int:
        """Drop the oldest; see the port."""
        dropped = 0
        with self._transaction():
            if older_than is not None:
                dropped += self._run(f"DELETE FROM {TABLE} WHERE time < ?", (older_than.timestamp(),))
            if keep is not None:
                # What is as old as the first one too many goes with it.
                for (time,) in list(
                    self._rows(f"SELECT time FROM {TABLE} {_NEWEST} OFFSET ?", (1, _rows_at_most(keep)))
                ):
                    dropped += self._run(f"DELETE FROM {TABLE} WHERE time <= ?", (time,))
        return dropped

    @abstractmethod
    def close(self) -> None:
        """Let go of it; see the port."""

    def _migrate(self) -> None:
        """Bring the tables to the version known here; raises StoreError for a later one."""
        version = self._version()
        if version < VERSION:
            with self._transaction(alone=True):
                version = self._version()
                if version == 0:
                    self._run(f"CREATE TABLE {META} (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
                    self._run(f"INSERT INTO {META} VALUES ('origin', ?), ('schema', '0')", (os.urandom(8).hex(),))
                for statement in (statement for migration in MIGRATIONS[version:] for statement in migration):
                    self._run(statement)
                self._run(f"UPDATE {META} SET value = ? WHERE name = 'schema'", (str(max(version, VERSION)),))
        if version > VERSION:
            raise StoreError(
                f"it has version {version} and this kos-retry knows {VERSION}: it is left alone, a newer kos-retry reads it"
            )

    def _version(self) -> int:
        return int(self._meta("schema") or 0) if self._has_meta() else 0

    def _meta(self, name: str) -> str | None:
        rows = list(self._rows(f"SELECT value FROM {META} WHERE name = ?", (name,)))
        return str(rows[0][0]) if rows else None

    def _sightings(self, statement: str, values: Sequence[Any]) -> tuple[Sighting, ...]:
        return tuple(map(_sighting, self._rows(statement, values)))

    @abstractmethod
    def _has_meta(self) -> bool:
        """Return whether the database holds a store."""

    @abstractmethod
    def _rows(self, statement: str, values: Sequence[Any] = ()) -> Iterator[Sequence[Any]]:
        """Yield the rows of a query."""

    @abstractmethod
    def _run(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run a statement and return how many rows it touched."""

    @abstractmethod
    def _transaction(self, *, alone: bool = False) -> AbstractContextManager[object]:
        """Return a context whose statements hold together; ``alone`` keeps other migrations out meanwhile."""


def _rows_at_most(number: int) -> int:
    """Return a number of rows that every database can count to; more than that is all of them."""
    return min(number, MAX_COUNT)


def _row(sighting: Sighting) -> tuple[Any, ...]:
    values = ((name, getattr(sighting, name)) for name in COLUMNS)
    return tuple(int(v) if name in FLAGS else v.timestamp() if name == "time" else v for name, v in values)


def _sighting(row: Sequence[Any]) -> Sighting:
    values = dict(zip(COLUMNS, row, strict=True))
    values.update({name: bool(values[name]) for name in FLAGS})
    return Sighting(**{**values, "time": datetime.fromtimestamp(values["time"], UTC)})
