"""Builders: values with sensible defaults, so that a test names only what it is about."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kos_retry.engine.estimate import Record, record_of
from kos_retry.engine.observe import Evidence, observe
from kos_retry.engine.sign import signed
from kos_retry.model import Action, Cause, FailureEnvelope, Finding, Sighting

ROOT = Path(__file__).resolve().parents[1]
PYTHON = sys.executable
NOW = datetime(2026, 3, 1, 8, 15, 42, tzinfo=UTC)


def an_action(name: str = "edit", **fields: Any) -> Action:
    """Return an action."""
    return Action.from_json({"name": name, **fields})


def an_envelope(message: str = "ValueError: bad total", **fields: Any) -> FailureEnvelope:
    """Return the signed envelope of a failure."""
    given = {"exit_code": 1, "category": "execution_failure", "error_message": message, **fields}
    return signed(FailureEnvelope.from_json(given))


def a_success(**fields: Any) -> FailureEnvelope:
    """Return the signed envelope of an attempt that passed."""
    return an_envelope("", **{"exit_code": 0, "category": "success", **fields})


def a_history(*messages: str, **fields: Any) -> tuple[FailureEnvelope, ...]:
    """Return one failure for each message, numbered from 1."""
    return tuple(an_envelope(message, attempt=n, **fields) for n, message in enumerate(messages, 1))


def a_cause(kind: str = "transient", **fields: Any) -> Cause:
    """Return a cause."""
    return Cause.from_json({"kind": kind, **fields})


def a_finding(kind: str = "test", **fields: Any) -> Finding:
    """Return a finding that an extractor is sure of."""
    return Finding.from_json({"kind": kind, "confidence": "exact", **fields})


def observed(*outputs: str, exit_code: int = 1, **fields: Any) -> FailureEnvelope:
    """Return the envelope of an attempt that printed these outputs."""
    return observe(Evidence(attempt=1, exit_code=exit_code, outputs=outputs, **fields))


def a_sighting(run: str = "r1", *, age_days: float = 0.0, **fields: Any) -> Sighting:
    """Return a failure that was seen in one run, which tried the same again and failed for good."""
    given = {
        "origin": "here",
        "run": run,
        "time": NOW - timedelta(days=age_days),
        "command": "c0:make",
        "command_line": "make check",
        "signature": "k0:a",
        "coarse": "ValueError",
        "message": "ValueError: bad total",
        "passed": False,
        "attempts": 2,
        "retries": 1,
        "retry_seconds": 3.5,
    }
    return Sighting.from_json({**given, **fields})


def a_record(
    *, passed: int = 0, failed: int = 0, repaired: int = 0, runs: int = 0, most_attempts: int = 2, age_days: float = 0.0
) -> Record:
    """Return the record of a failure that so many runs passed, failed and repaired; the others tried nothing again."""
    kinds = (
        [{"passed": True, "attempts": most_attempts}] * passed
        + [{"passed": True, "changed": True}] * repaired
        + [{}] * failed
    )
    kinds += [{"retries": 0}] * (runs - len(kinds))
    return record_of((a_sighting(f"r{n}", age_days=age_days, **kind) for n, kind in enumerate(kinds)), NOW)
