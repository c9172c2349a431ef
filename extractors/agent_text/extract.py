"""Why an agent's command line gave up, from what it prints as plain text: limits, credentials, budgets, trust, no answer.

Anything may quote such words. A line counts only if it starts with them and is among the last words of its stream: what a tool
or a test said before that is not the agent's word.
"""

from __future__ import annotations

import re
from collections import deque
from datetime import UTC, datetime
from typing import NamedTuple

from words import LEAD, NAMES, PROVIDER, STATEMENTS

from kos_retry.sdk import Answer, Line, Request, main, one_line, span
from kos_retry.sdk.agents import RANKS, SAID_BY_KIND
from kos_retry.sdk.provider import reason_of_words, reset_of, wait_of

# What an agent says at its end stands among so many lines, without stacks and dumps of objects, which are indented.
LAST_WORDS = 8
MAX_LEADS = 4
MAX_CHARS = 2048
YEAR_3000 = 32_503_680_000

# Words that stand in the title or the verdict of a test, in a log level below an error, or in source text.
_QUOTED = re.compile(
    r"(?i)\b(?:pass(?:ed)?|failed|skipped|ok)\W{0,3}$|\b(?:assert\w{0,20}|expect(?:ed|s)?|should|returns?|raises)\b|::|\(\d{1,6}(?:\.\d{1,6})? ?m?s\)$|^\W{0,2}(?:warn(?:ing)?|info|debug|note)\b"
)
_INDENTED = re.compile(r"[\s}\])]")
# The time of a reset as a number, behind a bar or in words.
_RESETS_AT = re.compile(r"(?:\||\bresets?(?: at)? )(\d{10})\b")
FIXES = {
    "auth": "check the credential: log in again, or renew the key",
    "billing": "settle the billing of the plan",
    "budget": "raise the agent's own budget, or split the work",
    "untrusted": "trust the folder that the agent runs in, or tell the agent not to ask",
    "config": "correct the agent's settings, its model first of all",
}


class Reason(NamedTuple):
    """Why it gave up, and the line that says so."""

    kind: str
    rule: str
    said: str
    line: Line


def extract(request: Request) -> Answer:
    """Answer with the weightiest reason among the last words of any stream."""
    reasons = [reason for line in _last_words(request) if (reason := _reason(line))]
    answer = Answer()
    if reasons:
        _add(answer, min(reasons, key=lambda reason: RANKS.index(reason.kind)))
    return answer


def _last_words(request: Request) -> list[Line]:
    streams: dict[str, deque[Line]] = {}
    for line in request.lines():
        if line.text and not _INDENTED.match(line.text):
            streams.setdefault(line.source, deque(maxlen=LAST_WORDS)).append(line)
    return [line for last in streams.values() for line in last]


def _reason(line: Line) -> Reason | None:
    text = line.text[:MAX_CHARS].rstrip()
    at = _after_leads(text)
    provider = PROVIDER.match(text, at)
    if provider is None and _QUOTED.search(text):
        return None
    told = _named(text, provider.end() if provider else at)
    if told is None and provider is not None:
        words = reason_of_words(text[provider.end() :].lstrip(": "))
        told = (words.kind, words.rule) if words else None
    elif told is None:
        told = next(((kind, rule) for kind, rule, words in STATEMENTS if words.match(text, at)), None)
    return Reason(*told, text[at:], line) if told else None


def _named(text: str, at: int) -> tuple[str, str] | None:
    """Return the kind of the error whose name stands at a place, and the name."""
    for kind, name in NAMES:
        if found := name.match(text, at):
            # A name can stand for what waiting mends and for what it does not; the words behind it tell.
            told = reason_of_words(text[found.end() :]) if kind == "transient" else None
            return told.kind if told else kind, found[0].lower().replace("_", "-")
    return None


def _after_leads(text: str) -> int:
    at = 0
    for _ in range(MAX_LEADS):
        lead = LEAD.match(text, at)
        if lead is None:
            break
        at = lead.end()
    return at


def _add(answer: Answer, reason: Reason) -> None:
    said = one_line([reason.said])
    wait = wait_of(reason.said) if reason.kind == "transient" else None
    cause = {"kind": reason.kind, "rule": f"agent-{reason.rule}", "evidence": said, "retry_after_seconds": wait}
    message = reason.kind.replace("_", " ") if reason.kind in SAID_BY_KIND else said
    answer.add(
        "agent",
        error_type=reason.kind,
        message=message,
        evidence=[span(reason.line)],
        cause={name: value for name, value in (cause | {"fix": _fix(reason)}).items() if value is not None},
    )


def _fix(reason: Reason) -> str | None:
    if reason.kind != "quota":
        return FIXES.get("untrusted" if "trust" in reason.said.lower() and reason.kind == "config" else reason.kind)
    written = _RESETS_AT.search(reason.said)
    at = int(written[1]) if written else 0
    if not 0 < at < YEAR_3000:
        return reset_of(reason.said)
    return f"wait until {datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}, when the limit resets, or raise it"


if __name__ == "__main__":
    main(extract)
