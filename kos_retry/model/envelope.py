"""The FailureEnvelope: an outcome, normalised and bounded."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

from msgspec import Meta

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
from kos_retry.model.base import Attempt, Count, Seconds, Wire, bounded, bounded_by
from kos_retry.model.cause import Cause
from kos_retry.model.stagnation import Recommendation
from kos_retry.text.bounds import byte_length, cut_bytes, well_formed

ExitCode = Annotated[int, Meta(ge=-(2**31), lt=2**32)]
# Those of a failure's words and of its constraints.
MAX_FEATURES = 2 * MAX_CONSTRAINTS


class Category(StrEnum):
    """What kind of failure it was, in nobody's vocabulary in particular."""

    SUCCESS = "success"
    TIMEOUT = "timeout"
    EXECUTION_FAILURE = "execution_failure"
    CONSTRAINT_VIOLATION = "constraint_violation"
    CONTEXT_CANCELLED = "context_cancelled"
    VERIFICATION_FAILED = "verification_failed"
    UNKNOWN = "unknown"


class Usage(Wire, frozen=True, kw_only=True):
    """What an attempt cost; None means unknown, which is not zero.

    ``tokens`` are those in and out together, without what came from a cache where the command tells that apart. ``turns`` are
    requests to a model. Where ``cumulative`` is set, the amounts are what the agent's session has cost so far, earlier
    attempts in it included.
    """

    tokens: Count | None = None
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    turns: Count | None = None
    cost_usd: Annotated[float, Meta(ge=0, le=1e9)] | None = None
    cumulative: bool = False


class Transcript(Wire, frozen=True, kw_only=True):
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


class Omitted(Wire, frozen=True, kw_only=True):
    """How much did not fit into an envelope: items, or bytes where the name says so."""

    message_bytes: Count = 0
    constraints: Count = 0
    actions: Count = 0
    artifacts: Count = 0
    output_bytes: Count = 0


def _stripped(text: str) -> str:
    return cut_bytes(well_formed(text).strip(), MAX_CONSTRAINT_BYTES)


def _aware(time: datetime) -> datetime | None:
    """Return a time with its zone, which is UTC where none is given; Go's zero time means "not set"."""
    if time.year == 1:
        return None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time


Constraint = Annotated[str, bounded_by(_stripped)]


class FailureEnvelope(Wire, frozen=True, kw_only=True):
    """One attempt's outcome.

    ``exit_code`` is what a shell would see (128 + N for a signal); ``signal`` names the signal, if one ended
    the command. ``signature`` identifies the failure, ``approach`` what was done to get there, ``coarse`` is
    the failure's class for people. ``extractors`` names those that failed, with the reason. Lists that
    are too long are cut, and ``omitted`` says by how much. ``output_matches`` are the conditions ``output:REGEX``
    that the output met, ``features`` what the signature is made of where own rules of the configuration had a part in it.
    ``silent`` says that who told of the attempt told of its actions and its words, and there were none.
    """

    attempt: Attempt = 1
    exit_code: ExitCode = 0
    signal: Annotated[str, bounded(32)] | None = None
    error_message: str = ""
    category: Category = Category.UNKNOWN
    cause: Cause | None = None
    failing_constraints: tuple[Constraint, ...] = ()
    executed_actions: tuple[Action, ...] = ()
    diagnostic_artifacts: tuple[DiagnosticArtifact, ...] = ()
    extractors: dict[str, str] = {}
    signature: Annotated[str, bounded(MAX_NAME_BYTES)] = ""
    coarse: Annotated[str, bounded(MAX_NAME_BYTES)] = ""
    approach: Annotated[str, bounded(MAX_NAME_BYTES)] | None = None
    timestamp: Annotated[datetime, bounded_by(_aware)] | None = None
    usage: Usage | None = None
    transcript: Transcript | None = None
    duration_seconds: Seconds | None = None
    files_changed: Count | None = None
    output_matches: tuple[Annotated[str, bounded(MAX_CONSTRAINT_BYTES)], ...] = ()
    http_status: Annotated[int, Meta(ge=100, le=599)] | None = None
    features: tuple[Annotated[str, bounded(MAX_MESSAGE_BYTES)], ...] = ()
    reports: ReportVerdict | None = None
    silent: bool = False
    emitted_recommendation: Recommendation | None = None
    omitted: Omitted = Omitted()

    @property
    def is_success(self) -> bool:
        """Return whether nothing failed: the category, the exit code and the constraints agree."""
        return self.category is Category.SUCCESS and self.exit_code == 0 and not self.failing_constraints

    @classmethod
    def settled(cls, data: Any) -> Any:
        """Return an envelope under the names of our fields, with whether the one who wrote it told of nothing at all."""
        settled = super().settled(data)
        # Callers that leave these fields out say nothing about them.
        if isinstance(settled, dict) and {"error_message", "executed_actions"} <= settled.keys():
            settled.setdefault("silent", not (settled["error_message"] or settled["executed_actions"]))
        return settled

    def __post_init__(self) -> None:
        super().__post_init__()
        lost = {"message_bytes": self._cut_message(), "constraints": self._cut_constraints()}
        # The latest actions are what led to the failure.
        lost["actions"] = self._keep("executed_actions", self.executed_actions[-MAX_ACTIONS:])
        lost["artifacts"] = self._keep("diagnostic_artifacts", self.diagnostic_artifacts[:MAX_ARTIFACTS])
        self._keep("features", self.features[:MAX_FEATURES])
        if any(lost.values()):
            self._set("omitted", self.omitted.replace(**{name: count for name, count in lost.items() if count}))

    def _cut_message(self) -> int:
        """Bound the message, and return how many bytes that took away."""
        if self.error_message.isascii() and len(self.error_message) <= MAX_MESSAGE_BYTES:
            return 0
        whole = well_formed(self.error_message)
        self._set("error_message", cut_bytes(whole, MAX_MESSAGE_BYTES))
        return byte_length(whole) - byte_length(self.error_message)

    def _cut_constraints(self) -> int:
        """Drop blanks and repetitions, and return how many are too many: of those the first in sorted order stay, whoever listed them."""
        if not self.failing_constraints:
            return 0
        distinct = tuple(dict.fromkeys(filter(None, self.failing_constraints)))
        self._set("failing_constraints", distinct)
        kept = tuple(sorted(distinct)[:MAX_CONSTRAINTS]) if len(distinct) > MAX_CONSTRAINTS else distinct
        return self._keep("failing_constraints", kept)

    def _keep(self, name: str, kept: tuple[Any, ...]) -> int:
        """Keep a part of what a field holds, and return how many are gone."""
        lost = len(getattr(self, name)) - len(kept)
        if lost:
            self._set(name, kept)
        return lost
