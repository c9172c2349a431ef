"""From a raw outcome to an envelope: redact what was captured, ask the extractors, conclude."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from kos_retry.adapters.expressions import search
from kos_retry.adapters.extraction.extract import Extraction, Material
from kos_retry.engine import observe as engine
from kos_retry.engine.classify import EXIT_NOT_FOUND
from kos_retry.engine.redact import Redactor
from kos_retry.model import Action, Category, Cause, CauseKind, FailureEnvelope, Retryable
from kos_retry.outcome import Captured, Outcome, Proposal
from kos_retry.text.bounds import well_formed
from kos_retry.text.escapes import decode, plain_text


class Facts(NamedTuple):
    """What is known of an attempt before its output is looked at.

    ``conditions`` are those of `--retry-on` and `--stop-on`; the ones on the output are tried here.
    """

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
    at_deadline: bool = False
    broken: tuple[tuple[str, str], ...] = ()
    conditions: tuple[str, ...] = ()


class OutcomeObserver:
    """Observes the attempts of one run."""

    def __init__(
        self,
        redactor: Redactor,
        extraction: Extraction,
        workspace: str,
        conditions: Sequence[str],
        warn: Callable[[str], None],
    ) -> None:
        self._conditions = tuple(conditions)
        self._warn = warn
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
            at_deadline=outcome.at_deadline,
            broken=tuple((b.name, self._redactor.text(b.detail)) for b in outcome.broken),
            conditions=self._conditions,
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
        return conclude(facts, streams, self._redactor, self._extraction, self._warn)


def conclude(
    facts: Facts,
    streams: dict[str, str],
    redactor: Redactor,
    extraction: Extraction,
    warn: Callable[[str], None] | None = None,
) -> FailureEnvelope:
    """Return the signed envelope of ``facts`` and the redacted ``streams``."""
    argv = tuple(redactor.text(well_formed(word)) for word in facts.argv)
    found = extraction.run(
        Material(
            facts.attempt,
            facts.exit_code,
            facts.signal,
            facts.timed_out,
            argv,
            well_formed(facts.workspace),
            streams,
            facts.reports,
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
            at_deadline=facts.at_deadline,
            broken=facts.broken,
            output_matches=_output_matches(facts.conditions, streams, warn or _ignored),
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
    name = redactor.text(well_formed(proposal.argv[0]))
    where = (
        ""
        if "/" in name
        else f"; it was looked for in {redactor.text(well_formed(proposal.environment.get('PATH') or 'an empty PATH'))}"
    )
    fix = f"install {name}, or correct its name or PATH{where}"
    return Cause(
        kind=CauseKind.COMMAND_NOT_FOUND,
        retryable=Retryable.NO,
        rule="not-started",
        evidence=f"{name}: command not found",
        fix=fix,
    )


def _output_matches(conditions: Sequence[str], streams: dict[str, str], warn: Callable[[str], None]) -> tuple[str, ...]:
    """Return the conditions ``output:REGEX`` that hold, as far as that could be found out."""
    wanted = {c.partition(":")[2]: c for c in conditions if c.startswith("output:")}
    if not wanted:
        return ()
    found = search(list(wanted), list(streams.values()), warn)
    return tuple(wanted[expression] for expression, hit in found.items() if hit)


def _ignored(_text: str) -> None:
    """Say nothing: the caller has nobody to tell."""


def joined(captured: Captured, redactor: Redactor) -> str:
    """Return what was kept of a stream as redacted text, with a line that says what was left out."""
    parts = [redacted(part, redactor) for part in (captured.head, *captured.middle, captured.tail)]
    if not captured.omitted:
        return parts[0]
    # A secret that a cut goes through is still one.
    for i in range(len(parts) - 1):
        parts[i], parts[i + 1] = redactor.cut_edges(parts[i], parts[i + 1])
    return "\n".join([parts[0].rstrip(), f"[{captured.omitted} bytes omitted]", *parts[1:]])


def redacted(raw: bytes, redactor: Redactor) -> str:
    """Return output as plain text without secrets.

    Plain first: a secret that is written with escapes between its characters is a secret all the same.
    """
    return redactor.text(plain_text(decode(raw)))


def _redacted(actions: Sequence[Action], redactor: Redactor) -> tuple[Action, ...]:
    return tuple(Action.model_validate(redactor.value(a.model_dump(mode="json"))) for a in actions)
