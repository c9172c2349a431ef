"""Errors of ESLint: its JSON in a report or on a stream, and its stylish, unix and compact texts.

Warnings fail a run only where a limit of them is set, so they are told only where there is no error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.sdk.json_files import document, objects_of
from kos_retry.text.bounds import cut_bytes
from kos_retry.text.escapes import plain_text

MAX_PROBLEMS = 20_000
MAX_MESSAGE_BYTES = 2048
# How much of a stream's text one message of the JSON may take: what is longer is no message.
MAX_OBJECT_CHARS = 8192
# A line that is cut off breaks one message; more mean that it is something else.
MAX_BROKEN = 20
# The parser's errors have no rule.
NO_RULE = "Parsing error"
OOPS = "Oops! Something went wrong! :("
# After the apology stand the version and what went wrong.
OOPS_LINES = 12

_ROW = re.compile(r"^ {1,8}(\d{1,9}):(\d{1,9}) {1,12}(error|warning) {1,12}(\S.{0,4000})$")
_RULE = re.compile(r" {2,400}((?:@?[\w.-]{1,80}/){0,3}[\w-]{1,80})$")
_UNIX = re.compile(r"^(\S.{0,600}?):(\d{1,9}):(\d{1,9}): (.{1,2000}) \[(Error|Warning)(?:/([^\]\s]{1,200}))?\]$")
_COMPACT = re.compile(r"^(\S.{0,600}?): line (\d{1,9}), col (\d{1,9}), (Error|Warning) - (.{1,2000})$")
_BRACKET = re.compile(r"^(.{0,2000}) \(([^()\s]{1,200})\)$")
_OBJECT = re.compile(r'\{\s{0,8}"(?:filePath"\s{0,4}:\s{0,4}("(?:[^"\\]|\\.){0,1000}")|ruleId")')


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem, and whether it is an error; ``rule`` is empty where none is named."""

    path: str
    line: int
    column: int
    error: bool
    rule: str
    message: str
    evidence: tuple[str, int, int]
    exact: bool = False


def extract(request: Request) -> Answer:
    """Answer with the errors of all reports and streams, or with the warnings where there are no errors."""
    answer = Answer()
    found: dict[tuple[object, ...], Problem] = {}
    for problem in (*_reports(request), *_texts(request, answer)):
        found.setdefault((request.relative(problem.path), problem.line, problem.column, problem.rule), problem)
    problems = list(found.values())
    told = [p for p in problems if p.error] or ([] if request.exit_code == 0 or answer.findings else problems)
    for problem in told[: request.max_findings]:
        _add(answer, request, problem)
    answer.findings = answer.findings[: request.max_findings]
    return answer


def _add(answer: Answer, request: Request, problem: Problem) -> None:
    code = problem.rule or (NO_RULE if problem.message.startswith(NO_RULE) else "eslint")
    message = problem.message.removesuffix(".") or code
    source, start, end = problem.evidence
    answer.add(
        "diagnostic",
        status="failed" if problem.error else "warning",
        code=code,
        message=cut_bytes(message, MAX_MESSAGE_BYTES),
        path=request.relative(problem.path) or None,
        line=problem.line or None,
        column=problem.column or None,
        evidence=[{"source": source, "start": start, "end": end}] if start < end else [],
        confidence="exact" if problem.exact else "likely",
        cause={"kind": "deterministic", "rule": "eslint-problem", "evidence": f"{code}: {message}"[:400]},
    )


def _reports(request: Request) -> Iterator[Problem]:
    for report in request.reports:
        data, evidence = document(report)
        results = data.get("results") if isinstance(data, dict) else data
        for result in results if isinstance(results, list) else []:
            # A file whose problems are cut off still has those that are not.
            if isinstance(result, dict) and isinstance(result.get("messages"), list):
                path = str(result.get("filePath") or "")
                yield from _messages(objects_of(result["messages"]), path, (evidence["source"], 0, evidence["end"]))


