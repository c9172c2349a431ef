"""Making an envelope of an outcome: what failed, in which words, for what cause."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from kos_retry.engine import classify, sign
from kos_retry.engine.evidence import EvidenceLine, choose_lines
from kos_retry.limits import MAX_CONSTRAINT_BYTES, MAX_EVIDENCE_LINES
from kos_retry.model import (
    Action,
    Category,
    Cause,
    CauseKind,
    DiagnosticArtifact,
    FailureEnvelope,
    Finding,
    Omitted,
    ReportVerdict,
    Transcript,
    Usage,
)
from kos_retry.model.finding import TRUST, Confidence, FindingKind
from kos_retry.text.bounds import cut_bytes
from kos_retry.text.durations import format_duration
from kos_retry.text.escapes import plain_line

# What the command's own reports say whatever its exit code.
_TELL_OF_FAILURE = (ReportVerdict.MASKED_FAILURE, ReportVerdict.UNFINISHED)
_NAMED = (FindingKind.TEST, FindingKind.POLICY, FindingKind.DIAGNOSTIC)
# A type as any language qualifies it: by dots, double colons or backslashes, its own name capitalised.
_TYPE_NAME = re.compile(r"(?:[\w$]{1,200}(?:\.|::|\\)){0,16}([A-Z][\w$]{0,200})\Z")
# The types of assertions say that a test failed; those that are named after nothing say even less.
_VERDICT = re.compile(r"(?i)assert|(?<!un)expect|fail|compar")
_BARE = re.compile(r"(?i)\b(?:base)?(?:error|exception)(?:group)?\Z")
# What was expected and what came instead, each in a line below what a test says.
_COMPARED = re.compile(r"(?i)(?:expected|actual|received|got|left|right)\b[^:]{0,40}:")
_LINES_BELOW = 3


class Evidence(NamedTuple):
    """What is known of one attempt, redacted, before anything is concluded from it.

    ``outputs`` are the texts that evidence is chosen from, the most telling last; ``argv`` the command; ``limit_seconds`` the time
    limit that ended it, if one did, ``at_deadline`` whether that was the whole run's; ``constraints`` those that the caller
    names; ``broken`` the checks of success that did not hold, each with what it said; ``output_matches`` the conditions on the
    output that are met; ``transcript`` is what an agent's transcript says, ``failing_tests`` are those of the last test run in it.
    """

    attempt: int
    exit_code: int
    outputs: tuple[str, ...] = ()
    signal: str | None = None
    timed_out: bool = False
    limit_seconds: float | None = None
    at_deadline: bool = False
    cancelled: bool = False
    argv: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    actions: tuple[Action, ...] = ()
    findings: tuple[Finding, ...] = ()
    artifacts: tuple[DiagnosticArtifact, ...] = ()
    failed_extractors: dict[str, str] = {}
    category: Category | None = None
    cause: Cause | None = None
    usage: Usage | None = None
    transcript: Transcript | None = None
    failing_tests: tuple[str, ...] = ()
    duration_seconds: float | None = None
    timestamp: datetime | None = None
    omitted_bytes: int = 0
    broken: tuple[tuple[str, str], ...] = ()
    output_matches: tuple[str, ...] = ()
    reports: ReportVerdict | None = None


def telling_lines(evidence: Evidence) -> tuple[EvidenceLine, ...]:
    """Return the lines of the outputs that say what failed; findings have no part in it."""
    return () if evidence.exit_code == 0 and not evidence.constraints else choose_lines(*evidence.outputs)


def observe(evidence: Evidence, lines: tuple[EvidenceLine, ...] | None = None) -> FailureEnvelope:
    """Return the signed envelope of one attempt; ``lines`` are its telling lines where the caller has them already."""
    trusted = trusted_findings(evidence.findings)
    if lines is None:
        lines = telling_lines(evidence)
    names = tuple(name for name, _ in evidence.broken)
    category = evidence.category or classify.category(
        exit_code=evidence.exit_code,
        signal=evidence.signal,
        timed_out=evidence.timed_out,
        cancelled=evidence.cancelled,
        constraints=evidence.constraints,
        findings=trusted,
        checks_failed=bool(names),
        told_failed=None if evidence.transcript is None else bool(evidence.transcript.failed),
    )
    if category is Category.SUCCESS and evidence.reports in _TELL_OF_FAILURE:
        category = Category.CONSTRAINT_VIOLATION
    if category is Category.SUCCESS:
        trusted, lines = (), ()
    return sign.signed(
        FailureEnvelope(
            attempt=evidence.attempt,
            exit_code=evidence.exit_code,
            signal=evidence.signal,
            error_message=_message(evidence, category, trusted, lines),
            category=category,
            cause=_cause(evidence, category, trusted, lines),
            failing_constraints=names + evidence.constraints + _failing(evidence, category, trusted),
            executed_actions=evidence.actions,
            diagnostic_artifacts=evidence.artifacts,
            extractors=evidence.failed_extractors,
            usage=evidence.usage,
            transcript=evidence.transcript,
            duration_seconds=evidence.duration_seconds,
            timestamp=evidence.timestamp,
            output_matches=evidence.output_matches,
            reports=evidence.reports,
            omitted=Omitted(output_bytes=evidence.omitted_bytes, actions=_dropped_actions(evidence)),
        )
    )


def trusted_findings(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return the findings that rest on more than a guess, in a stable order."""
    sure = [f for f in findings if f.confidence is not Confidence.GUESS]
    return tuple(sorted(sure, key=lambda f: (TRUST[f.confidence], f.test_id or "", f.error_type or "", f.message)))


