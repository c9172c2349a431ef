"""The store in a file: no set-up, many processes at once, safe against a kill at any moment.

The file carries our application id in its header, so that a file of somebody else's is told from a damaged one of ours. With the
write-ahead log readers never wait for a writer.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

from kos_retry.adapters.store.schema import META
from kos_retry.adapters.store.sql import SqlStore
from kos_retry.errors import StoreDamagedError, StoreError

# "kosr" as a number: bytes 68 to 71 of the file (SQLite file format, section 1.3).
APPLICATION_ID = 0x6B6F7372
_MAGIC = b"SQLite format 3\0"
_ID_AT = 68
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_RETRY_SECONDS = 0.02


class SqliteStore(SqlStore):
    """A store in one file."""

    def __init__(self, path: str, wait_seconds: float) -> None:
        """Open or begin the store; raises StoreDamagedError for a file that is none, StoreError where it cannot be used.

        Nothing waits longer than ``wait_seconds`` for another process.
        """
        if not is_ours(path):
            raise StoreDamagedError("it is no store of kos-retry")
        self._until = time.monotonic() + wait_seconds
        _begin_private(path)
        with _faults():
            # The thread that waits for the store is not the one that works with it.
            self._connection = sqlite3.connect(
                path, timeout=wait_seconds, isolation_level=None, check_same_thread=False
            )
        try:
            self._begin()
            self._migrate()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; see the port."""
        self._connection.close()

    def _begin(self) -> None:
        """Put our id into a new file, before the log begins: the header is then right from its first byte on."""
        with _faults():
            if not self._number("PRAGMA application_id"):
                self._patiently(f"PRAGMA application_id = {APPLICATION_ID}")
            if self._text("PRAGMA journal_mode") != "wal":
                self._patiently("PRAGMA journal_mode = WAL")
            # The log is in order after a kill; only a loss of power can cost the last runs.
            self._connection.execute("PRAGMA synchronous = NORMAL")

    def _patiently(self, pragma: str) -> None:
        """Run a statement that the database does not wait with while another process has the file."""
        while True:
            try:
                self._text(pragma)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > self._until:
                    raise
                time.sleep(_RETRY_SECONDS)
            else:
                return

    def _number(self, pragma: str) -> int:
        return int(self._connection.execute(pragma).fetchone()[0])

    def _text(self, pragma: str) -> str:
        row = self._connection.execute(pragma).fetchone()
        return str(row[0]) if row else ""

    def _has_meta(self) -> bool:
        return bool(list(self._rows("SELECT 1 FROM sqlite_master WHERE name = ?", (META,))))

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> Iterator[Sequence[Any]]:
        with _faults(), closing(self._connection.execute(statement, values)) as cursor:
            yield from cursor

    def _run(self, statement: str, values: Sequence[Any] = ()) -> int:
        with _faults(), closing(self._connection.execute(statement, values)) as cursor:
            return cursor.rowcount

    @contextmanager
    def _transaction(self, *, alone: bool = False) -> Iterator[None]:
        """Begin by taking the write lock: one that is taken halfway cannot be waited for. It keeps everybody out."""
        del alone
        with _faults():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def is_ours(path: str) -> bool:
    """Return whether a file is a store, or nothing yet, by its header; raises StoreError where it cannot be read."""
    try:
        with open(path, "rb") as file:
            head = file.read(_ID_AT + 4)
    except FileNotFoundError:
        return True
    except OSError as error:
        raise StoreError(str(error.strerror)) from error
    return not head or (head.startswith(_MAGIC) and head[_ID_AT:] == APPLICATION_ID.to_bytes(4, "big"))


def _begin_private(path: str) -> None:
    """Make an empty file that only this user can read; what the database puts beside it follows suit."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreError(str(error.strerror)) from error


def identity(path: str) -> tuple[int, int] | None:
    """Return which file it is, whatever its name; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def set_aside(path: str, damaged: tuple[int, int] | None, stamp: str) -> str | None:
    """Rename the damaged file and what belongs to it; return its new name, None where another process was faster."""
    import fcntl

    directory = os.open(os.path.dirname(path) or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        if identity(path) != damaged:
            return None
        aside = f"{path}.corrupt-{stamp}"
        for suffix in ("-wal", "-shm", ""):
            try:
                os.rename(path + suffix, aside + suffix)
            except FileNotFoundError:
                continue
    except OSError as error:
        raise StoreError(f"it is damaged and cannot be set aside: {error.strerror}") from error
    finally:
        os.close(directory)
    return aside


@contextmanager
def _faults() -> Iterator[None]:
    """Turn the database's errors into ours."""
    try:
        yield
    except sqlite3.Error as error:
        damaged = getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED
        raise (StoreDamagedError if damaged else StoreError)(str(error)) from error
