"""From a raw outcome to an envelope: redact what was captured, ask the extractors, conclude."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kos_retry.adapters.actions import ActionsFile
from kos_retry.adapters.expressions import search
from kos_retry.adapters.extraction.extract import Extraction
from kos_retry.adapters.extraction.material import Material
from kos_retry.engine.redact import Redactor
from kos_retry.outcome import Broken, Captured, Outcome, Proposal, Reports
from kos_retry.text.bounds import well_formed
from kos_retry.text.escapes import decode, plain_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kos_retry.adapters.extraction.extract import Inquiry
    from kos_retry.adapters.extraction.transcripts import Told, TranscriptText
    from kos_retry.engine.observe import Evidence
    from kos_retry.model import Action, Cause, FailureEnvelope
    from kos_retry.settings import TokenRule


class OutcomeObserver:
    """Observes the attempts of one run."""

    def __init__(
        self,
        redactor: Redactor,
        extraction: Extraction,
        workspace: str,
        conditions: Sequence[str],
        rules: Sequence[TokenRule],
        warn: Callable[[str], None],
        *,
        transcript: Callable[[], TranscriptText] | None = None,
        actions: ActionsFile | None = None,
    ) -> None:
        self._rules = rules
        self._transcript = transcript
        self._actions = actions
        # What the transcript of the latest attempt told: it is asked for twice.
        self._told: tuple[int, Told | None] = (0, None)
        self._conditions = tuple(conditions)
        self._warn = warn
        self._redactor = redactor
        self._extraction = extraction
        self._workspace = workspace

    def told_failed(self, proposal: Proposal, outcome: Outcome) -> bool:
        """Return whether the transcript of an attempt that exited with 0 tells of a failure."""
        told = self._told_by(proposal, outcome)
        if told is not None and told.failure is not None:
            self._warn(f"{told.failure[0]}: {told.failure[1]}; the exit code alone counts")
        return told is not None and bool(told.failed)

    def passed(self, proposal: Proposal, outcome: Outcome) -> FailureEnvelope:
        """Return what an attempt that passed has cost, as far as its transcript says; see the port."""
        from kos_retry.model import Category, FailureEnvelope

        told = self._told_by(proposal, outcome)
        return FailureEnvelope(
            attempt=proposal.attempt,
            category=Category.SUCCESS,
            usage=told.usage if told else None,
            transcript=told.transcript if told else None,
            duration_seconds=round(outcome.duration_seconds, 3),
        )

    def observe(self, proposal: Proposal, outcome: Outcome) -> FailureEnvelope:
        """Return the envelope of an attempt; see the port."""
        streams = {"stdout": joined(outcome.stdout, self._redactor), "stderr": joined(outcome.stderr, self._redactor)}
        told = self._told_by(proposal, outcome)
        if told is not None and told.stream:
            streams[told.stream] = redacted(told.prose, self._redactor)
        facts = (proposal.attempt, outcome.exit_code, outcome.signal, outcome.timed_out)
        argv = _shown(proposal.argv, self._redactor)
        reports = outcome.reports.fresh
        inquiry = self._extraction.begin(Material(*facts, argv, well_formed(self._workspace), streams, reports))
        # The extractors work while the rest is imported.
        from kos_retry.adapters.own_rules import OwnRules

        known = self._known(proposal, outcome, streams)
        envelope = conclude(known, streams, self._redactor, inquiry, told, outcome.reports)
        return OwnRules(self._rules, self._warn).signed([envelope])[0]

    def reported(self, proposal: Proposal, outcome: Outcome) -> list[Broken]:
        """Return what the fresh reports of an attempt say that failed, by name."""
        from kos_retry.engine.observe import describe, named, trusted_findings

        facts = (proposal.attempt, outcome.exit_code, outcome.signal, outcome.timed_out)
        argv = _shown(proposal.argv, self._redactor)
        material = Material(*facts, argv, well_formed(self._workspace), {}, outcome.reports.fresh)
        found = trusted_findings(self._extraction.run(material).findings)
        return [Broken(name, describe(f)) for f in found if (name := named(f))]

    def _known(self, proposal: Proposal, outcome: Outcome, streams: dict[str, str]) -> Evidence:
        """Return what is known of an attempt before the extractors have answered."""
        from datetime import UTC, datetime

        from kos_retry.engine.classify import EXIT_NOT_FOUND
        from kos_retry.engine.observe import Evidence

        missing = outcome.not_started is not None and outcome.exit_code == EXIT_NOT_FOUND
        appended = self._actions.appended() if self._actions is not None else None
        return Evidence(
            attempt=proposal.attempt,
            exit_code=outcome.exit_code,
            signal=outcome.signal,
            timed_out=outcome.timed_out,
            limit_seconds=outcome.limit_seconds,
            at_deadline=outcome.at_deadline,
            cancelled=outcome.cancelled_by is not None,
            cause=_not_found(proposal, self._redactor) if missing else None,
            broken=tuple((b.name, self._redactor.text(b.detail)) for b in outcome.broken),
            output_matches=_output_matches(self._conditions, streams, self._warn),
            argv=proposal.argv,
            duration_seconds=round(outcome.duration_seconds, 3),
            timestamp=datetime.fromtimestamp(outcome.started_at, UTC),
            omitted_bytes=outcome.stdout.omitted + outcome.stderr.omitted,
            actions=appended.actions if appended else (),
            failed_extractors=appended.faults if appended else {},
        )

    def _told_by(self, proposal: Proposal, outcome: Outcome) -> Told | None:
        if self._transcript is None or outcome.not_started is not None:
            return None
        if self._told[0] != proposal.attempt:
            attempt = (proposal.attempt, outcome.exit_code, outcome.signal, outcome.timed_out)
            streams = {"stderr": joined(outcome.stderr, self._redactor)}
            argv = tuple(well_formed(word) for word in proposal.argv)
            material = Material(*attempt, argv, well_formed(self._workspace), streams)
            from kos_retry.adapters.extraction.transcripts import read

            told = read(self._extraction, material, self._transcript(), self._redactor)
            self._told = (proposal.attempt, told)
        return self._told[1]


def inquire(
    extraction: Extraction,
    known: Evidence,
    streams: dict[str, str],
    redactor: Redactor,
    *,
    workspace: str = "",
    reports: tuple[str, ...] = (),
) -> Inquiry:
    """Ask the extractors about redacted output and about report files that the attempt wrote."""
    facts = (known.attempt, known.exit_code, known.signal, known.timed_out)
    return extraction.begin(Material(*facts, _shown(known.argv, redactor), well_formed(workspace), streams, reports))


def conclude(
    known: Evidence,
    streams: dict[str, str],
    redactor: Redactor,
    inquiry: Inquiry,
    told: Told | None = None,
    reports: Reports | None = None,
) -> FailureEnvelope:
    """Return the signed envelope of an attempt.

    ``known`` is what is known before the output is looked at, ``streams`` the redacted output, ``inquiry`` what the extractors
    were asked about it, ``told`` what one of the streams told as a transcript: of that stream only what else stands in it is in
    ``streams``; ``reports`` are the report files that the extractors were handed, and those that were stale.
    """
    from kos_retry.engine.observe import observe, telling_lines
    from kos_retry.engine.reports import verdict

    known = known._replace(
        outputs=tuple(text for _, text in sorted(streams.items(), key=lambda stream: stream[0] == "stderr")),
        argv=_shown(known.argv, redactor),
        constraints=tuple(redactor.text(c) for c in known.constraints),
    )
    # The extractors are at work meanwhile.
    lines = telling_lines(known)
    found = inquiry.extracted()
    reports = reports or Reports()
    agent = told._asdict() if told is not None else {}
    failure = agent.get("failure")
    return observe(
        known._replace(
            actions=_redacted(known.actions, redactor) or agent.get("actions", ()) or found.actions,
            findings=(*agent.get("findings", ()), *found.findings),
            artifacts=(*agent.get("artifacts", ()), *found.artifacts),
            failed_extractors=known.failed_extractors | found.failures | dict([failure] if failure else []),
            usage=agent.get("usage") or found.usage,
            transcript=agent.get("transcript"),
            failing_tests=agent.get("failing_tests", ()),
            reports=verdict(
                known.exit_code,
                fresh=bool(reports.fresh),
                stale=bool(reports.stale),
                totals=found.totals,
                failures=found.reported,
            ),
        ),
        lines,
    )


def _shown(argv: Sequence[str], redactor: Redactor) -> tuple[str, ...]:
    return tuple(redactor.text(well_formed(word)) for word in argv)


def _not_found(proposal: Proposal, redactor: Redactor) -> Cause:
    """Return the cause of a command that was not found: what was looked for, and where."""
    from kos_retry.model import Cause, CauseKind, Retryable

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
    from kos_retry.model import Action

    return tuple(Action.from_json(redactor.value(a.as_json())) for a in actions)
