"""Protocol 1 of the extractors: what one answers on its standard output."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import Meta

from kos_retry.limits import MAX_CONSTRAINT_BYTES, MAX_FINDINGS, MAX_MESSAGE_BYTES, MAX_NAME_BYTES
from kos_retry.model.action import Action
from kos_retry.model.base import Count, Wire, bounded
from kos_retry.model.cause import Cause
from kos_retry.model.envelope import Usage


class FindingKind(StrEnum):
    """What a finding is about."""

    TEST = "test"
    DIAGNOSTIC = "diagnostic"
    CRASH = "crash"
    INFRASTRUCTURE = "infrastructure"
    TIMEOUT = "timeout"
    POLICY = "policy"
    AGENT = "agent"


class Confidence(StrEnum):
    """How far a finding is to be trusted: read from a structure, from a known text, or guessed."""

    EXACT = "exact"
    LIKELY = "likely"
    GUESS = "guess"


# The more trusted first.
TRUST = {Confidence.EXACT: 0, Confidence.LIKELY: 1, Confidence.GUESS: 2}

Position = Annotated[int, Meta(ge=1, lt=2**31)]


class Location(Wire, frozen=True, kw_only=True):
    """Where in the sources: lines and columns from 1, columns in code points, None where unknown."""

    path: Annotated[str, bounded(MAX_CONSTRAINT_BYTES)]
    line: Position | None = None
    column: Position | None = None


class EvidenceSpan(Wire, frozen=True, kw_only=True):
    """A span of bytes in what was captured; the core cuts the text, so none can be invented."""

    source: Annotated[str, bounded(MAX_NAME_BYTES)]
    start: Count
    end: Count


class Finding(Wire, frozen=True, kw_only=True):
    """One thing that failed, as an extractor read it.

    One that is ``names_only`` names what failed and is not the whole story: the message stays made of the output's lines.
    """

    kind: FindingKind
    status: Annotated[str, bounded(32)] = "failed"
    test_id: Annotated[str, bounded(MAX_CONSTRAINT_BYTES)] | None = None
    error_type: Annotated[str, bounded(MAX_NAME_BYTES)] | None = None
    code: Annotated[str, bounded(MAX_NAME_BYTES)] | None = None
    message: Annotated[str, bounded(MAX_MESSAGE_BYTES)] = ""
    location: Location | None = None
    evidence: tuple[EvidenceSpan, ...] = ()
    confidence: Confidence = Confidence.GUESS
    cause: Cause | None = None
    names_only: bool = False


class ExtractorAnswer(Wire, frozen=True, kw_only=True):
    """One JSON object on an extractor's standard output; no findings is an answer too.

    ``incomplete`` says what the extractor could not look at; it is recorded as a failure of it, and the findings count.
    The reader of a transcript also says whether the attempt failed (None: the transcript does not say), and in which session of
    the agent's own it was.
    """

    protocol: Literal[1]
    findings: tuple[Finding, ...] = ()
    totals: dict[str, Count] | None = None
    actions: tuple[Action, ...] = ()
    usage: Usage | None = None
    incomplete: Annotated[str, bounded(MAX_MESSAGE_BYTES)] | None = None
    failed: bool | None = None
    session: Annotated[str, bounded(MAX_NAME_BYTES)] | None = None

    @classmethod
    def settled(cls, data: Any) -> Any:
        """Return an answer under the names of our fields, a flood of findings cut before it is looked through."""
        findings = data.get("findings") if isinstance(data, dict) else None
        return super().settled({**data, "findings": findings[:MAX_FINDINGS]} if isinstance(findings, list) else data)
