"""Transcripts of agents: which reader knows their format, and what it makes of them."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kos_retry.adapters.extraction.extract import Extraction
from kos_retry.adapters.extraction.manifest import Manifest, bundled
from kos_retry.adapters.extraction.material import Material
from kos_retry.adapters.extraction.merge import artifact
from kos_retry.engine import actions
from kos_retry.engine.redact import Redactor
from kos_retry.errors import ExtractorError, UnknownNameError
from kos_retry.limits import MAX_ACTION_RESULT_BYTES, MAX_TEST_RUNS, TRANSCRIPT_PROSE_BYTES
from kos_retry.model import Action, CauseKind, DiagnosticArtifact, ExtractorAnswer, Finding, Transcript, Usage
from kos_retry.model.finding import FindingKind
from kos_retry.sdk.agents import shortened

# Not a format: the one whose marks are found.
AUTO = "auto"

# A line that neither starts nor ends as JSON does, nor as a line within a document of it: not even a part of one.
_PROSE = re.compile(rb"^(?![\s{}\[\]\",])[^\r\n]{0,4096}(?<![{}\[\]\",\s])\s{0,2}$", re.MULTILINE)
# The names that agents give to the input of a tool which runs commands.
_COMMAND = frozenset({"cmd", "command", "commands", "script"})
# Where a reader cut a text; a secret that goes through the cut is still one.
_CUT = re.compile(r"(?s)^(.*)(\n\[\d{1,12} bytes omitted, [0-9a-f]{16}\]\n)(.*)$")


class TranscriptText(NamedTuple):
    """A transcript as it was written: its format (or `AUTO`), the stream that it is, and its bytes."""

    format: str
    stream: str
    raw: bytes


class Told(NamedTuple):
    """What a transcript told.

    ``stream`` is the one that it is, ``failing_tests`` are those of the last test run among the actions, ``prose`` is what else stood in the stream: the
    command's own complaints. ``failure`` says why nothing was told.
    """

    stream: str = ""
    transcript: Transcript | None = None
    findings: tuple[Finding, ...] = ()
    actions: tuple[Action, ...] = ()
    usage: Usage | None = None
    artifacts: tuple[DiagnosticArtifact, ...] = ()
    failing_tests: tuple[str, ...] = ()
    prose: bytes = b""
    failure: tuple[str, str] | None = None

    @property
    def failed(self) -> bool | None:
        """Return whether the attempt failed, None where the transcript does not say."""
        return self.transcript.failed if self.transcript else None


def formats(manifests: Iterable[Manifest] | None = None) -> tuple[str, ...]:
    """Return the names of all formats, sorted."""
    return tuple(
        sorted({name for m in (bundled() if manifests is None else manifests) for name in m.match.transcripts})
    )


def check_format(name: str | None) -> None:
    """Raise UnknownNameError for a name that is neither a format's nor `AUTO`."""
    if name not in (None, AUTO) and name not in (known := formats()):
        raise UnknownNameError(f"transcript: there is no format '{name}'; known are {', '.join((AUTO, *known))}")


def reader_of(
    manifests: Sequence[Manifest], text: TranscriptText, aside: str = "", argv: Sequence[str] = ()
) -> Manifest | None:
    """Return the reader of a format; for `AUTO` the one whose mark stands in the first line that holds any.

    Where a command printed nothing its complaint ``aside``, on standard error, may hold a mark. Without any mark the name of the
    command counts, and last any reader can tell that there is nothing.
    """
    words = {os.path.basename(word) for word in argv}
    readers = [m for m in manifests if m.match.transcripts]
    if text.format != AUTO:
        return next((m for m in readers if text.format in m.match.transcripts), None)
    blank = not text.raw.strip()
    raw = aside.encode("utf-8", "replace") if blank else text.raw
    marked = [(_line_of_first_mark(m, raw), m.priority, m.id, m) for m in readers]
    found = min((m for m in marked if m[0] >= 0), key=lambda m: m[:3], default=None)
    if found is not None:
        return found[3]
    named = next((m for m in readers if not words.isdisjoint(m.match.argv)), None)
    return named or (max(readers, key=lambda m: m.priority, default=None) if blank else None)


