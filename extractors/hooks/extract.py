"""Hooks before a commit that failed: each is a named check, whatever it ran."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kos_retry.sdk import Answer, Line, Request, Watch, main, span
from kos_retry.text.bounds import cut_bytes

MAX_NAME_BYTES = 200
MAX_MESSAGE_BYTES = 1024

_RESULT = re.compile(r"^(?P<name>\S.{0,200}?)\.{3,200}(?:\([^)]{0,60}\))?(?P<result>Failed|Passed|Skipped)$")
_FACT = re.compile(r"^- (?P<fact>hook id|exit code|duration): (.{1,200})$|^- (files were modified by this hook)$")
_END = "pre-commit hook(s) made changes."
_TELLING = re.compile(r"(?i)error|fail|cannot|not found|invalid|expect|missing|no ")


@dataclass(slots=True)
class Hook:
    """One hook that failed, what is told of it, and what it printed."""

    name: str
    first: Line
    last: Line
    code: str = ""
    modified: bool = False
    said: str = ""


def extract(request: Request) -> Answer:
    """Answer with each hook that failed."""
    answer = Answer()
    hook: Hook | None = None
    hooks: list[Hook] = []
    watch = Watch(_RESULT)
    for line in request.lines():
        if hook is None and not watch.sees(line):
            continue
        text = line.text.rstrip()
        if result := _RESULT.match(text):
            hook = Hook(result["name"], line, line) if result["result"] == "Failed" else None
            if hook is not None:
                hooks.append(hook)
        elif text == _END:
            hook = None
        elif hook is not None:
            _take(hook, text, line)
    for hook in hooks[: request.max_findings]:
        _add(answer, hook)
    return answer


def _take(hook: Hook, text: str, line: Line) -> None:
    if fact := _FACT.match(text):
        hook.modified = hook.modified or bool(fact[3])
        if fact["fact"] == "exit code":
            hook.code = fact[2]
        hook.last = line
    # The first line that tells of an error, or the first one at all.
    elif text and (not hook.said or (not _TELLING.search(hook.said) and _TELLING.search(text))):
        hook.said = text.strip()


def _add(answer: Answer, hook: Hook) -> None:
    told = "files were modified by this hook" if hook.modified else f"exit code {hook.code}: {hook.said}".rstrip(": ")
    answer.add(
        "policy",
        code=cut_bytes(hook.name, MAX_NAME_BYTES),
        message=cut_bytes(f"{hook.name}: {told}", MAX_MESSAGE_BYTES),
        evidence=[span(hook.first, hook.last)],
    )


if __name__ == "__main__":
    main(extract)
