"""Validating what extractors answered, and merging it in an order that does not depend on who was first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from kos_retry import limits
from kos_retry.adapters.extraction.manifest import Manifest
from kos_retry.adapters.extraction.material import Material, relative
from kos_retry.engine.redact import Redactor
from kos_retry.errors import ExtractorError, InputError
from kos_retry.model import Action, DiagnosticArtifact, ExtractorAnswer, Finding, Usage
from kos_retry.model.finding import TRUST, Confidence, EvidenceSpan
from kos_retry.text.bounds import cut_bytes
from kos_retry.text.escapes import decode, plain_text


class Extracted(NamedTuple):
    """What all extractors together found; ``failures`` names those that failed, with the reason."""

    findings: tuple[Finding, ...] = ()
    artifacts: tuple[DiagnosticArtifact, ...] = ()
    failures: dict[str, str] = {}
    actions: tuple[Action, ...] = ()
    usage: Usage | None = None
    totals: dict[str, int] = {}
    reported: bool = False


class Sources:
    """What evidence may be a span of: the streams as bytes, and the names of the report files."""

    def __init__(self, material: Material, streams: Mapping[str, str | bytes] | None = None) -> None:
        told = material.streams if streams is None else streams
        self.streams = {n: t.encode("utf-8", "replace") if isinstance(t, str) else t for n, t in told.items()}
        self._reports = {f"report:{relative(path, material.workspace)}" for path in material.reports}

    def hold(self, span: EvidenceSpan) -> bool:
        """Return whether a span lies in its source; the size of a report is not known here."""
        inside = span.source in self._reports or span.end <= len(self.streams.get(span.source, b""))
        return inside and span.start <= span.end

    def excerpt(self, spans: Sequence[EvidenceSpan]) -> str:
        """Cut the text of the first span that lies in a stream; reports are not quoted, their text was never redacted."""
        for span in spans:
            if span.source in self.streams and span.start < span.end:
                raw = self.streams[span.source][span.start : span.end][: limits.MAX_EVIDENCE_EXCERPT_BYTES]
                return cut_bytes(plain_text(decode(raw)), limits.MAX_EVIDENCE_EXCERPT_BYTES)
        return ""


def checked(answer: Any, sources: Sources, redactor: Redactor) -> ExtractorAnswer:
    """Return an answer as a wire type, without secrets; raises ExtractorError that names the field that is wrong."""
    try:
        valid = ExtractorAnswer.from_json(redactor.value(answer))
    except InputError as error:
        raise ExtractorError(f"the answer is not valid: {error}") from error
    except RecursionError as error:
        raise ExtractorError("the answer is nested too deeply") from error
    for number, finding in enumerate(valid.findings):
        for span in finding.evidence:
            if not sources.hold(span):
                raise ExtractorError(
                    f"the answer is not valid: findings[{number}].evidence: "
                    f"bytes {span.start} to {span.end} of '{span.source}' are not there"
                )
    return valid


class Answers:
    """What was answered about one outcome so far; one whose answer is not valid has failed."""

    def __init__(self, material: Material, redactor: Redactor, failures: Mapping[str, str]) -> None:
        self._sources = Sources(material)
        self._redactor = redactor
        self._valid: dict[str, ExtractorAnswer] = {}
        self._failures = {name: redactor.text(why) for name, why in failures.items()}

    def add(self, raw: Mapping[str, Any], failures: Mapping[str, str]) -> None:
        """Take in what more extractors answered, and why others did not."""
        self._failures |= {name: self._redactor.text(why) for name, why in failures.items()}
        for name, answer in raw.items():
            try:
                self._valid[name] = valid = checked(answer, self._sources, self._redactor)
                if valid.incomplete:
                    self._failures[name] = valid.incomplete
            except ExtractorError as error:
                self._failures[name] = self._redactor.text(str(error))

    @property
    def are_sure(self) -> bool:
        """Return whether any extractor found more than a guess."""
        return any(f.confidence is not Confidence.GUESS for answer in self._valid.values() for f in answer.findings)

    def merged(self, manifests: Sequence[Manifest]) -> Extracted:
        """Return what the extractors found together, in the sorted order of their ids."""
        answers = {name: self._valid[name] for name in sorted(self._valid)}
        return Extracted(
            findings=_distinct(answers, {manifest.id: manifest for manifest in manifests}),
            artifacts=tuple(artifact(n, a, self._sources, self._redactor) for n, a in answers.items() if a.findings),
            failures=dict(sorted(self._failures.items())),
            actions=next((a.actions for a in answers.values() if a.actions), ()),
            usage=next((a.usage for a in answers.values() if a.usage), None),
            **_reported(answers, {manifest.id for manifest in manifests if manifest.match.reports}),
        )


def _reported(answers: Mapping[str, ExtractorAnswer], readers: Collection[str]) -> dict[str, Any]:
    """Return the sums of what report files count, and whether anything in them failed."""
    told = [answer for name, answer in answers.items() if name in readers and answer.totals]
    sums = sum((Counter(answer.totals) for answer in told), Counter())
    return {"totals": dict(sums), "reported": any(answer.findings for answer in told)}


def _distinct(answers: Mapping[str, ExtractorAnswer], manifests: Mapping[str, Manifest]) -> tuple[Finding, ...]:
    """Return all findings, of two that are the same one the more trusted, with the cause that either knows."""
    ranked = [(name, f) for name in sorted(answers) for f in answers[name].findings]
    ranked = _without_repeats(ranked, {m.id for m in manifests.values() if m.match.options})
    ranked.sort(key=lambda entry: (TRUST[entry[1].confidence], manifests[entry[0]].priority))
    kept: dict[tuple[Any, ...], Finding] = {}
    for name, found in ranked:
        finding = found.replace(names_only=True) if manifests[name].fallback else found
        first = kept.setdefault(_identity(finding), finding)
        if first.cause is None and finding.cause is not None:
            # A report says what failed, seldom why; what was printed may say that.
            kept[_identity(finding)] = first.replace(cause=finding.cause)
    return tuple(kept.values())


def _without_repeats(ranked: list[tuple[str, Finding]], yielding: set[str]) -> list[tuple[str, Finding]]:
    """Return the findings without those of ``yielding`` extractors that rest on what another one is sure of.

    What the user's own settings make of a line is the same in other words where an extractor knows the tool.
    """
    read = [
        s for name, f in ranked if name not in yielding and f.confidence is not Confidence.GUESS for s in f.evidence
    ]
    return [(name, f) for name, f in ranked if name not in yielding or not _overlap(f.evidence, read)]


def _overlap(some: Iterable[EvidenceSpan], others: Sequence[EvidenceSpan]) -> bool:
    return any(a.source == b.source and a.start < b.end and b.start < a.end for a in some for b in others)


def _identity(finding: Finding) -> tuple[Any, ...]:
    """Return what makes two findings the same one: the test, or the place and the code."""
    if finding.test_id:
        return ("test", finding.test_id)
    where = finding.location
    if where and where.line:
        return ("place", where.path, where.line, finding.code or finding.error_type)
    return ("text", finding.kind, finding.error_type, finding.code, finding.message)


def artifact(name: str, answer: ExtractorAnswer, sources: Sources | None, redactor: Redactor) -> DiagnosticArtifact:
    """Return one extractor's findings within the bound of an artifact, with the text of their evidence where ``sources`` may be quoted."""
    findings: list[dict[str, Any]] = []
    payload: dict[str, Any] = {"findings": findings, "totals": answer.totals, "omitted": 0}
    size = 0
    for finding in answer.findings:
        entry = {name: value for name, value in finding.as_json().items() if value is not None and name != "names_only"}
        entry["excerpt"] = redactor.text(sources.excerpt(finding.evidence)) if sources else ""
        size += len(orjson.dumps(entry))
        if size > limits.MAX_ARTIFACT_BYTES:
            payload["omitted"] = len(answer.findings) - len(findings)
            break
        findings.append(entry)
    return DiagnosticArtifact(
        name=name, size_bytes=len(orjson.dumps(payload)), mime_type="application/json", payload=payload
    )
