"""What attempts have cost, in words."""

from __future__ import annotations

from kos_retry.engine.budget import spent_by
from kos_retry.text.words import count

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from kos_retry.model import FailureEnvelope


def spending(ledger: Sequence[FailureEnvelope]) -> str:
    """Return what all attempts have cost and what is not known of it, "" where nothing is known."""
    spent = spent_by(ledger)
    if not spent.is_known:
        return ""
    cost = f"{spent.cost_usd:.2f} USD" if spent.cost_usd is not None else "an unknown cost"
    tokens = f"{spent.tokens} tokens" if spent.tokens is not None else "an unknown number of tokens"
    silent = ", ".join(_named(envelope) for envelope in spent.unknown)
    unknown = f"; what attempt {silent} cost is not known" if silent else ""
    return f"spent by {count(len(ledger), 'attempt')}: {cost}, {tokens}{unknown}"


def _named(envelope: FailureEnvelope) -> str:
    return f"{envelope.attempt} (cut off)" if envelope.category == "context_cancelled" else str(envelope.attempt)
