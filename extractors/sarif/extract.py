"""Problems from SARIF 2.1.0 (JSON), in reports or on a stream.

What a run gates on is not in the format: results of the level ``error`` are told, and those of the level ``warning``,
or that were there before, only where nothing weightier is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeGuard
from urllib.parse import unquote

from kos_retry.sdk import Answer, Request, main
from kos_retry.sdk.json_files import Evidence, document, embedded, object_of, objects_of, position_of, text_of
from kos_retry.text.bounds import cut_bytes
from kos_retry.text.escapes import plain_text

MAX_RESULTS = 100_000
MAX_MESSAGE_BYTES = 2048
MAX_EVIDENCE_BYTES = 400
# What the tool says of its own failure, where it gives that no name.
NOTIFICATION = "tool-execution"
# Bases may be relative to each other.
MAX_BASES = 8
# A result whose suppression was turned down, or is not decided yet, still counts.
OPEN_SUPPRESSIONS = frozenset({"rejected", "underReview"})

_PLACEHOLDER = re.compile(r"\{(\d{1,3})\}")
_SCHEME = re.compile(r"^[A-Za-z][\w+.-]{1,30}:")


@dataclass(frozen=True, slots=True)
class Problem:
    """One result that counts: ``known`` where it was there before."""

    rule: str
    level: str
    known: bool
    message: str
    path: str
    line: int | None
    column: int | None
    evidence: Evidence


class Tool:
    """What a run says of its tool: the rules, and the texts that they have for results."""

    def __init__(self, run: dict[str, Any]) -> None:
        tool = object_of(run.get("tool"))
        driver, extensions = object_of(tool.get("driver")), objects_of(tool.get("extensions"))
        self._parts = [driver, *extensions]
        self._rules = [objects_of(part.get("rules")) for part in self._parts]
        self._by_id = {text_of(rule.get("id")): rule for rules in reversed(self._rules) for rule in rules}

    def rule(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return the rule of a result: by its index, else by its id; a rule may be known under a prefix of the id."""
        named = object_of(result.get("rule"))
        component = object_of(named.get("toolComponent")).get("index")
        rules = self._rules[component + 1] if _index(component) and component + 1 < len(self._rules) else self._rules[0]
        for index in (result.get("ruleIndex"), named.get("index")):
            if _index(index) and index < len(rules):
                return rules[index]
        name = text_of(result.get("ruleId")) or text_of(named.get("id"))
        return self._by_id.get(name) or self._by_id.get(name.partition("/")[0]) or {}

    def text(self, message: dict[str, Any], rule: dict[str, Any]) -> str:
        """Return the text of a message, which may be one of the rule's with arguments filled in."""
        strings = [rule.get("messageStrings"), *(part.get("globalMessageStrings") for part in self._parts)]
        name = text_of(message.get("id"))
        named = next((found for kept in strings if (found := object_of(object_of(kept).get(name)))), {})
        text = next((t for t in (text_of(m.get(k)) for m in (message, named) for k in ("text", "markdown")) if t), "")
        arguments = message.get("arguments")
        values = [text_of(value) for value in arguments] if isinstance(arguments, list) else []
        return _PLACEHOLDER.sub(lambda at: values[int(at[1])] if int(at[1]) < len(values) else at[0], text)


def extract(request: Request) -> Answer:
    """Answer with the problems that weigh most, and with how many errors and warnings there are."""
    answer = Answer()
    problems: list[Problem] = []
    for value, evidence in (*(document(report) for report in request.reports), *embedded(request)):
        runs = object_of(value).get("runs")
        if not isinstance(runs, list) or not {"version", "$schema"} & value.keys():
            continue
        found = [problem for run in runs for problem in _problems(request, object_of(run), evidence)]
        problems += found
        errors = sum(problem.level == "error" for problem in found)
        answer.count_diagnostics(errors=errors, warnings=len(found) - errors)
    for problem in _weighty(problems, request.exit_code)[: request.max_findings]:
        _add(answer, problem)
    return answer


