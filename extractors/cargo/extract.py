"""Errors and lints of the Rust compiler, as text or as JSON, and what Cargo itself refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 1024
MAX_NAME_BYTES = 160
MAX_EVIDENCE_BYTES = 500
# How much of one error is read: its notes name the lint, its reasons the cause.
MAX_BODY_LINES = 60
MAX_REPORT_BYTES = 64 * 1024 * 1024
# One compiler message with its rendered text and its spans.
MAX_JSON_BYTES = 1024 * 1024

_HEADING = re.compile(r"^(error|warning)(?:\[([\w:-]{1,80})\])?: (.+)$")
_ARROW = re.compile(r"^ {1,12}--> ([^:\s][^:]{0,400}):(\d{1,9}):(\d{1,9})$")
_LINT = re.compile(r"index\.html#(\w{1,80})$|`-D ([\w:-]{1,80})`|#!?\[(?:deny|forbid|warn|allow)\(([\w:]{1,80})\)\]")
_DIFF = re.compile(r"^Diff in (\S{1,400}?)(?::(\d{1,9}):| at line (\d{1,9}):)$")
_PATH = re.compile(r"/[^`'\s]{1,400}")
# Where a package lies, behind its name and version.
_WHERE = re.compile(r" \(/[^()]{1,400}\)")
_LINKER = re.compile(r"undefined (?:symbol|reference)\b.{1,200}|(?:cannot find|unable to find library) -l\S{1,100}")
# What Cargo says of itself, before it compiles anything.
_CARGO = re.compile(
    r"no matching package|could not find `Cargo\.toml`|no such command|the lock file|cannot (?:update|create) the lock"
    r"|failed to (?:select a version|get|parse|load|download|fetch|read|resolve|update|run custom build|verify)"
    r"|no (?:bin|test|example|bench|library) targets?\b|linking with|the package|package|checksum|unable to (?:get|update)"
    r"|manifest path|cyclic|multiple workspace|current package|none of the selected|rustc \d|toolchain|component"
)
_NETWORK = re.compile(
    r"\[(?:5|6|7|16|18|28|35|52|55|56|92)\] |spurious network error|[Oo]peration timed out|early EOF"
    r"|[Cc]onnection (?:reset|refused|timed out)|\bgot (?:429|50[0234])\b"
)
_REFUSED = re.compile(r"\bgot (?:401|403)\b|failed to authenticate")
# What a build script or a linker does can have any cause.
_UNSURE = re.compile(r"^failed to run custom build|^linking with|No space left on device|internal compiler error")


@dataclass(slots=True)
class Fault:
    """One error: its code and message, what stands below it, and where it points."""

    code: str
    message: str
    evidence: dict[str, Any]
    first: Line | None = None
    body: list[str] = field(default_factory=list)
    path: str | None = None
    line: int | None = None
    column: int | None = None
    confidence: str = "likely"


def extract(request: Request) -> Answer:
    """Answer with the errors in the order in which they were printed, each once."""
    answer = Answer()
    seen: set[tuple[object, ...]] = set()
    for fault in (*_from_reports(request), *_from_lines(request.lines())):
        if len(answer.findings) < request.max_findings:
            _add(answer, request, fault, seen)
    return answer


def _from_lines(lines: Iterable[Line]) -> Iterator[Fault]:
    """Yield the errors in text; what a documentation test's compiler says is that test's."""
    fault: Fault | None = None
    in_test = False
    for line in lines:
        text = line.text.rstrip()
        if text.startswith("---- ") and text.endswith(" ----"):
            in_test = True
        elif text.startswith(("failures:", "test result:", "     Running ")):
            in_test = False
        elif text.startswith('{"reason":"compiler-message"'):
            yield from _from_json(line.text, span(line))
        elif not in_test and (found := _begin(text, line)):
            if fault:
                yield fault
            fault = found
        elif fault is not None:
            _continue(fault, text, line)
    if fault:
        yield fault


def _begin(text: str, line: Line) -> Fault | None:
    if text.startswith(("error", "warning")) and (heading := _HEADING.match(text)):
        # A warning ends the error before it, and nothing more.
        return Fault(heading[2] or "", heading[3] if heading[1] == "error" else "", span(line), line)
    if text.startswith("Diff in ") and (diff := _DIFF.match(text)):
        return Fault("Diff in", "not formatted", span(line), line, path=diff[1], line=int(diff[2] or diff[3]))
    return None


def _continue(fault: Fault, text: str, line: Line) -> None:
    if len(fault.body) >= MAX_BODY_LINES or fault.code == "Diff in":
        return
    fault.body.append(text)
    if text and fault.first and line.source == fault.first.source:
        fault.evidence = span(fault.first, line)
    if fault.path is None and (arrow := _ARROW.match(text)):
        fault.path, fault.line, fault.column = arrow[1], int(arrow[2]), int(arrow[3])


def _from_reports(request: Request) -> Iterator[Fault]:
    for report in request.reports:
        at = 0
        with open(report.path, "rb") as lines:
            while at < MAX_REPORT_BYTES and (raw := lines.readline(MAX_JSON_BYTES)):
                if raw.startswith(b'{"reason":"compiler-message"'):
                    evidence = {"source": f"report:{report.name}", "start": at, "end": at + len(raw.rstrip())}
                    yield from _from_json(raw.decode("utf-8", "replace"), evidence)
                at += len(raw)


def _from_json(text: str, evidence: dict[str, Any]) -> Iterator[Fault]:
    """Yield the error that one line of Cargo's JSON tells of, if it does."""
    try:
        message = json.loads(text)["message"]
        if message["level"] != "error":
            return
        code = (message.get("code") or {}).get("code") or ""
        fault = Fault(str(code), str(message["message"]), evidence, confidence="exact")
        place = next((s for s in message["spans"] if s["is_primary"]), None)
        if place:
            fault.path, fault.line, fault.column = (
                str(place["file_name"]),
                int(place["line_start"]),
                int(place["column_start"]),
            )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return
    if fault.path:
        yield fault


