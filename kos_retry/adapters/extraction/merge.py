"""Validating what extractors answered, and merging it in an order that does not depend on who was first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from pydantic import ValidationError

from kos_retry import limits
from kos_retry.adapters.extraction.manifest import Manifest
from kos_retry.adapters.extraction.material import Material, relative
from kos_retry.engine.redact import Redactor
from kos_retry.errors import ExtractorError
from kos_retry.model import Action, DiagnosticArtifact, ExtractorAnswer, Finding, Usage
from kos_retry.model.finding import TRUST, EvidenceSpan
from kos_retry.text.bounds import cut_bytes
from kos_retry.text.escapes import decode, plain_text


class Extracted(NamedTuple):
    """What all extractors together found; ``failures`` names those that failed, with the reason."""

    findings: tuple[Finding, ...] = ()
    artifacts: tuple[DiagnosticArtifact, ...] = ()
    failures: dict[str, str] = {}
    actions: tuple[Action, ...] = ()
    usage: Usage | None = None


class Sources:
    """What evidence may be a span of: the streams as bytes, and the names of the report files."""

    def __init__(self, material: Material) -> None:
        self.streams = {name: text.encode("utf-8", "replace") for name, text in material.streams.items()}
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
        valid = ExtractorAnswer.model_validate(redactor.value(answer))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise ExtractorError(f"the answer is not valid: {place + ': ' if place else ''}{first['msg']}") from error
    except RecursionError as error:
        raise ExtractorError("the answer is nested too deeply") from error
    for number, finding in enumerate(valid.findings):
        for span in finding.evidence:
            if not sources.hold(span):
                raise ExtractorError(
                    f"the answer is not valid: findings.{number}.evidence: "
                    f"bytes {span.start} to {span.end} of '{span.source}' are not there"
                )
    return valid


def merged(
    raw: Mapping[str, Any],
    failures: Mapping[str, str],
    manifests: Sequence[Manifest],
    material: Material,
    redactor: Redactor,
) -> Extracted:
    """Return what the extractors found together; one whose answer is not valid has failed."""
    sources = Sources(material)
    failed = {name: redactor.text(why) for name, why in failures.items()}
    answers: dict[str, ExtractorAnswer] = {}
    for name in sorted(raw):
        try:
            answers[name] = checked(raw[name], sources, redactor)
        except ExtractorError as error:
            failed[name] = redactor.text(str(error))
    return Extracted(
        findings=_distinct(answers, {m.id: m.priority for m in manifests}),
        artifacts=tuple(_artifact(name, a, sources, redactor) for name, a in answers.items() if a.findings),
        failures=dict(sorted(failed.items())),
        actions=next((a.actions for a in answers.values() if a.actions), ()),
        usage=next((a.usage for a in answers.values() if a.usage), None),
    )


def _distinct(answers: Mapping[str, ExtractorAnswer], priority: Mapping[str, int]) -> tuple[Finding, ...]:
    """Return all findings, of two that are the same one the more trusted."""
    ranked = [(name, finding) for name in sorted(answers) for finding in answers[name].findings]
    ranked.sort(key=lambda entry: (TRUST[entry[1].confidence], priority[entry[0]]))
    kept: dict[tuple[Any, ...], Finding] = {}
    for _, finding in ranked:
        kept.setdefault(_identity(finding), finding)
    return tuple(kept.values())


def _identity(finding: Finding) -> tuple[Any, ...]:
    """Return what makes two findings the same one: the test, or the place and the code."""
    if finding.test_id:
        return ("test", finding.test_id)
    where = finding.location
    if where and where.line:
        return ("place", where.path, where.line, finding.code or finding.error_type)
    return ("text", finding.kind, finding.error_type, finding.code, finding.message)


def _artifact(name: str, answer: ExtractorAnswer, sources: Sources, redactor: Redactor) -> DiagnosticArtifact:
    """Return one extractor's findings with the text of their evidence, within the bound of an artifact."""
    findings: list[dict[str, Any]] = []
    payload: dict[str, Any] = {"findings": findings, "totals": answer.totals, "omitted": 0}
    size = 0
    for finding in answer.findings:
        entry = finding.model_dump(mode="json", exclude_none=True)
        entry["excerpt"] = redactor.text(sources.excerpt(finding.evidence))
        size += len(orjson.dumps(entry))
        if size > limits.MAX_ARTIFACT_BYTES:
            payload["omitted"] = len(answer.findings) - len(findings)
            break
        findings.append(entry)
    return DiagnosticArtifact(
        name=name, size_bytes=len(orjson.dumps(payload)), mime_type="application/json", payload=payload
    )
