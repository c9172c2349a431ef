"""`kos-retry sessions` and `kos-retry report`: what the journals hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from kos_retry.adapters import journal, state
from kos_retry.cli.inputs import state_root
from kos_retry.cli.output import complain, write_json, write_text
from kos_retry.errors import StateError, UnknownNameError
from kos_retry.report.render import FORMATS, text
from kos_retry.report.session import SessionReport, from_records
from kos_retry.text.escapes import printable
from kos_retry.text.words import count


def list_sessions(state_dir: str | None, form: str) -> None:
    """Write one line for every session, the oldest first."""
    root = state_root(state_dir)
    reports = list(_readable(root))
    if form == "json":
        write_json({"sessions": [_summary(report) for report in reports]})
        return
    for report in reports:
        command = printable(" ".join(report.argv))[:80]
        write_text(f"{report.session}  {report.status:9}  {count(report.attempts, 'attempt'):11}  {command}\n")


def show_session(session: str, state_dir: str | None, form: str) -> None:
    """Write what one session's journal holds."""
    root = state_root(state_dir)
    report = _report(root, _existing(root, session))
    write_text(FORMATS[form](report) if form != "text" else text(report))


def report(session: str | None, state_dir: str | None, form: str) -> None:
    """Write the report of a session, of the latest one where none is named."""
    root = state_root(state_dir)
    known = _known(root)
    if session is None and not known:
        raise UnknownNameError(f"there is no session in {root}")
    write_text(FORMATS[form](_report(root, _existing(root, session) if session else known[-1])))


def _known(root: str) -> list[str]:
    """Return the sessions in the state directory, by the time of their last record."""
    base = os.path.join(root, "sessions")
    try:
        names = os.listdir(base)
    except OSError:
        return []
    found = []
    for name in names:
        try:
            found.append((os.stat(os.path.join(base, name, state.JOURNAL)).st_mtime_ns, name))
        except OSError:
            continue
    return [name for _, name in sorted(found)]


def _readable(root: str) -> Iterator[SessionReport]:
    """Yield the reports of all sessions; one whose journal cannot be read is named and hides none of the others."""
    for session in _known(root):
        try:
            yield _report(root, session)
        except StateError as error:
            complain(str(error))


def _existing(root: str, session: str) -> str:
    if not os.path.exists(os.path.join(state.session_directory(root, state.check_session_id(session)), state.JOURNAL)):
        raise UnknownNameError(f"session '{session}': there is none in {root}")
    return session


def _report(root: str, session: str) -> SessionReport:
    return from_records(session, journal.last_run(journal.read(state.session_directory(root, session))))


def _summary(report: SessionReport) -> dict[str, Any]:
    whole = report.as_json()
    return {
        key: whole[key]
        for key in ("session", "command", "started", "status", "exit_code", "attempts", "stop_reason", "spent")
    }
