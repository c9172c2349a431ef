"""Asking the extractors that fit an outcome, and merging what they answer."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import orjson
from pydantic import ValidationError

from kos_retry import limits
from kos_retry.adapters.extraction import child
from kos_retry.adapters.extraction.manifest import Manifest, bundled_directories, read_manifest
from kos_retry.engine.redact import Redactor
from kos_retry.errors import ExtractorError, UnknownNameError
from kos_retry.model import Action, DiagnosticArtifact, ExtractorAnswer, Finding, Usage
from kos_retry.model.finding import TRUST, Confidence, EvidenceSpan
from kos_retry.text.bounds import cut_bytes
from kos_retry.text.escapes import decode, plain_text


class Material(NamedTuple):
    """What extractors may look at: facts of the attempt, redacted streams, and paths of fresh report files."""

    attempt: int
    exit_code: int
    signal: str | None
    timed_out: bool
    argv: tuple[str, ...]
    workspace: str
    streams: dict[str, str]
    reports: tuple[str, ...] = ()


class Extracted(NamedTuple):
    """What all extractors together found; ``failures`` names those that failed, with the reason."""

    findings: tuple[Finding, ...] = ()
    artifacts: tuple[DiagnosticArtifact, ...] = ()
    failures: dict[str, str] = {}
    actions: tuple[Action, ...] = ()
    usage: Usage | None = None


class Extraction:
    """Runs extractors; one object serves many outcomes and is closed at the end.

    ``options`` are what the user's settings hold for single extractors, by their ids.
    """

    def __init__(
        self,
        redactor: Redactor,
        manifests: Sequence[Manifest] | None = None,
        host: child.Host | None = None,
        options: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self._redactor = redactor
        self._options = options or {}
        self._manifests = tuple(sorted(manifests if manifests is not None else bundled(), key=lambda m: m.id))
        self._host = host or child.Host()
        self._spool: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the host and remove what was spooled."""
        self._host.close()
        if self._spool is not None:
            shutil.rmtree(self._spool, ignore_errors=True)
            self._spool = None

    def run(self, material: Material) -> Extracted:
        """Ask every extractor that fits, in the sorted order of their ids, and merge the answers.

        Those that are a fallback are asked behind the others, and only where these found nothing sure. One that
        fails is recorded and the others are asked; what took longer than the total allowance is recorded as not asked.
        """
        if material.exit_code == 0 and not material.reports:
            return Extracted()
        fitting = [
            (m, reports)
            for m in self._manifests
            if (reports := _fits(m, material, self._manifests, self._options)) is not None
        ]
        answers: dict[str, ExtractorAnswer] = {}
        failures: dict[str, str] = {}
        until = time.monotonic() + limits.EXTRACTOR_TOTAL_SECONDS
        try:
            streams = self._spooled(material.streams)
        except OSError as error:
            return Extracted(failures={m.id: f"cannot spool the output: {error.strerror}" for m, _ in fitting})
        for manifest, reports in sorted(fitting, key=lambda entry: entry[0].fallback):
            if manifest.fallback and _sure(answers):
                continue
            try:
                answers[manifest.id] = self._ask(manifest, material, streams, reports, until)
            except ExtractorError as error:
                failures[manifest.id] = self._redactor.text(str(error))
        failures |= {name: answer.incomplete for name, answer in answers.items() if answer.incomplete}
        return self._merged(answers, failures, material)

    def ask(self, name: str, material: Material) -> ExtractorAnswer:
        """Ask one extractor by its id, whatever its selectors say.

        Raises UnknownNameError for an unknown id, ExtractorError when it fails.
        """
        found = next((m for m in self._manifests if m.id == name), None)
        if found is None:
            raise UnknownNameError(
                f"extractor '{name}': there is none; known are {', '.join(m.id for m in self._manifests)}"
            )
        until = time.monotonic() + limits.EXTRACTOR_TOTAL_SECONDS
        return self._ask(found, material, self._spooled(material.streams), material.reports, until)

    def _ask(
        self, manifest: Manifest, material: Material, streams: dict[str, Any], reports: Sequence[str], until: float
    ) -> ExtractorAnswer:
        left = until - time.monotonic()
        if left <= 0:
            raise ExtractorError("not asked: the extractors before it used up the time")
        seconds = min(left, manifest.timeout)
        request = _request(material, streams, reports, self._options.get(manifest.id, {}))
        script = manifest.script()
        if script is not None:
            answer = self._host.ask(script, request, seconds)
        else:
            answer = child.ask(manifest.argv(), orjson.dumps(request), directory=manifest.directory, seconds=seconds)
        try:
            return ExtractorAnswer.model_validate(self._redactor.value(answer))
        except ValidationError as error:
            first = error.errors()[0]
            raise ExtractorError(
                f"the answer is not valid: {'.'.join(map(str, first['loc']))}: {first['msg']}"
            ) from error

    def ask_reader(self, manifest: Manifest, material: Material, streams: Mapping[str, str | bytes]) -> ExtractorAnswer:
        """Ask one extractor about streams as they are; what it answers is redacted.

        A secret is found in a text, not in JSON in which a text is written. Raises ExtractorError when it fails.
        """
        try:
            spooled = self._spooled(streams)
        except OSError as error:
            raise ExtractorError(f"cannot spool the output: {error.strerror}") from error
        return self._ask(manifest, material, spooled, (), time.monotonic() + limits.EXTRACTOR_TOTAL_SECONDS)

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        """Return the manifests of all extractors, sorted by id."""
        return self._manifests

    def _spooled(self, streams: Mapping[str, str | bytes]) -> dict[str, Any]:
        """Write the streams where extractors can read them; only this user can."""
        if self._spool is None:
            self._spool = Path(tempfile.mkdtemp(prefix="kos-retry-"))
        out = {}
        for name, text in streams.items():
            path = self._spool / f"{name}.log"
            raw = text.encode("utf-8", "replace") if isinstance(text, str) else text
            path.write_bytes(raw)
            out[name] = {"path": str(path), "bytes": len(raw)}
        return out

    def _merged(self, answers: dict[str, ExtractorAnswer], failures: dict[str, str], material: Material) -> Extracted:
        priority = {m.id: m.priority for m in self._manifests}
        fallback = {m.id: {"names_only": True} if m.fallback else {} for m in self._manifests}
        ranked = [
            (name, f.model_copy(update=fallback[name])) for name in sorted(answers) for f in answers[name].findings
        ]
        ranked = _without_repeats(ranked, {m.id for m in self._manifests if m.match.options})
        ranked.sort(key=lambda entry: (TRUST[entry[1].confidence], priority[entry[0]]))
        kept: dict[tuple[Any, ...], Finding] = {}
        for _, finding in ranked:
            first = kept.setdefault(_identity(finding), finding)
            if first.cause is None and finding.cause is not None:
                # A report says what failed, seldom why; what was printed may say that.
                kept[_identity(finding)] = first.model_copy(update={"cause": finding.cause})
        sources = {name: text.encode("utf-8", "replace") for name, text in material.streams.items()}
        artifacts = tuple(
            artifact(name, answer, sources, self._redactor)
            for name, answer in sorted(answers.items())
            if answer.findings
        )
        return Extracted(
            findings=tuple(kept.values()),
            artifacts=artifacts,
            failures=failures,
            actions=next((a.actions for a in answers.values() if a.actions), ()),
            usage=next((a.usage for a in answers.values() if a.usage), None),
        )


