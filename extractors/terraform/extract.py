"""Errors of Terraform and OpenTofu: a summary, the place, and what is wrong, in a box where there is colour."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_NAME_BYTES = 200
MAX_MESSAGE_BYTES = 1024
MAX_BODY_LINES = 80
MAX_KEPT = 1000

TOP = "\u2577"
MARGIN = "\u2502"
BOTTOM = "\u2575"
_TOOLS = frozenset({"terraform", "tofu", "terragrunt"})

_ERROR = re.compile(r"^Error: (\S.{0,2000})$")
_HEADING = re.compile(r"^(?:(?:Error|Warning): |(?:Failure|Success)! )")
# How a file of tests goes on.
_PROGRESS = re.compile(r"\.{3} (?:in progress|tearing down|pass|fail|skip)$")
_PLACE = re.compile(r"^  on (?P<path>.{1,400}?) line (?P<line>\d{1,9})(?:, in (?P<block>.{1,300}?))?:$")
_RESOURCE = re.compile(r"^  with (\S.{0,300}?),$")
_RUN = re.compile(r"^run \"([^\"]{1,200})\"$")
_LOCK_FACT = re.compile(r"^ {1,4}(?:ID|Path|Operation|Who|Version|Created|Info):")

_LOCKED = re.compile(
    r"(?i)(?:acquiring|locking) the (?:state|.{0,40} state) lock|state (?:is )?(?:already )?locked|Error locking state"
)
_NETWORK = re.compile(
    r"(?i)connection (?:refused|reset)|no such host|i/o timeout|TLS handshake timeout|context deadline exceeded|Client\.Timeout exceeded"
    r"|network is unreachable|no route to host|unexpected EOF|\b(?:429|502|503|504)\b.{0,30}(?:Too Many|Bad Gateway|Unavailable|Time-?out)"
    r"|StatusCode: (?:429|50[0234])\b|Throttling|RequestLimitExceeded|Too Many Requests|rate exceeded|try again later"
)
_LOGIN = re.compile(
    r"(?i)No valid credential|could not find default credentials|ExpiredToken|InvalidClientTokenId|UnrecognizedClient|AuthFailure"
    r"|authentication failed|StatusCode: 401\b|\b401 Unauthorized|unable to build authorizer|Required token could not be found|invalid_grant"
)
_FORBIDDEN = re.compile(
    r"AccessDenied|UnauthorizedOperation|AuthorizationFailed|StatusCode: 403\b|\b403 Forbidden|not authorized to perform"
)
# What an `init` mends.
_UNPREPARED = re.compile(
    r"(?i)^(?:Inconsistent dependency lock file|Module not installed|Required plugins are not installed|Backend initialization required"
    r"|Could not load plugin|Missing required provider|Backend configuration changed|Provider requirements cannot be satisfied)"
)
# What the command line or the configuration alone decides, though no place is told.
_DECIDED = re.compile(
    r"(?i)^(?:Failed to parse command-line flags|Too many command line arguments|Invalid |Unsupported |Missing |Duplicate |Unreadable |No configuration files"
    r"|No value for|Value for undeclared|Reference to |Cycle:|Failed to query available provider|Unknown |Module source has changed|Argument or block)"
)
_FIXES = {
    "auth": "give it credentials that are valid",
    "permission_denied": "grant these credentials what they may not do",
    "transient": None,
}


@dataclass(slots=True)
class Fault:
    """One error: its summary, and the lines below it."""

    summary: str
    first: Line
    last: Line
    boxed: bool
    body: list[str] = field(default_factory=list)
    path: str | None = None
    line: int | None = None
    block: str = ""
    resource: str = ""

    def take(self, text: str, line: Line) -> None:
        """Take the next line below the summary."""
        if place := _PLACE.match(text):
            if self.path is None:
                self.path, self.line, self.block = place["path"], int(place["line"]), place["block"] or ""
        elif resource := _RESOURCE.match(text):
            self.resource = resource[1]
        elif not _LOCK_FACT.match(text):
            self.body.append(text)
        if text:
            self.last = line

    def prose(self) -> str:
        """Return the first paragraph that is no source, with the list below it."""
        said: list[str] = []
        for text in self.body:
            if text[:1].strip() and text != "Lock Info:" and not _PROGRESS.search(text):
                said.append(text)
            elif said and text.startswith("  - "):
                said.append(text.strip())
            elif said:
                break
        return " ".join(said)


def extract(request: Request) -> Answer:
    """Answer with the errors of all streams, each once."""
    answer = Answer()
    seen: set[tuple[object, ...]] = set()
    known = any(word.rpartition("/")[2] in _TOOLS for word in request.argv)
    faults = [*_faults(request)]
    known = known or any(fault.boxed or fault.path for fault in faults)
    for fault in faults:
        message = _message(fault)
        key = (message, fault.path, fault.line)
        if key not in seen and len(answer.findings) < request.max_findings:
            seen.add(key)
            _add(answer, request, fault, message, sure=known)
    answer.drop_mixed_transience()
    return answer


def _faults(request: Request) -> Iterator[Fault]:
    fault: Fault | None = None
    kept = 0
    blank = True
    for line in request.lines():
        boxed = line.text.startswith(MARGIN)
        text = line.text[1:].removeprefix(" ").rstrip() if boxed else line.text.rstrip()
        if fault is not None and _ends(fault, text, line, boxed=boxed, blank=blank):
            yield fault
            fault = None
        if fault is not None:
            fault.take(text, line)
        elif (boxed or blank) and kept < MAX_KEPT and (error := _ERROR.match(text)):
            fault = Fault(error[1], line, line, boxed)
            kept += 1
        blank = not text or text in (TOP, BOTTOM)
    if fault is not None:
        yield fault


def _ends(fault: Fault, text: str, line: Line, *, boxed: bool, blank: bool) -> bool:
    if line.source != fault.first.source or len(fault.body) >= MAX_BODY_LINES:
        return True
    if fault.boxed:
        return not boxed
    # Below a summary that stands alone there is a blank line, or it is somebody else's.
    first = not fault.body and fault.path is None and not fault.resource
    return (blank and _HEADING.match(text) is not None) or (first and bool(text) and not blank)


def _message(fault: Fault) -> str:
    prose = fault.prose()
    about = f"{fault.resource}: " if fault.resource else ""
    return f"{about}{fault.summary}: {prose}" if prose else f"{about}{fault.summary}"


def _cause(fault: Fault) -> tuple[str, str | None] | None:
    """Return the kind of the cause, and what mends it."""
    text = f"{fault.summary} {' '.join(fault.body)}"
    if _LOCKED.search(fault.summary) or _NETWORK.search(text):
        return "transient", None
    for kind, words in (("auth", _LOGIN), ("permission_denied", _FORBIDDEN)):
        if words.search(text):
            return kind, _FIXES[kind]
    if _UNPREPARED.search(fault.summary):
        return "config", "initialise the directory first"
    # With a resource named it may be the provider that refused something.
    if (fault.path and not fault.resource) or _DECIDED.search(fault.summary):
        return "deterministic", f"correct {fault.path or 'the configuration or the command line'}"
    return None


def _add(answer: Answer, request: Request, fault: Fault, message: str, *, sure: bool) -> None:
    known = _cause(fault)
    cause = None
    if known:
        evidence = cut_bytes(f"Error: {fault.summary}", 500)
        cause = {"kind": known[0], "rule": f"terraform-{known[0].replace('_', '-')}", "evidence": evidence}
        if known[1]:
            cause["fix"] = known[1]
    run = _RUN.match(fault.block)
    kind = "infrastructure" if known and known[0] in ("transient", "auth") else "diagnostic"
    answer.add(
        "test" if run else kind,
        test_id=f"{fault.path}::{run[1]}" if run else None,
        code=cut_bytes(fault.summary, MAX_NAME_BYTES),
        message=cut_bytes(message, MAX_MESSAGE_BYTES),
        path=request.relative(fault.path) if fault.path else None,
        line=fault.line,
        evidence=[span(fault.first, fault.last)],
        confidence="likely" if sure else "guess",
        cause=cause,
    )


if __name__ == "__main__":
    main(extract)
