"""A session as reports see it: the runs' attempts, what was decided after each, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kos_retry.errors import InputError
from kos_retry.model import Category, Decision, FailureEnvelope


class Entry(NamedTuple):
    """An attempt that did not pass, and the decision after it (None where none was recorded)."""

    envelope: FailureEnvelope
    decision: Decision | None


class SessionReport(NamedTuple):
    """One run of a session. ``status`` is "running" as long as no end is recorded."""

    session: str
    argv: tuple[str, ...]
    started: str
    status: str
    exit_code: int | None
    attempts: int
    entries: tuple[Entry, ...]

    @property
    def last_decision(self) -> Decision | None:
        """Return the decision that the run ended with, if there is one."""
        return self.entries[-1].decision if self.entries else None

    def as_json(self) -> dict[str, Any]:
        """Return the report as one JSON object."""
        decision = self.last_decision
        return {
            "session": self.session,
            "command": list(self.argv),
            "started": self.started,
            "status": self.status,
            "exit_code": self.exit_code,
            "attempts": self.attempts,
            "stop_reason": decision.stop_reason if decision and self.exit_code else None,
            "history": [entry.envelope.as_json() for entry in self.entries],
            "decisions": [entry.decision.as_json() if entry.decision else None for entry in self.entries],
        }


def from_records(session: str, records: Sequence[dict[str, Any]]) -> SessionReport:
    """Return the report of the run in ``records``, see `kos_retry.adapters.journal.last_run`."""
    begin = next((r for r in records if r["type"] == "begin"), {})
    last: dict[str, Any] = next((r for r in reversed(records) if r["type"] in ("begin", "resume", "end")), {})
    end = last if last.get("type") == "end" else {}
    entries = tuple(_entries(records))
    argv = begin.get("argv")
    return SessionReport(
        session=session,
        argv=tuple(str(word) for word in argv) if isinstance(argv, list) else (),
        started=str(begin.get("time") or (records[0].get("time") if records else "") or ""),
        status=str(end.get("status") or "running"),
        exit_code=end.get("exit_code") if isinstance(end.get("exit_code"), int) else None,
        attempts=end["attempts"] if isinstance(end.get("attempts"), int) else len(entries),
        entries=entries,
    )


def _entries(records: Iterable[dict[str, Any]]) -> list[Entry]:
    entries: list[Entry] = []
    for record in records:
        if record["type"] == "resume" and entries and entries[-1].envelope.category is Category.CONTEXT_CANCELLED:
            # A resumed run makes the attempt that was cut short anew.
            entries.pop()
        if record["type"] == "attempt":
            entries += _entry(record)
    return entries


def _entry(record: dict[str, Any]) -> list[Entry]:
    """Return the attempt in a record; none where it cannot be read: one of a later version must not hide the others."""
    decision = record.get("decision")
    try:
        envelope = FailureEnvelope.from_json(record.get("envelope"))
        return [Entry(envelope, Decision.from_json(decision) if decision else None)]
    except InputError:
        return []
