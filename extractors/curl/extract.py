"""Transfers that curl or wget could not make, and what their codes say of trying again."""

from __future__ import annotations

import re
from typing import Any

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_NAME_BYTES = 200

_CURL = re.compile(r"^.{0,200}?\bcurl: \((\d{1,3})\) (.{0,1000})$")
_WGET = re.compile(
    r"^(?:wget: (?P<own>unable to resolve host address .{1,200}|.{0,200}(?:certificate|can't connect|bad address|timed out).{0,200})"
    r"|[\d-]{8,10} [\d:]{5,8} ERROR (?P<status>\d{3}): (?P<said>.{1,100}?)\.?"
    r"|Connecting to (?P<host>.{1,300}?)\.{3} failed: (?P<failed>(?:Connection|Network|No route) .{1,100}?)\.)$"
)
_STATUS = re.compile(r"returned error: (\d{3})\b")
_RETRY_AFTER = re.compile(r"^(?:< )?retry-after: (\d{1,9})$", re.IGNORECASE)
# How long it took differs every time.
_AFTER = re.compile(r" after \d{1,9} (?:ms|milliseconds)")

# Codes of curl's manual: what a network or a server does, in contrast to what was asked for.
TRANSIENT = frozenset({5, 6, 7, 8, 12, 16, 18, 28, 35, 52, 55, 56, 79, 92, 95})
CERTIFICATE = frozenset({51, 53, 54, 58, 59, 60, 66, 77, 80, 82, 83, 90, 91})
LOGIN = frozenset({9, 67, 94})
LOCAL = frozenset({23, 27})
TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})


def extract(request: Request) -> Answer:
    """Answer with each transfer that failed; what the server asked to wait goes with it."""
    answer = Answer()
    seen: set[str] = set()
    wait: int | None = None
    for line in request.lines():
        text = line.text.strip()
        if header := _RETRY_AFTER.match(text):
            wait = int(header[1])
        elif curl := _CURL.match(text) if "curl: (" in text else None:
            message = _AFTER.sub("", curl[2])
            status = _STATUS.search(message)
            cause = _status(int(status[1])) if status else _code(int(curl[1]))
            _add(answer, f"curl: ({int(curl[1])}) {message}", cause, line, seen, wait)
            wait = None
        elif wget := _WGET.match(text):
            _add(answer, *_wget(wget), line, seen, wait)
        if len(answer.findings) >= request.max_findings:
            break
    return answer


def _wget(said: re.Match[str]) -> tuple[str, tuple[str, str] | None]:
    if said["status"]:
        return f"wget: ERROR {said['status']}: {said['said']}", _status(int(said["status"]))
    if said["failed"]:
        return f"wget: {said['host']}: {said['failed']}", ("transient", "connect")
    if "certificate" in said["own"]:
        return f"wget: {said['own']}", ("config", "certificate")
    return f"wget: {said['own']}", ("transient", "connect")


def _code(code: int) -> tuple[str, str] | None:
    """Return cause and rule of one of curl's exit codes."""
    if code in TRANSIENT:
        return "transient", f"exit-{code}"
    if code in CERTIFICATE:
        return "config", "certificate"
    if code in LOGIN:
        return "auth", "login"
    return None if code in LOCAL else ("deterministic", f"exit-{code}")


def _status(status: int) -> tuple[str, str] | None:
    if status in TRANSIENT_STATUS:
        return "transient", f"http-{status}"
    if status in (401, 403, 407):
        return "auth", f"http-{status}"
    return ("deterministic", f"http-{status}") if 400 <= status < 500 else None


def _add(
    answer: Answer, message: str, known: tuple[str, str] | None, line: Line, seen: set[str], wait: int | None
) -> None:
    if message in seen:
        return
    seen.add(message)
    cause: dict[str, Any] | None = None
    if known:
        cause = {"kind": known[0], "rule": f"transfer-{known[1]}", "evidence": cut_bytes(line.text.strip(), 500)}
        if wait is not None and known[0] == "transient":
            cause["retry_after_seconds"] = wait
        if known[0] in _FIXES:
            cause["fix"] = _FIXES[known[0]]
    name = cut_bytes(message, MAX_NAME_BYTES)
    answer.add("infrastructure", code=name, message=message, evidence=[span(line)], cause=cause)


_FIXES = {
    "auth": "check the credential that is sent, and what it may do",
    "config": "make the server's certificate one that is trusted here",
    "deterministic": "correct the address or the options of the transfer",
}


if __name__ == "__main__":
    main(extract)