def read(extraction: Extraction, material: Material, text: TranscriptText, redactor: Redactor) -> Told:
    """Return what a transcript tells; ``material`` is the attempt with its other streams."""
    reader = reader_of(extraction.manifests, text, material.streams.get("stderr", ""), material.argv)
    if reader is None:
        return _not_recognised(text)
    try:
        answer = extraction.ask_reader(reader, material, {**material.streams, text.stream: text.raw})
    except ExtractorError as error:
        return Told(text.stream, failure=(reader.id, redactor.text(str(error))), prose=_prose(text.raw))
    if text.format == AUTO and text.raw.strip() and _is_unreadable(answer):
        return _not_recognised(text)
    done = tuple(_without_halves(action, redactor) for action in answer.actions)
    failed = answer.failed or material.exit_code != 0
    name = text.format if text.format != AUTO else reader.match.transcripts[0]
    return Told(
        text.stream,
        transcript=_transcript(name, answer, done),
        findings=answer.findings,
        actions=tuple(a.replace(result=shortened(a.result, MAX_ACTION_RESULT_BYTES)) for a in done),
        usage=answer.usage,
        artifacts=(artifact(reader.id, answer, None, redactor),) if failed else (),
        failing_tests=failing_tests(extraction, done) if failed else (),
        prose=_prose(text.raw),
    )


def _not_recognised(text: TranscriptText) -> Told:
    return Told(text.stream, failure=("transcript", "the output is a transcript of no known format"), prose=text.raw)


def _is_unreadable(answer: ExtractorAnswer) -> bool:
    """Return whether a reader whose mark was there could not read anything all the same."""
    unread = any(f.cause is not None and f.cause.kind is CauseKind.MALFORMED_OUTPUT for f in answer.findings)
    return unread and not answer.actions and answer.usage is None and answer.session is None


def _transcript(name: str, answer: ExtractorAnswer, done: Sequence[Action]) -> Transcript:
    totals = answer.totals or {}
    return Transcript(
        format=name,
        session=answer.session,
        failed=answer.failed,
        actions=max(totals.get("actions", 0), len(done)),
        denied=totals.get("denied", 0),
        malformed_lines=totals.get("malformed_lines", 0),
        identical_run=actions.longest_repeat(done)[0],
    )


def failing_tests(extraction: Extraction, done: Sequence[Action]) -> tuple[str, ...]:
    """Return the tests that failed in the last test run among the actions, in the order in which it named them.

    A run that was done again counts as it went the last time.
    """
    latest = {actions.fingerprint(action): action for action in done}
    order = dict.fromkeys(actions.fingerprint(action) for action in reversed(done))
    runs = [latest[mark] for mark in order if _may_be_a_failed_run(latest[mark])]
    for action in runs[:MAX_TEST_RUNS]:
        found = extraction.run(Material(1, 1, None, False, (), "", {"output": action.result})).findings
        if tests := dict.fromkeys(f.test_id for f in found if f.kind is FindingKind.TEST and f.test_id):
            return tuple(tests)
    return ()


def _may_be_a_failed_run(action: Action) -> bool:
    """Return whether an action may have been a test run that failed: some agents call every command that ended a success."""
    command = isinstance(action.input, dict) and not _COMMAND.isdisjoint(action.input)
    return isinstance(action.result, str) and (action.ok is False or command)


def _line_of_first_mark(manifest: Manifest, raw: bytes) -> int:
    """Return the number of the first line that holds a mark of a format, -1 where none does."""
    places = [at for mark in manifest.match.contains if (at := raw.find(mark.encode())) >= 0]
    return raw.count(b"\n", 0, min(places)) if places else -1


def _prose(raw: bytes) -> bytes:
    """Return the end of what stands in a stream beside the transcript."""
    found: deque[bytes] = deque()
    size = 0
    for match in _PROSE.finditer(raw):
        found.append(match[0])
        size += len(match[0]) + 1
        while size > TRANSCRIPT_PROSE_BYTES:
            size -= len(found.popleft()) + 1
    return b"\n".join(found)


def _without_halves(action: Action, redactor: Redactor) -> Action:
    """Return an action whose cut texts do not show half a secret at the cut."""
    given, result = (_whole(value, redactor) for value in (action.input, action.result))
    return action.replace(input=given, result=result)


def _whole(value: Any, redactor: Redactor) -> Any:
    if isinstance(value, str) and (cut := _CUT.match(value)):
        head, tail = redactor.cut_edges(cut[1], cut[3])
        return head + cut[2] + tail
    if isinstance(value, dict):
        return {key: _whole(item, redactor) for key, item in value.items()}
    return [_whole(item, redactor) for item in value] if isinstance(value, list) else value
