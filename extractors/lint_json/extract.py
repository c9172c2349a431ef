"""Problems that linters and type checkers write as JSON, in reports or on a stream.

Each tool has a shape of its own, and all of them come to the same: somewhere in arrays and objects stands one object a
problem, which names a line, a rule and a message, and itself or an object round it names the file. So the objects are
looked for instead of the shapes. An object that is cut off is none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kos_retry.sdk import Answer, Request, main
from kos_retry.sdk.json_files import Evidence, Torn, document, embedded, entries, object_of, position_of
from kos_retry.text.bounds import cut_bytes
from kos_retry.text.escapes import plain_text

MAX_DEPTH = 8
MAX_PROBLEMS = 20_000
MAX_MESSAGE_BYTES = 2048
MAX_EVIDENCE_BYTES = 400
MAX_PATH_CHARS = 1024

FILES = ("file", "filename", "filePath", "file_path", "filepath", "path", "Filename", "source", "absolutePath")
LINES = ("line", "row", "line_number", "startLine", "begin", "Line", "lineNumber", "linenumber")
COLUMNS = ("column", "col", "column_number", "col_offset", "startColumn", "Column", "character")
MESSAGES = ("message", "text", "issue_text", "Text", "description", "messageText")
# The names that can mean nothing else first: `code` may be the source itself.
RULES = (
    "test_id",
    "check_id",
    "check_name",
    "cop_name",
    "FromLinter",
    "symbol",
    "identifier",
    "code",
    "rule",
    "kind",
    "linter",
    "message-id",
)
SEVERITIES = ("severity", "level", "issue_severity", "Severity", "type", "warningType")
# Where the position stands when it does not stand beside the message, the nearest first.
PLACES = ("location", "start", "range", "begin", "lines", "positions", "Pos", "extra", "end")
# What does not fail a run by itself, in words that a tool uses beside `error`.
WARNINGS = frozenset({"warning", "warn", "information", "info", "hint", "suggestion", "help"})
NOTES = frozenset({"note"})
# What only tools have whose warnings fail a run too.
ALL_FAIL = ("level", "message-id", "messageId", "cop_name")
# Members by which those are known that count columns from 0: mypy, pylint in both of its forms, bandit.
COLUMNS_FROM_ZERO = ({"hint", "end_column"}, {"message-id"}, {"messageId"}, {"col_offset"})
# A rule of shellcheck is a number.
NUMBERED = {"fix": "SC", "endLine": "SC"}


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem, and whether it weighs as an error."""

    path: str
    line: int | None
    column: int | None
    rule: str
    message: str
    error: bool
    evidence: Evidence
    exact: bool


def extract(request: Request) -> Answer:
    """Answer with the errors of all reports and streams, or with the warnings where there are no errors."""
    answer = Answer()
    found: dict[tuple[object, ...], Problem] = {}
    for problem in _all(request, answer):
        if len(found) < MAX_PROBLEMS:
            found.setdefault((problem.path, problem.line, problem.column, problem.rule), problem)
    problems = list(found.values())
    told = [p for p in problems if p.error] or ([] if request.exit_code == 0 else problems)
    for problem in told[: request.max_findings]:
        _add(answer, problem)
    return answer


def _all(request: Request, answer: Answer) -> Iterator[Problem]:
    for report in request.reports:
        value, evidence = document(report)
        values: list[tuple[Any, Evidence]] = [(value, evidence)]
        if not isinstance(value, list):
            # Where there is one object a line, the first of them is a document of its own.
            lines = [*entries(report)]
            if value is None or (lines and lines[0].evidence["start"] == 0):
                values = [(line.value, line.evidence) for line in lines]
        problems = [p for each, at in values for p in _problems(request, each, "", at, exact=True)]
        if problems or value == []:
            errors = sum(problem.error for problem in problems)
            answer.count_diagnostics(errors=errors, warnings=len(problems) - errors)
        yield from problems
    if request.exit_code != 0:
        for value, evidence in embedded(request):
            yield from _problems(request, value, "", evidence, exact=False)


