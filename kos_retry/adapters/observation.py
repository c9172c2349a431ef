"""From a raw outcome to an envelope: redact what was captured, ask the extractors, conclude."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from kos_retry.adapters.extraction.extract import Extraction, Material
from kos_retry.engine import observe as engine
from kos_retry.engine.classify import EXIT_NOT_FOUND
from kos_retry.engine.redact import Redactor
from kos_retry.model import Action, Category, Cause, CauseKind, FailureEnvelope, Retryable
from kos_retry.outcome import Captured, Outcome, Proposal
from kos_retry.text.escapes import decode


class Facts(NamedTuple):
    """What is known of an attempt before its output is looked at."""

    attempt: int
    exit_code: int
    signal: str | None = None
    timed_out: bool = False
    limit_seconds: float | None = None
    cancelled: bool = False
    argv: tuple[str, ...] = ()
    workspace: str = ""
    reports: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()
    category: Category | None = None
    cause: Cause | None = None
    duration_seconds: float | None = None
    timestamp: datetime | None = None
    omitted_bytes: int = 0


class OutcomeObserver:
    """Observes the attempts of one run."""

    def __init__(self, redactor: Redactor, extraction: Extraction, workspace: str) -> None:
        self._redactor = redactor
        self._extraction = extraction
        self._workspace = workspace

    def observe(self, proposal: Proposal, outcome: Outcome) -> FailureEnvelope:
        """Return the envelope of an attempt; see the port."""
        facts = Facts(
            attempt=proposal.attempt,
            exit_code=outcome.exit_code,
            signal=outcome.signal,
            timed_out=outcome.timed_out,
            limit_seconds=outcome.limit_seconds,
            cancelled=outcome.cancelled_by is not None,
            cause=_not_found(proposal, self._redactor)
            if outcome.not_started and outcome.exit_code == EXIT_NOT_FOUND
            else None,
            argv=proposal.argv,
            workspace=self._workspace,
            duration_seconds=round(outcome.duration_seconds, 3),
            timestamp=datetime.fromtimestamp(outcome.started_at, UTC),
            omitted_bytes=outcome.stdout.omitted + outcome.stderr.omitted,
        )
        streams = {"stdout": joined(outcome.stdout, self._redactor), "stderr": joined(outcome.stderr, self._redactor)}
        return conclude(facts, streams, self._redactor, self._extraction)


def conclude(facts: Facts, streams: dict[str, str], redactor: Redactor, extraction: Extraction) -> FailureEnvelope:
    """Return the signed envelope of ``facts`` and the redacted ``streams``."""
    argv = tuple(redactor.text(word) for word in facts.argv)
    found = extraction.run(
        Material(
            facts.attempt, facts.exit_code, facts.signal, facts.timed_out, argv, facts.workspace, streams, facts.reports
        )
    )
    return engine.observe(
        engine.Evidence(
            attempt=facts.attempt,
            exit_code=facts.exit_code,
            outputs=tuple(text for _, text in sorted(streams.items(), key=lambda stream: stream[0] == "stderr")),
            signal=facts.signal,
            timed_out=facts.timed_out,
            limit_seconds=facts.limit_seconds,
            cancelled=facts.cancelled,
            argv=argv,
            constraints=tuple(redactor.text(c) for c in facts.constraints),
            actions=_redacted(facts.actions, redactor) or found.actions,
            findings=found.findings,
            artifacts=found.artifacts,
            failed_extractors=found.failures,
            category=facts.category,
            cause=facts.cause,
            usage=found.usage,
            duration_seconds=facts.duration_seconds,
            timestamp=facts.timestamp,
            omitted_bytes=facts.omitted_bytes,
        )
    )


def _not_found(proposal: Proposal, redactor: Redactor) -> Cause:
    """Return the cause of a command that was not found: what was looked for, and where."""
    name = redactor.text(proposal.argv[0])
    where = (
        ""
        if "/" in name
        else f"; it was looked for in {redactor.text(proposal.environment.get('PATH') or 'an empty PATH')}"
    )
    fix = f"install {name}, or correct its name or PATH{where}"
    return Cause(
        kind=CauseKind.COMMAND_NOT_FOUND,
        retryable=Retryable.NO,
        rule="not-started",
        evidence=f"{name}: command not found",
        fix=fix,
    )


def joined(captured: Captured, redactor: Redactor) -> str:
    """Return what was kept of a stream as redacted text, with a line that says what was left out."""
    if not captured.omitted:
        return redactor.text(decode(captured.head))
    head, tail = redactor.cut_edges(redactor.text(decode(captured.head)), redactor.text(decode(captured.tail)))
    return f"{head.rstrip()}\n[{captured.omitted} bytes omitted]\n{tail}"


def _redacted(actions: Sequence[Action], redactor: Redactor) -> tuple[Action, ...]:
    return tuple(Action.model_validate(redactor.value(a.model_dump(mode="json"))) for a in actions)