def _add(answer: Answer, request: Request, fault: Fault, seen: set[tuple[object, ...]]) -> None:
    path = request.relative(fault.path) if fault.path else None
    kind, message = "diagnostic", fault.message
    cause: dict[str, str] | None = _deterministic(fault)
    if not message:
        return
    if fault.code == "Diff in":
        name = f"Diff in {path}"
    elif path:
        name = fault.code or _lint(fault.body) or _name(message)
        cause = None if _UNSURE.search(message) else cause
    elif _CARGO.match(message):
        name = _name(_heading(request, fault))
        kind, message, cause = _refusal(request, fault)
        path = "Cargo.toml" if "Cargo.toml" in name else None
    else:
        return
    key = (path, fault.line, name, None if path else message)
    if key in seen:
        return
    seen.add(key)
    answer.add(
        kind,
        code=cut_bytes(name, MAX_NAME_BYTES),
        message=cut_bytes(message, MAX_MESSAGE_BYTES),
        path=path,
        line=fault.line,
        column=fault.column,
        evidence=[fault.evidence],
        confidence=fault.confidence,
        cause=cause,
    )


def _refusal(request: Request, fault: Fault) -> tuple[str, str, dict[str, str] | None]:
    """Return kind, message and cause of what Cargo refused: the message with the last of the reasons."""
    whole = "\n".join((fault.message, *fault.body))
    reasons = [text.strip() for text in fault.body if text.startswith("  ")] if "Caused by:" in fault.body else []
    message = ": ".join((_heading(request, fault), *reasons[-1:]))
    cause = _deterministic(fault)
    if _REFUSED.search(whole):
        fix = "check the registry's credential"
        return "infrastructure", message, {**cause, "kind": "auth", "rule": "cargo-auth", "fix": fix}
    if _NETWORK.search(whole):
        return "infrastructure", message, {**cause, "kind": "transient", "rule": "cargo-network"}
    sure = message.startswith("linking failed") or not _UNSURE.search(whole)
    return "diagnostic", message, cause if sure else None


def _heading(request: Request, fault: Fault) -> str:
    """Return the message with paths as seen from the workspace."""
    message = _PATH.sub(lambda path: request.relative(path[0]), _WHERE.sub("", fault.message))
    linker = next((said[0] for text in fault.body if (said := _LINKER.search(text))), "")
    return f"linking failed: {linker}" if linker and message.startswith("linking with") else message


def _lint(body: list[str]) -> str:
    """Return the lint that an error is of, as it is written in the sources."""
    for text in body:
        if lint := _LINT.search(text):
            if lint[1]:
                return f"clippy::{lint[1]}" if "clippy" in text else str(lint[1])
            return str(lint[2] or lint[3]).replace("-", "_")
    return ""


def _name(message: str) -> str:
    return cut_bytes(message.partition("; ")[0].strip(" .:;,"), MAX_NAME_BYTES)


def _deterministic(fault: Fault) -> dict[str, str]:
    evidence = fault.first.text.strip() if fault.first else fault.message
    return {"kind": "deterministic", "rule": "rust-error", "evidence": cut_bytes(evidence, MAX_EVIDENCE_BYTES)}


if __name__ == "__main__":
    main(extract)