def _messages(messages: list[Any], path: str, evidence: tuple[str, int, int]) -> Iterator[Problem]:
    for said in messages[:MAX_PROBLEMS]:
        if not isinstance(said, dict) or not isinstance(said.get("message"), str):
            continue
        rule = said.get("ruleId")
        yield Problem(
            path=plain_text(path),
            line=_position(said.get("line")),
            column=_position(said.get("column")),
            error=said.get("severity") == 2 or said.get("fatal") is True,
            rule=plain_text(rule)[:200] if isinstance(rule, str) else "",
            message=plain_text(said["message"]),
            evidence=evidence,
            exact=True,
        )


def _texts(request: Request, answer: Answer) -> Iterator[Problem]:
    path, oops, left = "", None, MAX_PROBLEMS
    for line in request.lines():
        if oops is not None:
            oops = _oops(answer, oops, line)
        elif line.text.startswith(OOPS):
            oops = (line, OOPS_LINES)
        elif '"ruleId"' in line.text:
            yield from _json_line(line)
        elif (problem := _problem(path, line)) and left > 0:
            left -= 1
            yield problem
        elif line.text.strip():
            path = line.text.strip() if not line.text.startswith(" ") and len(line.text) < 1000 else ""


def _problem(path: str, line: Line) -> Problem | None:
    """Return the problem that a line of text tells, if it does; ``path`` is the heading above."""
    text, evidence = line.text.rstrip(), (line.source, line.start, line.end)
    if path and (row := _ROW.match(text)):
        rule = _RULE.search(row[4])
        message = row[4][: rule.start()].rstrip() if rule else row[4]
        return Problem(path, int(row[1]), int(row[2]), row[3] == "error", rule[1] if rule else "", message, evidence)
    if text.endswith("]") and (" [Error" in text or " [Warning" in text) and (unix := _UNIX.match(text)):
        return Problem(unix[1], int(unix[2]), int(unix[3]), unix[5] == "Error", unix[6] or "", unix[4], evidence)
    if ", col " in text and (compact := _COMPACT.match(text)):
        said = _BRACKET.match(compact[5])
        message, rule_id = (said[1], said[2]) if said else (compact[5], "")
        place = int(compact[2]), int(compact[3])
        return Problem(compact[1], *place, compact[4] == "Error", rule_id, message, evidence)
    return None


def _json_line(line: Line) -> Iterator[Problem]:
    """Yield the problems of a line of JSON, which may be cut off: each message is read by itself."""
    path, decoder, broken = "", json.JSONDecoder(), 0
    for found in _OBJECT.finditer(line.text):
        try:
            if found[1]:
                path = json.loads(found[1])
                continue
            said, _ = decoder.raw_decode(line.text[found.start() : found.start() + MAX_OBJECT_CHARS])
        except (ValueError, RecursionError):
            broken += 1
            if broken > MAX_BROKEN:
                return
            continue
        yield from _messages([said], path, (line.source, line.start, line.end))


def _oops(answer: Answer, state: tuple[Line, int], line: Line) -> tuple[Line, int] | None:
    """Read what follows the apology; return the state to go on with, or None once it is told what went wrong."""
    text, (first, left) = line.text.strip(), state
    if line.source != first.source or left <= 0:
        return None
    if not text or text.startswith("ESLint: "):
        return first, left - 1
    cause = {
        "kind": "deterministic",
        "rule": "eslint-config",
        "evidence": text[:400],
        "fix": "correct the configuration or the arguments of eslint",
    }
    message = cut_bytes(text, MAX_MESSAGE_BYTES)
    answer.add("diagnostic", code="eslint-config", message=message, evidence=[span(first, line)], cause=cause)
    return None


def _position(value: Any) -> int:
    return value if isinstance(value, int) and 0 < value < 2**31 else 0


if __name__ == "__main__":
    main(extract)
