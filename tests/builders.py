"""Builders: values with sensible defaults, so that a test names only what it is about."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from kos_retry.engine.observe import Evidence, observe
from kos_retry.engine.sign import signed
from kos_retry.model import Action, Cause, FailureEnvelope, Finding

ROOT = Path(__file__).resolve().parents[1]
PYTHON = sys.executable


def an_action(name: str = "edit", **fields: Any) -> Action:
    """Return an action."""
    return Action.model_validate({"name": name, **fields})


def an_envelope(message: str = "ValueError: bad total", **fields: Any) -> FailureEnvelope:
    """Return the signed envelope of a failure."""
    given = {"exit_code": 1, "category": "execution_failure", "error_message": message, **fields}
    return signed(FailureEnvelope.model_validate(given))


def a_success(**fields: Any) -> FailureEnvelope:
    """Return the signed envelope of an attempt that passed."""
    return an_envelope("", **{"exit_code": 0, "category": "success", **fields})


def a_history(*messages: str, **fields: Any) -> tuple[FailureEnvelope, ...]:
    """Return one failure for each message, numbered from 1."""
    return tuple(an_envelope(message, attempt=n, **fields) for n, message in enumerate(messages, 1))


def a_cause(kind: str = "transient", **fields: Any) -> Cause:
    """Return a cause."""
    return Cause.model_validate({"kind": kind, **fields})


def a_finding(kind: str = "test", **fields: Any) -> Finding:
    """Return a finding that an extractor is sure of."""
    return Finding.model_validate({"kind": kind, "confidence": "exact", **fields})


def observed(*outputs: str, exit_code: int = 1, **fields: Any) -> FailureEnvelope:
    """Return the envelope of an attempt that printed these outputs."""
    return observe(Evidence(attempt=1, exit_code=exit_code, outputs=outputs, **fields))
