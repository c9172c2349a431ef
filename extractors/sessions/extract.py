"""Which session of nox or environment of tox failed: what it ran has mostly said why, in its own words."""

from __future__ import annotations

import re

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_NAME_BYTES = 200

_FAILED = re.compile(
    r"^(?:nox > Session (?P<nox>\S.{0,200}?) (?:failed|(?P<aborted>(?:aborted|failed): .{1,300}?|interrupted))\.?"
    r"|  (?P<tox>[\w.,+-]{1,100}): FAIL (?:code \d{1,3} )?\([\d.].{0,200}\)|(?P<gone>[\w.,+-]{1,100}): (?:skipped because|failed with) (?P<why>could not find .{1,300}?)(?: py\d{2,4})?|ERROR: {1,5}(?P<old>[\w.,+-]{1,100}): commands failed)$"
)
_ASIDE = re.compile(
    r"^(?:nox > |[\w.,+-]{1,100}: (?:commands\[|exit \d|FAIL|OK|skipped|recreate|install))|^\s{0,4}[\w.,+-]{1,100}: (?:FAIL|OK|SKIP) |^_{3,}|^ERROR: InvocationError"
)
_MISSING = re.compile(r"^(?:nox > (?P<nox>Sessions not found: .{1,300})|.{0,40}HandledError\| (?P<tox>.{1,300}))$")
_START = re.compile(
    r"^(?:nox > Running session (?P<nox>\S.{0,200})|(?P<tox>[\w.,+-]{1,100}): commands\[\d{1,4}\]> .{0,2000})$"
)


def extract(request: Request) -> Answer:
    """Answer with each session that failed, and the last words of what it ran."""
    answer = Answer()
    current = ""
    words: dict[str, str] = {}
    heading: str | None = None
    seen: set[str] = set()
    for line in request.lines():
        text = line.text.rstrip()
        if heading is not None and text.strip():
            _add(answer, request, f"{heading} {text.strip()}", "", line, seen)
            heading = None
        elif start := _START.match(text):
            current = start["nox"] or start["tox"]
        elif missing := _MISSING.match(text):
            said = missing["nox"] or missing["tox"]
            heading = said if said.endswith(":") else None
            if heading is None:
                _add(answer, request, said, "", line, seen)
        elif failed := _FAILED.match(text):
            name = failed["nox"] or failed["tox"] or failed["old"] or failed["gone"]
            why = failed["aborted"] or failed["why"] or words.get(name, "")
            _add(answer, request, name, why, line, seen)
        elif text.strip() and not _ASIDE.match(text):
            words[current] = text.strip()
    return answer


def _add(answer: Answer, request: Request, name: str, words: str, line: Line, seen: set[str]) -> None:
    if name in seen or len(answer.findings) >= request.max_findings:
        return
    seen.add(name)
    message = cut_bytes(f"{name}: {words}" if words else name, 1024)
    answer.add("diagnostic", code=cut_bytes(name, MAX_NAME_BYTES), message=message, evidence=[span(line)])


if __name__ == "__main__":
    main(extract)
