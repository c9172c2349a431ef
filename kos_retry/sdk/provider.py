"""What the errors of model providers mean: HTTP status codes, and the words that most of them use.

For a provider's own messages only. What a tool printed is not the provider's word, whatever it says.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# Codes by what they ask for; other codes from 500 on pass with time.
STATUS_KINDS = {
    401: "auth",
    402: "billing",
    403: "auth",
    404: "config",
    408: "transient",
    409: "transient",
    413: "context_window",
    425: "transient",
    429: "transient",
}

# What a human has to do where a provider does not say.
FIXES = {
    "auth": "log in again, or renew the API key",
    "billing": "settle the billing of the account",
    "config": "name a model that exists and that this account may use",
}

_WORDS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "quota",
        "usage-limit",
        (
            r"\busage.limit",
            r"\bhit your (?:\w{1,20} )?limit\b",
            r"\b(?:insufficient_)?quota\b",
            r"\b(?:hourly|daily|weekly|monthly|session|5-hour) limit\b",
            r"\blimit (?:reached|will reset)\b",
        ),
    ),
    (
        "billing",
        "credit",
        (
            r"\bcredit balance\b",
            r"\binsufficient (?:credits?|balance|funds)\b",
            r"\bpayment required\b",
            r"\bout of credits?\b",
            r"\bbilling\b",
            r"\bupgrade (?:to|your plan)\b",
        ),
    ),
    (
        "context_window",
        "too-long",
        (
            r"\b(?:prompt|input|request|conversation) (?:is )?too (?:long|large)\b",
            r"\bcontext (?:window|length|limit)\b",
            r"\bcontext_length",
            r"\bmaximum context\b",
            r"\btoo many (?:input )?tokens\b",
            r"\btoken count.{0,40}\bexceeds\b",
            r"\bexceeds? the (?:maximum|model).{0,40}\btokens?\b",
            r"\bran out of room\b",
            r"\boutput token (?:maximum|limit)\b",
        ),
    ),
    (
        "auth",
        "credential",
        (
            r"\bunauthori[sz]ed\b",
            r"\bunauthenticated\b",
            r"\bforbidden\b",
            r"\bauthentication (?:failed|required|error)",
            r"\bnot (?:logged|signed) in\b",
            r"\b(?:log|sign) in (?:again|first|to)\b",
            r"/login\b",
            r"\binvalid.{0,12}\b(?:api.?key|credentials?|(?:access |bearer |auth )?token)\b",
            r"\b(?:incorrect|missing|expired) api.?key\b",
            r"\bapi.?key (?:is )?(?:not|invalid|missing|expired|required)",
            r"\btoken (?:has |is )?(?:been )?(?:expired|revoked)\b",
            r"\bcould not refresh.{0,20}token\b",
        ),
    ),
    (
        "config",
        "model",
        (
            r"\bmodel\b.{0,80}\b(?:not (?:found|supported)|does not exist|no access|is unknown)\b",
            r"\bunknown model\b",
            r"\b(?:folder|workspace|directory) is not trusted\b|\bnot inside a trusted directory\b",
        ),
    ),
    ("environment", "disk-full", (r"\bno space left\b", r"\bENOSPC\b")),
    (
        "transient",
        "passing",
        (
            r"\brate.?limit",
            r"\btoo many requests\b",
            r"\boverloaded\b",
            r"\bat capacity\b",
            r"\bhigh demand\b",
            r"\b(?:service|temporarily|model is|currently) unavailable\b",
            r"\bbad gateway\b",
            r"\bgateway time-?out\b",
            r"\binternal (?:server )?error\b",
            r"\bserver error\b",
            r"\bstream (?:disconnected|closed|error)",
            r"\bconnection (?:error|reset|refused|closed|timed out)",
            r"\b(?:request|operation|read) timed out\b",
            r"\bfetch failed\b",
            r"\bsocket hang up\b",
            r"\bnetwork error\b",
            r"\berror sending request\b",
            r"\bE(?:CONNRESET|CONNREFUSED|TIMEDOUT|AI_AGAIN|PIPE)\b",
            r"\btry again (?:later|in a)\b",
        ),
    ),
    (
        "turn_limit",
        "turns",
        (
            r"\bmax(?:imum)?.{0,12} (?:turns|steps|iterations)\b",
            r"\b(?:turn|step|iteration|recursion) limit\b",
        ),
    ),
    ("loop_detected", "loop", (r"\bloop (?:was )?detected\b", r"\b(?:potential|doom|infinite) loop\b")),
)
_RULES = tuple((kind, rule, re.compile("|".join(words), re.IGNORECASE)) for kind, rule, words in _WORDS)
_STATUS = re.compile(
    r"(?i:\b(?:status|error|code|http(?:/\d(?:\.\d)?)?))[^\w\n]{0,4}(?i:code[^\w\n]{0,3})?([45]\d\d)\b"
    r"|\b([45]\d\d) (?=[A-Z{])|^([45]\d\d)\b"
)
_WAIT = re.compile(r"(?i)\b(?:try again|retry|resets?|available)(?: again| after| in|:){0,2} {0,2}(?=\d)")
_AMOUNT = re.compile(
    r"(?i)(\d{1,6}(?:\.\d{1,9})?) ?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])(?:,? (?:and )?)?"
)
_RESET = re.compile(r"(?i)\b(?:try again|(?:will )?resets?)(?: at| on| after)? ([^.\n;·]{2,60})")
_SECONDS = {"ms": 0.001, "mi": 60.0, "m": 60.0, "s": 1.0, "h": 3600.0, "d": 86400.0}
_MAX_CHARS = 4096


class Reason(NamedTuple):
    """What a provider's error means; the time to wait where it names one."""

    kind: str
    rule: str
    retry_after: float | None = None
    fix: str | None = None


def reason_of_words(message: str) -> Reason | None:
    """Return what a provider's message means, None where it is not known."""
    message = message[:_MAX_CHARS]
    kind, rule = next(((kind, rule) for kind, rule, words in _RULES if words.search(message)), (None, ""))
    status = _STATUS.search(message)
    number = next((int(group) for group in status.groups() if group), 0) if status else 0
    # A code says less than words, but more than words of what may pass.
    if number and (kind in (None, "transient")):
        kind, rule = kind_of_status(number) or kind, f"http-{number}"
    if kind is None:
        return None
    return Reason(kind, f"provider-{rule}", wait_of(message), reset_of(message) if kind == "quota" else None)


def kind_of_status(status: int) -> str | None:
    """Return what an HTTP status of a provider means."""
    return STATUS_KINDS.get(status, "transient" if 500 <= status < 600 else None)


def wait_of(message: str) -> float | None:
    """Return the seconds that a message asks to wait."""
    found = _WAIT.search(message[:_MAX_CHARS])
    if found is None:
        return None
    at, total = found.end(), 0.0
    while step := _AMOUNT.match(message, at):
        unit = step[2].lower()
        total += float(step[1]) * (0.001 if unit.startswith("milli") else _SECONDS.get(unit[:2], _SECONDS[unit[0]]))
        at = step.end()
    return round(total, 3) if at > found.end() else None


def reset_of(message: str) -> str:
    """Return what a human has to do about a limit, with the time at which it resets where the message names it."""
    found = _RESET.search(message[:_MAX_CHARS])
    when = f" ({found[1].strip()})" if found else ""
    return f"wait until the limit resets{when}, or raise it"
