"""The state directory: where sessions live, never in the work tree."""

from __future__ import annotations

import os

from kos_retry.errors import InputError, StateError
from kos_retry.settings import read_session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

JOURNAL = "journal.jsonl"
# Written at the end of a run that was killed: its time says when that was.
FELL = "killed"
# Tells the command of a run, and any kos-retry inside it, where that run keeps its sessions.
VARIABLE = "KOS_RETRY_STATE_DIR"
_PRIVATE = 0o700


def state_directory(chosen: str | None, environment: Mapping[str, str]) -> str:
    """Return the state directory: the chosen one, else that of the run around us, else the user's (XDG base directory specification)."""
    if named := chosen or environment.get(VARIABLE):
        return os.path.abspath(named)
    base = environment.get("XDG_STATE_HOME", "")
    # The specification says that a relative path there is to be ignored.
    if not base.startswith("/"):
        home = environment.get("HOME") or os.path.expanduser("~")
        base = os.path.join(home, ".local", "state")
    return os.path.join(base, "kos-retry")


def new_session_id(now: float, random: bytes) -> str:
    """Return an id that sorts by time and is never given twice: ``20260301-081542-1f2e3d4c``."""
    import time

    return time.strftime("%Y%m%d-%H%M%S", time.gmtime(now)) + "-" + random.hex()


def check_session_id(name: str) -> str:
    """Return ``name`` if it can name a session; raises InputError with the rule if not."""
    try:
        return read_session(name)
    except ValueError as error:
        raise InputError(str(error)) from error


def session_directory(state: str, session: str) -> str:
    """Return the directory of a session."""
    return os.path.join(state, "sessions", session)


def make_private(directory: str) -> None:
    """Create a directory that only this user can read; raises StateError when that is not possible."""
    try:
        os.makedirs(directory, mode=_PRIVATE, exist_ok=True)
    except OSError as error:
        raise StateError(f"cannot create {directory}: {error.strerror}") from error


def write_private(path: str, content: bytes) -> None:
    """Replace a file in one step, readable by this user only; raises StateError when that is not possible."""
    partial = f"{path}.{os.getpid()}.partial"
    try:
        fd = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(content)
        os.replace(partial, path)
    except OSError as error:
        raise StateError(f"cannot write {path}: {error.strerror}") from error