def constraint_names(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return the names of what had to hold and did not, sorted, without repetition.

    Tests, checks and diagnostics have names of their own. What a test died of is named beside it, unless it is the
    test's own verdict. A crash is named by its code or type where nothing else is, and by all that it says where its
    type tells nothing.
    """
    names = {named(f) for f in findings}
    thrown = {_thrown(f) for f in findings if f.kind is FindingKind.TEST}
    # Why an agent gave up is a cause; nothing that had to hold.
    crashed = {_crash(f) for f in findings if f.kind not in (*_NAMED, FindingKind.AGENT)}
    return tuple(sorted((names | thrown) - {""} or crashed - {""}))


def named(finding: Finding) -> str:
    """Return the name of a test, a check or a diagnostic, empty for anything else."""
    return finding.test_id or finding.code or _thrown(finding) if finding.kind in _NAMED else ""


def _thrown(finding: Finding) -> str:
    """Return the type of what was thrown where it is a type's name and tells more than that the test failed."""
    match = _TYPE_NAME.match(finding.error_type or "")
    return match[0] if match and not _VERDICT.search(match[1]) and not _BARE.search(match[1]) else ""


def _crash(finding: Finding) -> str:
    """Return the code or the type of a crash; of a type that is named after nothing, with what it says."""
    bare = finding.code is None and _BARE.search(finding.error_type or "")
    return describe(finding) if bare else finding.code or finding.error_type or ""


def _failing(evidence: Evidence, category: Category, findings: tuple[Finding, ...]) -> tuple[str, ...]:
    if category is Category.SUCCESS:
        return ()
    return tuple(dict.fromkeys(evidence.failing_tests + constraint_names(findings)))


def _dropped_actions(evidence: Evidence) -> int:
    """Return how many actions of a transcript are not even in what its reader handed over."""
    if evidence.transcript is None:
        return 0
    return max(0, evidence.transcript.actions - len(evidence.actions))


def _message(
    evidence: Evidence, category: Category, findings: tuple[Finding, ...], lines: tuple[EvidenceLine, ...]
) -> str:
    if category is Category.SUCCESS:
        return ""
    if category is Category.TIMEOUT:
        if evidence.at_deadline and evidence.limit_seconds is not None:
            return f"ended at the deadline of {format_duration(evidence.limit_seconds)}"
        limit = f" after {format_duration(evidence.limit_seconds)}" if evidence.limit_seconds is not None else ""
        return f"timed out{limit}"
    if evidence.broken:
        return "\n".join(f"{name}: {said}" for name, said in evidence.broken)
    telling = [f for f in findings if not f.names_only]
    told = list(dict.fromkeys(text for f in telling if (text := describe(f))))[:MAX_EVIDENCE_LINES]
    if told:
        return "\n".join(told)
    if not lines and evidence.transcript is not None:
        return "the transcript does not say why it failed"
    return "\n".join(plain_line(line.text).strip() for line in lines)


def describe(finding: Finding) -> str:
    """Return what a finding says in one line, with its type in front, and its file where nothing else says which."""
    first = _headline(finding.message)
    kind = finding.error_type or finding.code or ""
    said = first if not kind or first.startswith(kind) else f"{kind}: {first}".rstrip(": ")
    if finding.kind is not FindingKind.DIAGNOSTIC or finding.location is None:
        return said
    file = finding.location.path.replace("\\", "/").rpartition("/")[2]
    return said if file in said else f"{file}: {said}"


def _headline(message: str) -> str:
    """Return the first line of a message, and what it leaves open: what was expected and what came instead.

    Some say so below a line that ends with a colon, others in lines of their own.
    """
    lines = [" ".join(line.split()) for line in message.splitlines() if line.strip()]
    if not lines:
        return ""
    below = lines[1 : 1 + _LINES_BELOW]
    if not lines[0].endswith(":"):
        below = [line for line in below if _COMPARED.match(line)]
    return cut_bytes(" ".join([lines[0], *below]), MAX_CONSTRAINT_BYTES)


def _cause(
    evidence: Evidence, category: Category, findings: tuple[Finding, ...], lines: tuple[EvidenceLine, ...]
) -> Cause | None:
    if evidence.cause is not None or category in (Category.SUCCESS, Category.CONTEXT_CANCELLED, Category.TIMEOUT):
        return evidence.cause
    found = classify.cause(
        exit_code=evidence.exit_code,
        signal=evidence.signal,
        command=evidence.argv[0].rpartition("/")[2] if evidence.argv else "",
        lines=[line.text for line in lines],
        findings=findings,
    )
    if found is None and evidence.signal == "SIGKILL":
        return Cause(
            kind=CauseKind.RESOURCE,
            rule="signal-kill",
            evidence="ended by SIGKILL, which nobody here sent",
            fix="look for the out-of-memory killer in the system's log",
        )
    return found


def completed(envelope: FailureEnvelope, findings: Sequence[Finding] = ()) -> FailureEnvelope:
    """Return an envelope that a caller wrote by hand with what is missing computed.

    The category comes from the exit code and the constraints, the cause from the message, or from what the
    text extractors found in it.
    """
    category = envelope.category
    if category is Category.UNKNOWN:
        category = classify.category(
            exit_code=envelope.exit_code,
            signal=envelope.signal,
            timed_out=False,
            cancelled=False,
            constraints=envelope.failing_constraints,
            findings=(),
        )
        if category is Category.SUCCESS and envelope.error_message:
            category = Category.EXECUTION_FAILURE
        if classify.tells_of_cancelling(envelope):
            category = Category.CONTEXT_CANCELLED
    found = envelope.cause
    if category is Category.SUCCESS and envelope.silent and envelope.category is not Category.SUCCESS:
        # An agent that did not do its work.
        category = Category.EXECUTION_FAILURE
        found = Cause(
            kind=CauseKind.NO_OUTPUT, rule="no-action-no-word", evidence="neither an action nor a word, and exit code 0"
        )
    if (
        found is None
        and category in (Category.EXECUTION_FAILURE, Category.UNKNOWN)
        and not envelope.failing_constraints
    ):
        found = classify.cause(
            exit_code=envelope.exit_code,
            signal=envelope.signal,
            command="",
            lines=envelope.error_message.splitlines(),
            findings=trusted_findings(findings),
        )
    return envelope.replace(category=category, cause=found)
