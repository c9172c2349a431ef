"""Where the store is, and opening it there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from typing import NamedTuple, TypeVar

from kos_retry.adapters import state
from kos_retry.errors import StateError, StoreDamagedError, StoreError
from kos_retry.ports import Store
from kos_retry.settings import STORE_FILE, STORE_NONE
from kos_retry.text.urls import HIDDEN, passwords, without_password

FILE_NAME = "store.sqlite3"
Answer = TypeVar("Answer")


class Location(NamedTuple):
    """A store's place: a file, or a server's address; ``chosen`` by the user or where it is by default."""

    file: str | None
    url: str | None
    chosen: bool

    @property
    def shown(self) -> str:
        """Return the place as it may be printed."""
        return self.file or without_password(self.url or "")


def locate(store: str | None, state_directory: str) -> Location | None:
    """Return the place that a value of ``--store`` names, None where it is switched off."""
    if store is None:
        return Location(os.path.join(state_directory, FILE_NAME), None, chosen=False)
    if store == STORE_NONE:
        return None
    if store.startswith(STORE_FILE):
        return Location(os.path.abspath(store[len(STORE_FILE) :]), None, chosen=True)
    return Location(None, store, chosen=True)


def load(location: Location) -> None:
    """Import what opening the store needs, so that no time limit of a question pays for it."""
    try:
        if location.file is None:
            import kos_retry.adapters.store.postgres
        else:
            import kos_retry.adapters.store.sqlite  # noqa: F401 - for whoever asks next
    except StoreError:
        # Opening it says the same, in the place where faults are told.
        return


def with_store(
    location: Location, wait_seconds: float, warn: Callable[[str], None], work: Callable[[Store], Answer]
) -> Answer:
    """Open the store, work with it, and close it; raises StoreError that names the place.

    A file of ours that is damaged, and what is no store in the place of ours, is renamed and a new store begun. A file that
    somebody chose and that is no store is left alone: it may be all they have.
    """
    try:
        try:
            return _worked(location, wait_seconds, warn, work)
        except StoreDamagedError:
            return _worked(location, wait_seconds, warn, work)
    except (StoreError, StateError) as error:
        raise StoreError(f"cannot use the store {location.shown}: {_without_secrets(str(error), location)}") from error


def _without_secrets(message: str, location: Location) -> str:
    """Return what a database said without the password that it may quote from an address it cannot read."""
    for password in passwords(location.url or ""):
        message = message.replace(password, HIDDEN)
    return message


def _worked(
    location: Location, wait_seconds: float, warn: Callable[[str], None], work: Callable[[Store], Answer]
) -> Answer:
    if location.file is None:
        from kos_retry.adapters.store.postgres import PostgresStore

        with closing(PostgresStore(location.url or "", wait_seconds)) as server:
            return work(server)
    from kos_retry.adapters.store import sqlite

    state.make_private(os.path.dirname(location.file))
    which = sqlite.identity(location.file)
    try:
        with closing(sqlite.SqliteStore(location.file, wait_seconds)) as store:
            return work(store)
    except StoreDamagedError as error:
        if location.chosen and not sqlite.is_ours(location.file):
            raise StoreError(f"{error}; it is left alone") from error
        aside = sqlite.set_aside(location.file, which, time.strftime("%Y%m%d-%H%M%S", time.gmtime()))
        if aside is not None:
            warn(f"the store {location.shown} is damaged ({error}): it is kept as {aside}, and a new one is begun")
        raise