def bundled() -> tuple[Manifest, ...]:
    """Return the manifests of the bundled extractors, sorted by id."""
    return tuple(sorted((read_manifest(directory) for directory in bundled_directories()), key=lambda m: m.id))


def _fits(
    manifest: Manifest, material: Material, all_of_them: Iterable[Manifest], options: Mapping[str, Any]
) -> tuple[str, ...] | None:
    """Return the reports that an extractor is handed, or None where it is not worth asking."""
    match = manifest.match
    if match.transcripts:
        return None
    reports = tuple(r for r in material.reports if _wants(match.reports, r, all_of_them))
    words = {os.path.basename(word) for word in material.argv}
    if match.always or reports or words & set(match.argv) or (match.options and options.get(manifest.id)):
        return reports
    if any(text in stream for text in match.contains for stream in material.streams.values()):
        return reports
    return None


def _sure(answers: dict[str, ExtractorAnswer]) -> bool:
    """Return whether any extractor found more than a guess."""
    return any(f.confidence is not Confidence.GUESS for answer in answers.values() for f in answer.findings)


def _wants(globs: Sequence[str], report: str, all_of_them: Iterable[Manifest]) -> bool:
    """Return whether a report is for an extractor: by its name, or, where nobody knows the name, by its ending."""
    if any(_matches(glob, report) for glob in globs):
        return True
    unknown = not any(_matches(glob, report) for m in all_of_them for glob in m.match.reports)
    return unknown and any(os.path.splitext(glob)[1] == os.path.splitext(report)[1] for glob in globs)


