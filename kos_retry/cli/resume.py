"""`kos-retry sessions resume|stop|prune`: going on with a session, ending a running one, forgetting old ones."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from kos_retry.adapters import journal, state
from kos_retry.cli.inputs import state_root
from kos_retry.cli.options import split_command_line
from kos_retry.cli.output import complain, write_text
from kos_retry.cli.run import run_command
from kos_retry.engine.redact import REDACTED
from kos_retry.errors import InputError, StateError, UnknownNameError
from kos_retry.limits import SESSION_STOP_SECONDS
from kos_retry.model import Category
from kos_retry.outcome import PASSES, NextStep, Past
from kos_retry.report.session import SessionReport, from_records, ledger
from kos_retry.settings import BY_FIELD, Raw
from kos_retry.text.words import count

_POLL_SECONDS = 0.05
_LOCK = "resume.lock"


def resume(session: str, state_dir: str | None, words: Sequence[str]) -> int:
    """Go on with a session where it was left, and return the exit status of the run.

    ``words`` are options of `run` that hold instead of those it was begun with, and its command where that was recorded without a
    secret in it. What was spent counts; an attempt that was cut off by the end of kos-retry itself is made anew.
    """
    root = state_root(state_dir)
    with _alone(session, state.session_directory(root, state.check_session_id(session)), root) as directory:
        records = journal.last_run(journal.read(directory))
        if _running_pid(records) is not None:
            raise _still_running(session)
        report = from_records(session, records)
        if report.status in PASSES:
            raise InputError(f"session '{session}' has {report.status}; there is nothing to go on with")
        given, command = split_command_line(words)
        raw = _whole(session, _recorded_options(records) | given) | {"session": session, "state_dir": root}
        argv = command or _recorded_command(session, records, report.argv)
        _enter(session, records)
        return run_command(raw, argv, _past(report, records, _fell(directory)))


def _past(report: SessionReport, records: Sequence[dict[str, Any]], fell: float | None) -> Past:
    """Return what a session has behind it; an attempt that was cut short is made anew."""
    history = [e.envelope for e in report.entries if e.envelope.category is not Category.CONTEXT_CANCELLED]
    tried = [r["command"] for r in records if r["type"] == "step" and isinstance(r.get("command"), str)]
    step, differed = None, False
    for record in records:
        if record["type"] == "attempt" and not _cut_short(record):
            step = None
        if (taken := _step(record)) is not None:
            step, differed = taken, True
    paid = tuple(ledger([*records, {"type": "resume"}]))
    return Past(history, _seconds_used(records, fell), paid, tried, step, differed)


def _step(record: dict[str, Any]) -> NextStep | None:
    """Return how the run went on by a record, None where it does not say so."""
    if record["type"] == "help":
        guidance = record.get("guidance")
        return NextStep(guidance=guidance if isinstance(guidance, str) else "", helped=True)
    command = record.get("command")
    if record["type"] == "step" and isinstance(command, str) and record.get("exit_code") == 0:
        return NextStep(ran=command)
    return None


def _cut_short(record: dict[str, Any]) -> bool:
    envelope = record.get("envelope")
    return isinstance(envelope, dict) and envelope.get("category") == Category.CONTEXT_CANCELLED


@contextmanager
def _alone(session: str, directory: str, root: str) -> Iterator[str]:
    """Keep others from resuming the same session meanwhile: it is recorded as running a moment later."""
    path = os.path.join(directory, state.JOURNAL)
    if not os.path.exists(path):
        raise UnknownNameError(f"session '{session}': there is none in {root}")
    with open(os.path.join(directory, _LOCK), "ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _still_running(session) from None
        except OSError:
            # A file system without locks: the journal alone tells.
            pass
        yield directory


def _still_running(session: str) -> InputError:
    return InputError(f"session '{session}' is still running")


def stop(session: str, state_dir: str | None) -> None:
    """End a running session from elsewhere, as an interrupt would; what it has done stays in its journal."""
    pid = _running_pid(_records(session, state_dir))
    if pid is None:
        raise InputError(f"session '{session}' is not running")
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        # It ended by itself meanwhile.
        pass
    except PermissionError as error:
        raise InputError(f"session '{session}' is run by another user") from error
    until = time.monotonic() + SESSION_STOP_SECONDS
    while time.monotonic() < until:
        if _running_pid(_records(session, state_dir)) is None:
            write_text(f"stopped {session}\n")
            return
        time.sleep(_POLL_SECONDS)
    raise InputError(f"session '{session}' was told to end and still runs after {SESSION_STOP_SECONDS:g}s")


def prune(state_dir: str | None, older_than: float) -> int:
    """Remove the sessions whose last record is older than so many seconds; running ones stay. Return 1 if some could not be removed."""
    base = os.path.join(state_root(state_dir), "sessions")
    removed = failed = 0
    for name in sorted(os.listdir(base)) if os.path.isdir(base) else []:
        directory = os.path.join(base, name)
        try:
            if _is_old(directory, older_than):
                shutil.rmtree(directory)
                removed += 1
        except (OSError, StateError) as error:
            # One that cannot be removed keeps none of the others.
            complain(f"session '{name}': {getattr(error, 'strerror', None) or error}")
            failed += 1
    write_text(f"removed {count(removed, 'session')}\n")
    return 1 if failed else 0


def _is_old(directory: str, older_than: float) -> bool:
    """Return whether a directory holds a session that does not run and whose last record is older than so many seconds."""
    try:
        age = time.time() - os.stat(os.path.join(directory, state.JOURNAL)).st_mtime
    except OSError:
        return False
    return age >= older_than and _running_pid(journal.last_run(journal.read(directory))) is None


def _records(session: str, state_dir: str | None) -> list[dict[str, Any]]:
    root = state_root(state_dir)
    directory = state.session_directory(root, state.check_session_id(session))
    if not os.path.exists(os.path.join(directory, state.JOURNAL)):
        raise UnknownNameError(f"session '{session}': there is none in {root}")
    return journal.last_run(journal.read(directory))


def _running_pid(records: Sequence[dict[str, Any]]) -> int | None:
    """Return the process that runs a session, None where none does: it ended, or was killed."""
    last: dict[str, Any] = next((r for r in reversed(records) if r["type"] in ("begin", "resume", "end")), {})
    pid = last.get("pid")
    if last.get("type") == "end" or not isinstance(pid, int) or pid <= 1 or pid == os.getpid():
        return None
    # Numbers of processes are used again: it has to be one of ours.
    told = _command_line(pid)
    return pid if "kos-retry" in told or "kos_retry" in told else None


def _command_line(pid: int) -> str:
    """Return the command line of a living process, "" where it is none or nothing tells."""
    if os.path.isdir("/proc/self"):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                return file.read().decode("utf-8", "replace")
        except OSError:
            return ""
    try:
        told = subprocess.run(  # noqa: S603 - a number that we wrote ourselves
            ["ps", "-o", "args=", "-p", str(pid)],  # noqa: S607 - where it lies differs from system to system
            capture_output=True,
            text=True,
            check=False,
        ).stdout
    except OSError:
        return ""
    return "" if "<defunct>" in told else told


def _recorded_options(records: Sequence[dict[str, Any]]) -> Raw:
    """Return the options that a run was begun with; a journal of an older version has none, and what is not known is left out."""
    begin: dict[str, Any] = next((r for r in records if r["type"] == "begin"), {})
    options = begin.get("options")
    return {name: value for name, value in options.items() if name in BY_FIELD} if isinstance(options, dict) else {}


def _whole(session: str, raw: Raw) -> Raw:
    """Return the options if none of them was recorded without a secret in it."""
    for field, value in raw.items():
        if any(REDACTED in word for word in (value if isinstance(value, list) else [value]) if isinstance(word, str)):
            name = BY_FIELD[field].name
            raise InputError(f"session '{session}': --{name} was recorded without a secret in it; give --{name} again")
    return raw


def _recorded_command(session: str, records: Sequence[dict[str, Any]], argv: Sequence[str]) -> list[str]:
    if not argv:
        raise InputError(f"session '{session}': its command is not recorded; say it after --")
    exact = next((r.get("exact") for r in records if r["type"] == "begin"), None)
    if exact is False or any(REDACTED in word for word in argv):
        raise InputError(
            f"session '{session}': its command was recorded without a secret or control characters in it; say it after --"
        )
    return list(argv)


def _enter(session: str, records: Sequence[dict[str, Any]]) -> None:
    """Change to the directory that the session was begun in."""
    cwd = next((r.get("cwd") for r in records if r["type"] == "begin"), None)
    if isinstance(cwd, str) and cwd:
        try:
            os.chdir(cwd)
        except OSError as error:
            raise InputError(f"session '{session}' was begun in {cwd}: {error.strerror}") from error


def _seconds_used(records: Sequence[dict[str, Any]], fell: float | None) -> float:
    """Return the wall-clock time that the session has run, pauses between its parts left out.

    A part that was killed ended when it ``fell``, where that is known, and not with its last record.
    """
    total, since, last = 0.0, None, None
    for record in records:
        at = _time(record.get("time"))
        if at is None:
            continue
        if record["type"] in ("begin", "resume"):
            before = record.get("seconds_used")
            total += (last - since) if since is not None and last is not None else 0.0
            # What was known when it went on holds.
            total = before if isinstance(before, (int, float)) else total
            since = at
        last = at
    if since is None or last is None:
        return total
    if fell is not None and records[-1]["type"] != "end":
        last = max(last, fell)
    return max(0.0, total + last - since)


def _fell(directory: str) -> float | None:
    """Return when the run in this directory was killed last, None where that is not known."""
    try:
        return os.stat(os.path.join(directory, state.FELL)).st_mtime
    except OSError:
        return None


def _time(text: Any) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp() if isinstance(text, str) else None
    except ValueError:
        return None
