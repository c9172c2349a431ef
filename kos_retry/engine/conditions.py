"""Conditions of `--retry-on` and `--stop-on`: which failures are meant.

A condition is written `exit:1,75,100-110`, `signal:KILL`, `timeout`, `output:REGEX`, `category:NAME` or `cause:NAME`. All but the
regular expression are decided here; whether an expression matched is in the envelope, since running it on hostile
text needs a process that can be killed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from kos_retry.model import FailureEnvelope

_MAX_EXIT_CODE = 255
# The signals of POSIX and Linux, and the numbers that are the same everywhere.
_SIGNALS = frozenset(
    [
        "ABRT",
        "ALRM",
        "BUS",
        "CHLD",
        "CONT",
        "EMT",
        "FPE",
        "HUP",
        "ILL",
        "INFO",
        "INT",
        "IO",
        "IOT",
        "KILL",
        "PIPE",
        "POLL",
        "PROF",
        "PWR",
        "QUIT",
        "SEGV",
        "STKFLT",
        "STOP",
        "SYS",
        "TERM",
        "TRAP",
        "TSTP",
        "TTIN",
        "TTOU",
        "URG",
        "USR1",
        "USR2",
        "VTALRM",
        "WINCH",
        "XCPU",
        "XFSZ",
    ]
)
_NUMBERS = {
    "1": "HUP",
    "2": "INT",
    "3": "QUIT",
    "4": "ILL",
    "5": "TRAP",
    "6": "ABRT",
    "8": "FPE",
    "9": "KILL",
    "11": "SEGV",
    "13": "PIPE",
    "14": "ALRM",
    "15": "TERM",
}
_MAX_SIGNAL = 64
_FORMS = "exit:1,75,100-110, signal:KILL, timeout, output:REGEX, category:NAME or cause:NAME"


def check_condition(text: str) -> str:
    """Return ``text`` if it is a condition; raises ValueError with what is wrong if not."""
    kind, colon, value = text.partition(":")
    if text == "timeout":
        return text
    if kind not in ("exit", "signal", "output", "category", "cause") or not colon or not value:
        raise ValueError(f"'{text}' is not a condition such as {_FORMS}")
    if kind == "exit":
        _ranges(value)
    elif kind == "signal" and not _is_signal(value):
        raise ValueError(f"'{value}' is not the name or number of a signal")
    elif kind in ("category", "cause"):
        _check_name(kind, value)
    elif kind == "output":
        check_expression(value)
    return text


def check_expression(text: str) -> str:
    """Return ``text`` if it is a regular expression; raises ValueError with what is wrong if not."""
    import re

    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"'{text}' is not a regular expression: {error}") from error
    return text


def matches(condition: str, envelope: FailureEnvelope) -> bool:
    """Return whether a failure is one that a condition means."""
    kind, _, value = condition.partition(":")
    match kind:
        case "timeout":
            return envelope.category == "timeout"
        case "exit":
            # A signal is no exit code, although a shell reports it as one.
            return envelope.signal is None and any(low <= envelope.exit_code <= high for low, high in _ranges(value))
        case "signal":
            return envelope.signal is not None and _NUMBERS.get(value, value).upper() in _signal_names(envelope)
        case "category":
            return envelope.category == value
        case "cause":
            return envelope.cause is not None and envelope.cause.kind == value
        case _:
            return condition in envelope.output_matches


def first_match(conditions: Iterable[str], envelope: FailureEnvelope) -> str | None:
    """Return the first condition that means a failure, or None."""
    return next((c for c in conditions if matches(c, envelope)), None)


def _is_signal(value: str) -> bool:
    number = value.isascii() and value.isdigit() and len(value) < 3 and 1 <= int(value) <= _MAX_SIGNAL
    return number or value.upper().removeprefix("SIG") in _SIGNALS


def _signal_names(envelope: FailureEnvelope) -> set[str]:
    name = envelope.signal or ""
    return {name, name.removeprefix("SIG"), str(envelope.exit_code - 128)}


def _ranges(value: str) -> list[tuple[int, int]]:
    out = []
    for part in value.split(","):
        low, dash, high = part.strip().partition("-")
        high = high if dash else low
        if not (
            low.isascii()
            and low.isdigit()
            and high.isascii()
            and high.isdigit()
            and int(low) <= int(high) <= _MAX_EXIT_CODE
        ):
            raise ValueError(f"'{part.strip()}' is not an exit code from 0 to {_MAX_EXIT_CODE}, or a range of them")
        out.append((int(low), int(high)))
    return out


def _check_name(kind: str, value: str) -> None:
    from kos_retry.model import Category, CauseKind

    known = [str(member) for member in (Category if kind == "category" else CauseKind)]
    if value not in known:
        raise ValueError(f"'{value}' is not a {kind}; known are {', '.join(known)}")
