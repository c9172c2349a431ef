"""Completing envelopes that callers wrote by hand: category, cause and signature where they are missing."""

from __future__ import annotations

from collections.abc import Sequence

from kos_retry.adapters.extraction.extract import Extraction
from kos_retry.adapters.extraction.material import Material
from kos_retry.engine.observe import completed
from kos_retry.engine.sign import signed
from kos_retry.limits import MAX_ASKED_MESSAGES
from kos_retry.model import Category, FailureEnvelope, Finding


def complete(history: Sequence[FailureEnvelope], extraction: Extraction) -> tuple[FailureEnvelope, ...]:
    """Return the history with what is missing computed as `observe` would.

    A message without a cause goes through the text extractors, each distinct message once, and of a long history the latest
    `MAX_ASKED_MESSAGES` of them; what older ones say by their exit code and in the system's own words counts all the same.
    """
    asked = {key: _findings(envelope, extraction) for key, envelope in _to_ask(history).items()}
    out = tuple(completed(e, asked.get(_key(e), ()) if _lacks_cause(e) else ()) for e in history)
    return out if any(e.signature for e in history) else tuple(signed(e) for e in out)


def _to_ask(history: Sequence[FailureEnvelope]) -> dict[_Key, FailureEnvelope]:
    """Return the attempts to ask the extractors about, the latest first."""
    out: dict[_Key, FailureEnvelope] = {}
    for envelope in reversed(history):
        if _lacks_cause(envelope):
            out[_key(envelope)] = envelope
        if len(out) == MAX_ASKED_MESSAGES:
            break
    return out


def _lacks_cause(envelope: FailureEnvelope) -> bool:
    said_nothing_of_it = envelope.category in (Category.UNKNOWN, Category.EXECUTION_FAILURE)
    return envelope.cause is None and bool(envelope.error_message) and said_nothing_of_it


_Key = tuple[str, int]


def _key(envelope: FailureEnvelope) -> _Key:
    return envelope.error_message, envelope.exit_code


def _findings(envelope: FailureEnvelope, extraction: Extraction) -> tuple[Finding, ...]:
    streams = {"output": envelope.error_message}
    return extraction.run(
        Material(envelope.attempt, envelope.exit_code or 1, envelope.signal, False, (), "", streams)
    ).findings
