"""The FailureEnvelope: an outcome, normalised and bounded."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, field_validator, model_validator

from kos_retry.limits import (
    MAX_ACTIONS,
    MAX_ARTIFACTS,
    MAX_CONSTRAINT_BYTES,
    MAX_CONSTRAINTS,
    MAX_MESSAGE_BYTES,
    MAX_NAME_BYTES,
)
from kos_retry.model.action import Action
from kos_retry.model.artifact import DiagnosticArtifact
from kos_retry.model.base import Attempt, Count, Seconds, Wire, bounded, settle_spelling
from kos_retry.model.cause import Cause
from kos_retry.model.stagnation import Recommendation
from kos_retry.text.bounds import byte_length, cut_bytes, well_formed


class Category(StrEnum):
    """What kind of failure it was, in nobody's vocabulary in particular."""

    SUCCESS = "success"
    TIMEOUT = "timeout"
    EXECUTION_FAILURE = "execution_failure"
    CONSTRAINT_VIOLATION = "constraint_violation"
    CONTEXT_CANCELLED = "context_cancelled"
    VERIFICATION_FAILED = "verification_failed"
    UNKNOWN = "unknown"


class Usage(Wire):
    """What an attempt cost; None means unknown, which is not zero.

    ``tokens`` are those in and out together, without what came from a cache where the command tells that apart. ``turns`` are
    requests to a model. Where ``cumulative`` is set, the amounts are what the agent's session has cost so far, earlier
    attempts in it included.
    """

    tokens: Count | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    turns: Count | None = None
    cost_usd: Annotated[float, Field(ge=0, le=1e9)] | None = None
    cumulative: bool = False


class Transcript(Wire):
    """What is known of an agent's transcript, beside its actions and its usage.

    ``session`` is the agent's own name for its session, ``failed`` what the transcript says of the attempt (None: nothing),
    ``denied`` counts the actions that were not permitted, ``malformed_lines`` the lines that could not be read, and
    ``identical_run`` is the longest run of one action with one result.
    """

    format: Annotated[str, bounded(MAX_NAME_BYTES)]
    session: Annotated[str, bounded(MAX_NAME_BYTES)] | None = None
    failed: bool | None = None
    actions: Count = 0
    denied: Count = 0
    malformed_lines: Count = 0
    identical_run: Count = 0


class ReportVerdict(StrEnum):
    """How the report files of an attempt fit with how it ended.

    ``masked_failure``: it exited with 0, and its report tells of failures. ``failed_afterwards``: all that the report tells of passed,
    and the command failed. ``unfinished``: something was started and never ended. ``stale``: the reports that were there
    are of an earlier run, and no evidence.
    """

    AGREES = "agrees"
    MASKED_FAILURE = "masked_failure"
    FAILED_AFTERWARDS = "failed_afterwards"
    UNFINISHED = "unfinished"
    STALE = "stale"


class Omitted(Wire):
    """How much did not fit into an envelope: items, or bytes where the name says so."""

    message_bytes: Count = 0
    constraints: Count = 0
    actions: Count = 0
    artifacts: Count = 0
    output_bytes: Count = 0


def _first_features(value: Any) -> Any:
    return value[: 2 * MAX_CONSTRAINTS] if isinstance(value, (list, tuple)) else value


def _stripped(value: Any) -> Any:
    return cut_bytes(well_formed(value).strip(), MAX_CONSTRAINT_BYTES) if isinstance(value, str) else value


Constraint = Annotated[str, BeforeValidator(_stripped)]


