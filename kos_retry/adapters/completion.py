"""Completing envelopes that callers wrote by hand: category, cause and signature where they are missing."""

from __future__ import annotations

from collections.abc import Sequence

from kos_retry.adapters.extraction.extract import Extraction
from kos_retry.adapters.extraction.material import Material
from kos_retry.engine.observe import completed
from kos_retry.engine.sign import signed
from kos_retry.model import Category, FailureEnvelope, Finding


def complete(history: Sequence[FailureEnvelope], extraction: Extraction) -> tuple[FailureEnvelope, ...]:
    """Return the history with what is missing computed as `observe` would.

    A message without a cause goes through the text extractors; each distinct message once.
    """
    known: dict[tuple[str, int], tuple[Finding, ...]] = {}
    out = []
    for envelope in history:
        findings: tuple[Finding, ...] = ()
        if (
            envelope.cause is None
            and envelope.error_message
            and envelope.category in (Category.UNKNOWN, Category.EXECUTION_FAILURE)
        ):
            key = (envelope.error_message, envelope.exit_code)
            if key not in known:
                known[key] = _findings(envelope, extraction)
            findings = known[key]
        out.append(completed(envelope, findings))
    return tuple(out) if any(e.signature for e in history) else tuple(signed(e) for e in out)


def _findings(envelope: FailureEnvelope, extraction: Extraction) -> tuple[Finding, ...]:
    streams = {"output": envelope.error_message}
    return extraction.run(
        Material(envelope.attempt, envelope.exit_code or 1, envelope.signal, False, (), "", streams)
    ).findings