def _problems(
    request: Request, value: Any, file: str, evidence: Evidence, *, exact: bool, depth: int = 0
) -> Iterator[Problem]:
    """Yield the problems in a value; ``file`` is the one that an object round it names."""
    if depth >= MAX_DEPTH or not isinstance(value, (list, dict)):
        return
    if isinstance(value, dict):
        if "ruleId" in value or "$schema" in value or "jsonrpc" in value:
            # These have readers of their own.
            return
        own = next((named for place in (value, *_places(value)) if (named := _text(place, FILES))), "")
        problem = None if isinstance(value, Torn) else _problem(request, value, own or file, evidence, exact)
        if problem is not None:
            yield problem
            return
        file = own or file
    for name, inner in value.items() if isinstance(value, dict) else (("", item) for item in value):
        # Some group problems by file, under its name.
        below = name if not file and ("/" in name or "." in name) else file
        yield from _problems(request, inner, below, evidence, exact=exact, depth=depth + 1)


def _problem(request: Request, value: dict[str, Any], file: str, evidence: Evidence, exact: bool) -> Problem | None:
    message, rule = _text(value, MESSAGES) or _text(object_of(value.get("extra")), MESSAGES), _rule(value)
    line, column = _position(value)
    severity = (_text(value, SEVERITIES) or _text(object_of(value.get("extra")), SEVERITIES)).lower()
    if not (file and message and line) or severity in NOTES or "status" in value:
        return None
    if not rule and not (severity and exact):
        # A program's own log has lines like these.
        return None
    return Problem(
        path=request.relative(file[:MAX_PATH_CHARS]),
        line=line,
        column=column,
        rule=rule,
        message=message.strip().removeprefix(f"{rule}: "),
        error=severity not in WARNINGS or any(name in value for name in ALL_FAIL),
        evidence=evidence,
        exact=exact,
    )


def _places(value: dict[str, Any]) -> list[dict[str, Any]]:
    return [object_of(value.get("location")), object_of(value.get("Pos"))]


def _rule(value: dict[str, Any]) -> str:
    for name in RULES:
        given = value.get(name)
        if isinstance(given, dict):
            given = given.get("value") or given.get("name")
        if isinstance(given, int) and not isinstance(given, bool):
            return f"{next((NUMBERED[key] for key in value if key in NUMBERED), '')}{given}"
        if isinstance(given, str) and given.strip():
            return plain_text(given).strip()
    return ""


def _position(value: dict[str, Any]) -> tuple[int | None, int | None]:
    """Return line and column: beside the message, else in the nearest object that has them."""
    # A range of the language server's protocol counts lines from 0 too.
    offset = 1 if any(names <= value.keys() for names in COLUMNS_FROM_ZERO) else 0
    here: Any = value
    for _ in range(MAX_DEPTH):
        line = next((here[name] for name in LINES if isinstance(here.get(name), int)), None)
        if line is not None:
            zero = 1 if "character" in here else 0
            column = next((here[name] for name in COLUMNS if isinstance(here.get(name), int)), None)
            return position_of(line, zero), position_of(column, zero or offset)
        inner = next((here[name] for name in PLACES if isinstance(here.get(name), dict)), None)
        if inner is None:
            break
        here = inner
    return None, None


def _text(value: dict[str, Any], names: tuple[str, ...]) -> str:
    return plain_text(next((given for name in names if isinstance(given := value.get(name), str) and given), ""))


def _add(answer: Answer, problem: Problem) -> None:
    rule = problem.rule or "error"
    message = problem.message.removesuffix(".") or rule
    evidence = cut_bytes(f"{rule}: {message}".partition("\n")[0], MAX_EVIDENCE_BYTES)
    answer.add(
        "diagnostic",
        status="failed" if problem.error else "warning",
        code=problem.rule or None,
        message=cut_bytes(message, MAX_MESSAGE_BYTES),
        path=problem.path,
        line=problem.line,
        column=problem.column,
        evidence=[problem.evidence],
        confidence="exact" if problem.exact else "likely",
        cause={"kind": "deterministic", "rule": "lint-problem", "evidence": evidence} if problem.error else None,
    )


if __name__ == "__main__":
    main(extract)