class FailureEnvelope(Wire):
    """One attempt's outcome.

    ``exit_code`` is what a shell would see (128 + N for a signal); ``signal`` names the signal, if one ended
    the command. ``signature`` identifies the failure, ``approach`` what was done to get there, ``coarse`` is
    the failure's class for people. ``extractors`` names those that failed, with the reason. Lists that
    are too long are cut, and ``omitted`` says by how much. ``output_matches`` are the conditions ``output:REGEX``
    that the output met, ``features`` what the signature is made of where own rules of the configuration had a part in it.
    """

    attempt: Attempt = 1
    exit_code: Annotated[int, Field(strict=True, ge=-(2**31), lt=2**32)] = 0
    signal: Annotated[str, bounded(32)] | None = None
    error_message: Annotated[str, BeforeValidator(lambda v: well_formed(v) if isinstance(v, str) else v)] = ""
    category: Category = Category.UNKNOWN
    cause: Cause | None = None
    failing_constraints: tuple[Constraint, ...] = ()
    executed_actions: tuple[Action, ...] = ()
    diagnostic_artifacts: tuple[DiagnosticArtifact, ...] = ()
    extractors: dict[str, str] = {}
    signature: Annotated[str, bounded(MAX_NAME_BYTES)] = ""
    coarse: Annotated[str, bounded(MAX_NAME_BYTES)] = ""
    approach: Annotated[str, bounded(MAX_NAME_BYTES)] | None = None
    timestamp: datetime | None = None
    usage: Usage | None = None
    transcript: Transcript | None = None
    duration_seconds: Seconds | None = None
    files_changed: Count | None = None
    output_matches: tuple[Annotated[str, bounded(MAX_CONSTRAINT_BYTES)], ...] = ()
    http_status: Annotated[int, Field(strict=True, ge=100, le=599)] | None = None
    features: Annotated[tuple[Annotated[str, bounded(MAX_MESSAGE_BYTES)], ...], BeforeValidator(_first_features)] = ()
    reports: ReportVerdict | None = None
    emitted_recommendation: Recommendation | None = None
    omitted: Omitted = Omitted()

    @property
    def is_success(self) -> bool:
        """Return whether nothing failed: the category, the exit code and the constraints agree."""
        return self.category is Category.SUCCESS and self.exit_code == 0 and not self.failing_constraints

    @field_validator("timestamp")
    @classmethod
    def _aware(cls, value: datetime | None) -> datetime | None:
        # Go's zero time means "not set"; a time without a zone is read as UTC.
        if value is None or value.year == 1:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value

    @model_validator(mode="before")
    @classmethod
    def _bound(cls, data: Any) -> Any:
        # Subclass validators run first, so the spelling has to be settled here already.
        return _bound_lists(settle_spelling(cls, data)) if isinstance(data, dict) else data


def _bound_lists(data: dict[str, Any]) -> dict[str, Any]:
    """Cut what is too long, and count it under ``omitted``; wrong types are left for the fields to refuse."""
    out, lost = dict(data), {}
    message = out.get("error_message")
    if isinstance(message, str):
        out["error_message"] = cut_bytes(well_formed(message), MAX_MESSAGE_BYTES)
        if out["error_message"] != message:
            lost["message_bytes"] = byte_length(well_formed(message)) - byte_length(out["error_message"])
    constraints = out.get("failing_constraints")
    # What is no text is left for the field to refuse.
    if isinstance(constraints, (list, tuple)) and all(isinstance(c, str) for c in constraints):
        out["failing_constraints"], lost["constraints"] = _distinct(constraints, MAX_CONSTRAINTS)
    for name, limit in (("executed_actions", MAX_ACTIONS), ("diagnostic_artifacts", MAX_ARTIFACTS)):
        items = out.get(name)
        if isinstance(items, (list, tuple)):
            # The latest actions are what led to the failure.
            out[name] = items[-limit:] if name == "executed_actions" else items[:limit]
            lost[name.split("_")[1]] = len(items) - len(out[name])
    lost = {k: v for k, v in lost.items() if v}
    known = out.get("omitted")
    if lost and (known is None or isinstance(known, (dict, Omitted))):
        before = known.model_dump() if isinstance(known, Omitted) else known or {}
        out["omitted"] = {**before, **lost}
    return out


def _distinct(items: Iterable[Any], limit: int) -> tuple[list[Any], int]:
    """Drop blanks and repetitions; of too many the first in sorted order stay, whoever listed them."""
    kept = list(dict.fromkeys(_stripped(i) for i in items if not (isinstance(i, str) and not i.strip())))
    if len(kept) <= limit or not all(isinstance(i, str) for i in kept):
        return kept, 0
    return sorted(kept)[:limit], len(kept) - limit
