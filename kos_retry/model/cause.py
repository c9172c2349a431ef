"""Why something failed, apart from its category."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from kos_retry.model.base import Seconds, Wire, bounded


class CauseKind(StrEnum):
    """The closed set of causes that decisions rest on."""

    TRANSIENT = "transient"
    RESOURCE = "resource"
    RUNNER_LOST = "runner_lost"
    AUTH = "auth"
    QUOTA = "quota"
    BILLING = "billing"
    CONFIG = "config"
    PERMISSION_DENIED = "permission_denied"
    COMMAND_NOT_FOUND = "command_not_found"
    ENVIRONMENT = "environment"
    CONTEXT_WINDOW = "context_window"
    MALFORMED_OUTPUT = "malformed_output"
    NO_OUTPUT = "no_output"
    TURN_LIMIT = "turn_limit"
    LOOP_DETECTED = "loop_detected"
    BUDGET = "budget"
    DETERMINISTIC = "deterministic"
    UNKNOWN = "unknown"


class Retryable(StrEnum):
    """Whether running the same thing again can pass."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


# Stands for "not said" until a cause is made; then the kind decides.
_BY_KIND: Any = None
# What the kind alone says; an extractor that knows better says so in `retryable`.
_RETRYABLE = {
    CauseKind.TRANSIENT: Retryable.YES,
    CauseKind.RUNNER_LOST: Retryable.YES,
    **dict.fromkeys(
        (
            CauseKind.AUTH,
            CauseKind.QUOTA,
            CauseKind.BILLING,
            CauseKind.CONFIG,
            CauseKind.PERMISSION_DENIED,
            CauseKind.COMMAND_NOT_FOUND,
            CauseKind.ENVIRONMENT,
            CauseKind.BUDGET,
            CauseKind.DETERMINISTIC,
        ),
        Retryable.NO,
    ),
}


class Cause(Wire, frozen=True, kw_only=True):
    """Why it failed: the kind, whether a retry can mend it, which rule said so and on what evidence.

    ``retry_after_seconds`` is what the other side asked us to wait; ``fix`` is what a human must do. A bare
    string is read as a kind.
    """

    kind: CauseKind
    retryable: Retryable = _BY_KIND
    rule: Annotated[str, bounded(128)] = ""
    evidence: Annotated[str, bounded(512)] = ""
    retry_after_seconds: Seconds | None = None
    fix: Annotated[str, bounded(512)] | None = None

    @classmethod
    def settled(cls, data: Any) -> Any:
        """Return a cause that is a bare kind as an object."""
        if isinstance(data, str):
            data = {"kind": data}
        return super().settled(data)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.retryable is _BY_KIND:
            self._set("retryable", _RETRYABLE.get(self.kind, Retryable.UNKNOWN))
