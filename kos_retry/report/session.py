"""A session as reports see it: the runs' attempts, what was decided after each, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from kos_retry.engine.budget import spent_by
from kos_retry.errors import InputError
from kos_retry.model import Category, Decision, FailureEnvelope, Recommendation
from kos_retry.outcome import PASSES


class Entry(NamedTuple):
    """An attempt that did not pass, and the decision after it (None where none was recorded)."""

    envelope: FailureEnvelope
    decision: Decision | None


class SessionReport(NamedTuple):
    """One run of a session. ``status`` is "running" as long as no end is recorded.

    ``ended_by`` is the stop reason that its end names. The ``ledger`` has all attempts that were paid for, in their order: those that
    did not pass, those that were cut short, and the one that passed where anything is known of it.
    """

    session: str
    argv: tuple[str, ...]
    started: str
    status: str
    exit_code: int | None
    attempts: int
    entries: tuple[Entry, ...]
    ledger: tuple[FailureEnvelope, ...] = ()
    ended_by: str | None = None

    @property
    def last_decision(self) -> Decision | None:
        """Return the decision that the run ended with, if there is one."""
        return self.entries[-1].decision if self.entries else None

    @property
    def stop_reason(self) -> str | None:
        """Return why the run ended, None where it passed or goes on: not always for what was decided last."""
        decided = self.last_decision.stop_reason if self.last_decision and self.exit_code else None
        return self.ended_by or (str(decided) if decided else None)

    def as_json(self) -> dict[str, Any]:
        """Return the report as one JSON object."""
        spent = spent_by(self.ledger)
        return {
            "session": self.session,
            "command": list(self.argv),
            "started": self.started,
            "status": self.status,
            "exit_code": self.exit_code,
            "attempts": self.attempts,
            "stop_reason": self.stop_reason,
            "spent": {
                "cost_usd": spent.cost_usd,
                "tokens": spent.tokens,
                "unknown": [envelope.attempt for envelope in spent.unknown],
            },
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
        ledger=tuple(ledger(records)),
        ended_by=end["stop_reason"] if isinstance(end.get("stop_reason"), str) else None,
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


def ledger(records: Iterable[dict[str, Any]]) -> Iterator[FailureEnvelope]:
    """Yield all attempts that were paid for, in their order.

    Where the run was resumed although no end of it is recorded, an attempt was cut off: nobody knows what it has cost.
    """
    made = 0
    goes_on = False
    for record in records:
        if record["type"] == "attempt":
            for envelope, decision in _entry(record):
                made += envelope.category is not Category.CONTEXT_CANCELLED
                goes_on = decision is not None and decision.recommendation is not Recommendation.HALT
                yield envelope
        elif record["type"] in ("begin", "resume"):
            if goes_on:
                yield FailureEnvelope(attempt=made + 1, category=Category.CONTEXT_CANCELLED)
            goes_on = True
        elif record["type"] == "end":
            goes_on = False
            if record.get("status") in PASSES and isinstance(record.get("usage"), dict):
                yield from _passed(record)


def _passed(end: dict[str, Any]) -> list[FailureEnvelope]:
    """Return the attempt that a run ended with; what it has cost is written there as its own."""
    envelope = {"attempt": end.get("attempts"), "category": Category.SUCCESS.value, "usage": end["usage"]}
    return [entry.envelope for entry in _entry({"envelope": envelope})]


def _entry(record: dict[str, Any]) -> list[Entry]:
    """Return the attempt in a record; none where it cannot be read: one of a later version must not hide the others."""
    decision = record.get("decision")
    try:
        envelope = FailureEnvelope.from_json(record.get("envelope"))
        return [Entry(envelope, Decision.from_json(decision) if decision else None)]
    except InputError:
        return []
