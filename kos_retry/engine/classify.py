"""Category and cause of a failure, from conventions that no tool owns.

Known here: POSIX error names and their texts, HTTP status codes, sysexits and shell exit codes. What a tool
or a vendor means by its words comes from its extractor, as the cause of a finding.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kos_retry.model import Category, Cause, CauseKind, FailureEnvelope, Finding, Retryable
from kos_retry.model.finding import TRUST, FindingKind

# Conventions of the shell, of sysexits.h and of GNU timeout.
EXIT_TEMPFAIL = 75
EXIT_TIMED_OUT = 124
EXIT_CANNOT_EXECUTE = 126
EXIT_NOT_FOUND = 127
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


# A line that reports what a check expected speaks of the product, not of what happened to the command.
_ASSERTION = re.compile(
    r"(?i:\bassert|\bexpect(?:ed|s)?\b|\bto (?:equal|be|have|match)\b|\btest_\w|\bshould\b)|^E {2,}|\bFAIL(?:ED)?\b|^\s*[-+|>] "
    # The title of a test says what it is about.
    r"|^\W*(?:not ok\b|[✗✘✕✖×●])"
)

_TRANSIENT_TEXT = (
    (
        "connection-reset",
        r"\bconnection reset\b|\bECONNRESET\b|\bconnection (?:was )?closed unexpectedly\b|\bsocket hang up\b",
    ),
    ("connection-refused", r"\bconnection refused\b|\bECONNREFUSED\b"),
    (
        "connection-timeout",
        r"\bconnection timed out\b|\bETIMEDOUT\b|\bECONNABORTED\b|\b(?:connect|read|handshake) timed? ?out\b",
    ),
    ("unreachable", r"\bnetwork is unreachable\b|\bno route to host\b|\bE(?:NET|HOST)UNREACH\b"),
    (
        "name-resolution",
        r"\btemporary failure in name resolution\b|\bEAI_AGAIN\b|\bcould not resolve host\b|\bname or service not known\b",
    ),
    ("address-in-use", r"\baddress already in use\b|\bEADDRINUSE\b"),
    ("unavailable", r"\bresource temporarily unavailable\b|\bEAGAIN\b|\btext file busy\b|\bETXTBSY\b"),
    ("rate-limit", r"\btoo many requests\b|\brate.?limit(?:ed|_error)?\b|\boverloaded(?:_error)?\b"),
    ("server-error", r"\bservice unavailable\b|\bbad gateway\b|\bgateway time-?out\b"),
)
_LASTING_TEXT = (
    (CauseKind.ENVIRONMENT, "disk-full", r"\bno space left on device\b|\bENOSPC\b|\bdisk quota exceeded\b|\bEDQUOT\b", "free disk space, or give the command another disk"),
    (CauseKind.ENVIRONMENT, "read-only", r"\bread-only file ?system\b|\bEROFS\b", "make the file system writable, or write elsewhere"),
    (CauseKind.RESOURCE, "out-of-memory", r"\bcannot allocate memory\b|\bout of memory\b|\bENOMEM\b", "give the command more memory, or let it use less"),
    (CauseKind.RESOURCE, "too-many-files", r"\btoo many open files\b|\bE[MN]FILE\b", "raise the limit of open files"),
    (CauseKind.AUTH, "unauthorized", r"\b401\b.{0,24}\bunauthorized\b|\bauthentication (?:failed|required)\b|\binvalid (?:api key|credentials)\b", "check the credential: log in again, or renew the token or API key"),
    (CauseKind.AUTH, "forbidden", r"\b403\b.{0,24}\b(?:forbidden|permission)|\borganization has disabled access\b", "ask an administrator to give this credential access"),
    (CauseKind.PERMISSION_DENIED, "permission", r"\bpermission denied\b|\bEACCES\b|\bEPERM\b|\boperation not permitted\b", "grant the permission that was denied, or run as a user who has it"),
    (CauseKind.BILLING, "credit", r"\bcredit balance is too low\b|\bpayment required\b", "add credit or fix the billing of the plan"),
    (CauseKind.CONTEXT_WINDOW, "too-long", r"\bprompt is too long\b|\bcontext (?:window|length) exceeded\b", None),
)  # fmt: skip
_HTTP_STATUS = re.compile(
    r"(?i)\b(?:http(?:/\d(?:\.\d)?)?|status(?: code)?|error|api error|response|returned)\b[\W_]{1,4}([45]\d\d)\b"
)
_HTTP_TRANSIENT = {408, 425, 429, 502, 503, 504, 529}
_CANCELLED = re.compile(r"(?i)context cancell?ed")
_RETRY_AFTER = re.compile(
    r"(?i)\b(?:retry[- ]after|(?:try|retry)(?: again)? (?:in|after))\b[:= ]{1,3}(\d{1,6}(?:\.\d{1,3})?) ?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?)?\b"
)
_TEXT_RULES = tuple((CauseKind.TRANSIENT, rule, re.compile("(?i)" + text), None) for rule, text in _TRANSIENT_TEXT)
_RULES = tuple((kind, rule, re.compile("(?i)" + text), fix) for kind, rule, text, fix in _LASTING_TEXT) + _TEXT_RULES


def category(
    *,
    exit_code: int,
    signal: str | None,
    timed_out: bool,
    cancelled: bool,
    constraints: Sequence[str],
    findings: Sequence[Finding],
    checks_failed: bool = False,
    told_failed: bool | None = None,
) -> Category:
    """Return the category of an outcome.

    A constraint that a caller names is a violation (as in the original); one that an extractor read from a
    test or a check is a verification that failed. ``told_failed`` is what an agent's transcript says, None where there is none: an
    agent failed at its work, whatever its tests say.
    """
    if cancelled or (exit_code == EXIT_INTERRUPTED and signal is None):
        return Category.CONTEXT_CANCELLED
    if timed_out or (exit_code == EXIT_TIMED_OUT and signal is None):
        return Category.TIMEOUT
    if checks_failed:
        return Category.VERIFICATION_FAILED
    if constraints:
        return Category.CONSTRAINT_VIOLATION
    if exit_code == 0 and signal is None:
        return Category.EXECUTION_FAILURE if told_failed else Category.SUCCESS
    if told_failed is None and any(f.kind in (FindingKind.TEST, FindingKind.POLICY) for f in findings):
        return Category.VERIFICATION_FAILED
    return Category.EXECUTION_FAILURE


def tells_of_cancelling(envelope: FailureEnvelope) -> bool:
    """Return whether an envelope without a category speaks of a run that was ended from outside.

    The words are the ones that the original writes for a cancelled context.
    """
    return envelope.exit_code in (EXIT_INTERRUPTED, EXIT_TERMINATED) or bool(
        _CANCELLED.fullmatch(envelope.error_message.strip())
    )


def cause(
    *, exit_code: int, signal: str | None, command: str, lines: Iterable[str], findings: Sequence[Finding]
) -> Cause | None:
    """Return why it failed, or None where nothing says so.

    What an extractor read from the tool's own words comes first, then the exit code's convention, then the
    texts of the system in lines that do not merely report what a check expected.
    """
    found = _from_findings(findings) or _from_exit(exit_code, signal, command)
    if found is not None:
        return found
    if any(f.kind is FindingKind.TEST for f in findings):
        return None
    return cause_of_text(lines)


def cause_of_text(lines: Iterable[str]) -> Cause | None:
    """Return the cause that the words of the system or of HTTP name in ``lines``, or None."""
    spoken = [line for line in lines if not _ASSERTION.search(line)]
    found = next((c for line in spoken if (c := _from_line(line))), None)
    if found is None or found.kind is not CauseKind.TRANSIENT:
        return found
    waits = [seconds for line in spoken if (seconds := _retry_after(line)) is not None]
    return found.replace(retry_after_seconds=max(waits)) if waits else found


def _from_findings(findings: Sequence[Finding]) -> Cause | None:
    caused = [f for f in findings if f.cause is not None]
    best = min(caused, key=lambda f: TRUST[f.confidence], default=None)
    return best.cause if best else None


def _from_exit(exit_code: int, signal: str | None, command: str) -> Cause | None:
    if signal is not None:
        return None
    if exit_code == EXIT_TEMPFAIL:
        return Cause(
            kind=CauseKind.TRANSIENT, retryable=Retryable.YES, rule="exit-75", evidence="exit code 75 asks to try again"
        )
    if exit_code == EXIT_NOT_FOUND:
        fix = f"install {command or 'the command'}, or correct its name or PATH: it was not found"
        return Cause(
            kind=CauseKind.COMMAND_NOT_FOUND, retryable=Retryable.NO, rule="exit-127", evidence="exit code 127", fix=fix
        )
    if exit_code == EXIT_CANNOT_EXECUTE:
        fix = f"make {command or 'the command'} executable for this user and this machine"
        return Cause(
            kind=CauseKind.PERMISSION_DENIED, retryable=Retryable.NO, rule="exit-126", evidence="exit code 126", fix=fix
        )
    return None


def _from_line(line: str) -> Cause | None:
    for kind, rule, pattern, fix in _RULES:
        if match := pattern.search(line):
            return Cause(kind=CauseKind(kind), rule=f"text-{rule}", evidence=_around(line, match), fix=fix)
    if match := _HTTP_STATUS.search(line):
        return _from_status(int(match[1]), _around(line, match))
    return None


def _from_status(status: int, evidence: str) -> Cause | None:
    if status in _HTTP_TRANSIENT:
        return Cause(kind=CauseKind.TRANSIENT, retryable=Retryable.YES, rule=f"http-{status}", evidence=evidence)
    if status == 401:
        return Cause(
            kind=CauseKind.AUTH,
            retryable=Retryable.NO,
            rule="http-401",
            evidence=evidence,
            fix="check the credential: log in again, or renew the token or API key",
        )
    return None


def _around(line: str, match: re.Match[str], reach: int = 80) -> str:
    return line[max(0, match.start() - reach) : match.end() + reach].strip()


def _retry_after(line: str) -> float | None:
    match = _RETRY_AFTER.search(line)
    if match is None:
        return None
    unit = (match[2] or "s").lower()
    factor = 0.001 if unit.startswith(("ms", "milli")) else 60 if unit.startswith("m") else 1
    return float(match[1]) * factor