def _weighty(problems: list[Problem], exit_code: int | None) -> list[Problem]:
    new = [problem for problem in problems if not problem.known]
    errors = [problem for problem in new if problem.level == "error"]
    return errors or ([] if exit_code == 0 else new or problems)


def _problems(request: Request, run: dict[str, Any], evidence: Evidence) -> Iterator[Problem]:
    tool, bases = Tool(run), object_of(run.get("originalUriBaseIds"))
    for result in objects_of(run.get("results"))[:MAX_RESULTS]:
        rule = tool.rule(result)
        level = text_of(result.get("level")) or _default_level(rule)
        if level in ("error", "warning") and _counts(result):
            yield _problem(request, tool, result, rule, level, bases, evidence)
    for invocation in objects_of(run.get("invocations")):
        for kind in ("toolExecutionNotifications", "toolConfigurationNotifications"):
            for told in objects_of(invocation.get(kind)):
                if told.get("level") == "error":
                    descriptor = object_of(told.get("descriptor"))
                    named = {**told, "ruleId": descriptor.get("id") or NOTIFICATION}
                    yield _problem(request, tool, named, {}, "error", bases, evidence)


def _counts(result: dict[str, Any]) -> bool:
    """Return whether a result tells that something is wrong: not that it is right, gone, or agreed to be left alone."""
    if text_of(result.get("kind")) not in ("", "fail") or result.get("baselineState") == "absent":
        return False
    suppressions = objects_of(result.get("suppressions"))
    return all(text_of(each.get("status")) in OPEN_SUPPRESSIONS for each in suppressions)


def _default_level(rule: dict[str, Any]) -> str:
    return text_of(object_of(rule.get("defaultConfiguration")).get("level")) or "warning"


def _problem(
    request: Request,
    tool: Tool,
    result: dict[str, Any],
    rule: dict[str, Any],
    level: str,
    bases: dict[str, Any],
    evidence: Evidence,
) -> Problem:
    locations = objects_of(result.get("locations"))
    physical = object_of(locations[0].get("physicalLocation")) if locations else {}
    region = object_of(physical.get("region"))
    return Problem(
        rule=plain_text(text_of(result.get("ruleId")) or text_of(rule.get("id"))).strip(),
        level=level,
        known=result.get("baselineState") == "unchanged",
        message=plain_text(tool.text(object_of(result.get("message")), rule)).strip(),
        path=request.relative(_path(object_of(physical.get("artifactLocation")), bases)),
        line=position_of(region.get("startLine")),
        column=position_of(region.get("startColumn")),
        evidence=evidence,
    )


def _path(artifact: dict[str, Any], bases: dict[str, Any]) -> str:
    """Return the path of a location, which may be relative to a named base; a base that is not given is the workspace."""
    uri, base = text_of(artifact.get("uri")), text_of(artifact.get("uriBaseId"))
    for _ in range(MAX_BASES):
        if _SCHEME.match(uri) or not base:
            break
        above = object_of(bases.get(base))
        lead = text_of(above.get("uri"))
        uri, base = f"{lead.rstrip('/')}/{uri}" if lead else uri, text_of(above.get("uriBaseId"))
    if uri.startswith("file:"):
        uri = "/" + uri.removeprefix("file:").lstrip("/")
    return plain_text(unquote(uri)).replace("\n", " ")


def _index(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _add(answer: Answer, problem: Problem) -> None:
    message = problem.message.removesuffix(".") or problem.rule
    if not message:
        return
    said = cut_bytes(f"{problem.rule}: {message}".partition("\n")[0], MAX_EVIDENCE_BYTES)
    cause = {"kind": "deterministic", "rule": "sarif-error", "evidence": said}
    answer.add(
        "diagnostic",
        status="failed" if problem.level == "error" else "warning",
        code=problem.rule or None,
        message=cut_bytes(message, MAX_MESSAGE_BYTES),
        path=problem.path or None,
        line=problem.line,
        column=problem.column,
        evidence=[problem.evidence],
        confidence="exact",
        cause=cause if problem.level == "error" else None,
    )


if __name__ == "__main__":
    main(extract)