def _matches(glob: str, path: str) -> bool:
    if glob.startswith("**/"):
        parts = glob.count("/")
        return fnmatchcase("/".join(path.split("/")[-parts:]), glob[3:])
    return fnmatchcase(path, glob)


def _request(
    material: Material, streams: dict[str, Any], reports: Sequence[str], options: Mapping[str, Any]
) -> dict[str, Any]:
    attempt = {
        "index": material.attempt,
        "argv": list(material.argv),
        "exit_code": material.exit_code,
        "signal": material.signal,
        "timed_out": material.timed_out,
    }
    return {
        "protocol": limits.EXTRACTOR_PROTOCOL,
        "attempt": attempt,
        "streams": streams,
        "reports": [{"path": os.path.abspath(r), "relative": _relative(r, material.workspace)} for r in reports],
        "workspace": material.workspace,
        "limits": {"findings": limits.MAX_FINDINGS, "message_bytes": limits.MAX_MESSAGE_BYTES},
        "options": options,
    }


def _relative(path: str, workspace: str) -> str:
    root = workspace.rstrip("/") + "/"
    return path[len(root) :] if workspace and path.startswith(root) else os.path.basename(path)


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


def artifact(
    name: str, answer: ExtractorAnswer, sources: Mapping[str, bytes], redactor: Redactor
) -> DiagnosticArtifact:
    """Return one extractor's findings with the text of their evidence, within the bound of an artifact."""
    findings: list[dict[str, Any]] = []
    payload: dict[str, Any] = {"findings": findings, "totals": answer.totals, "omitted": 0}
    size = 0
    for finding in answer.findings:
        entry = finding.model_dump(mode="json", exclude_none=True, exclude={"names_only"})
        entry["excerpt"] = redactor.text(_excerpt(finding.evidence, sources))
        size += len(orjson.dumps(entry))
        if size > limits.MAX_ARTIFACT_BYTES:
            payload["omitted"] = len(answer.findings) - len(findings)
            break
        findings.append(entry)
    return DiagnosticArtifact(
        name=name, size_bytes=len(orjson.dumps(payload)), mime_type="application/json", payload=payload
    )


def _excerpt(spans: Sequence[EvidenceSpan], sources: Mapping[str, bytes]) -> str:
    """Cut the text of the first span that lies in a stream; reports are not quoted, their text was never redacted."""
    for span in spans:
        if span.source in sources and span.start < span.end <= len(sources[span.source]):
            raw = sources[span.source][span.start : span.end][: limits.MAX_EVIDENCE_EXCERPT_BYTES]
            return cut_bytes(plain_text(decode(raw)), limits.MAX_EVIDENCE_EXCERPT_BYTES)
    return ""
