"""The options of `run`, in one table, and the small parser that reads them before anything is imported.

Typer reads the same table for help and completion, see `kos_retry.cli.app`; a property test holds the two equal.
"""

from __future__ import annotations

from kos_retry import limits
from kos_retry.adapters.proposals import DELIVERIES
from kos_retry.errors import UsageError
from kos_retry.settings import RunSettings
from kos_retry.text.durations import format_duration, parse_duration, parse_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

REPORT_FORMATS = ("text", "json", "markdown")


class Option:
    """One option: its name on the command line, how its value is read, its default, and its help.

    ``read`` is None for a flag, which also has a ``--no-`` form. ``many`` options can be repeated.
    """

    __slots__ = ("default", "help", "many", "metavar", "name", "read", "section", "shown")

    def __init__(
        self,
        name: str,
        read: Callable[[str], Any] | None,
        default: Any,
        metavar: str,
        help: str,  # noqa: A002 - the word of the field
        *,
        section: str,
        shown: str = "",
        many: bool = False,
    ) -> None:
        self.name = name
        self.read = read
        self.default = default
        self.metavar = metavar
        self.help = help
        self.section = section
        self.shown = shown
        self.many = many

    @property
    def field(self) -> str:
        """Return the name of the attribute that holds the value."""
        return self.name.replace("-", "_")


def _integer(at_least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < at_least or len(text) > 18:
            raise ValueError(f"'{text}' is not a whole number of at least {at_least}")
        return int(text)

    return read


def _factor(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1 <= value <= 1e6:
        raise ValueError(f"'{text}' is not a number of at least 1")
    return value


def _timeout(text: str) -> float:
    seconds = parse_duration(text)
    if not seconds:
        raise ValueError("a time limit must be longer than 0s; leave the option out for none")
    return seconds


def _one_of(choices: Sequence[str]) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in choices:
            raise ValueError(f"'{text}' is not one of {', '.join(choices)}")
        return text

    return read


def _session(text: str) -> str:
    from kos_retry.adapters.state import check_session_id
    from kos_retry.errors import InputError

    try:
        return check_session_id(text)
    except InputError as error:
        raise ValueError(str(error)) from error


def _report(text: str) -> tuple[str, str]:
    form, colon, path = text.partition(":")
    if form not in REPORT_FORMATS or not colon or not path:
        raise ValueError(f"'{text}' is not FORMAT:PATH with a format of {', '.join(REPORT_FORMATS)}")
    return form, path


def _text(text: str) -> str:
    if not text:
        raise ValueError("the value is empty")
    return text


_TIME = "How often, how long"
_STALE = "Stagnation"
_NEXT = "The next attempt"
_KEEP = "Records"

RUN_OPTIONS: tuple[Option, ...] = (
    Option("max-attempts", _integer(0), limits.MAX_ATTEMPTS, "N", "Attempts in all; 0 lifts the limit.", section=_TIME),
    Option("timeout", _timeout, None, "DURATION", "Time limit of one attempt.", section=_TIME, shown="none"),
    Option(
        "kill-after",
        parse_duration,
        limits.KILL_AFTER_SECONDS,
        "DURATION",
        "Time between the request to end and the kill.",
        section=_TIME,
        shown=format_duration(limits.KILL_AFTER_SECONDS),
    ),
    Option(
        "delay",
        parse_duration,
        limits.DELAY_SECONDS,
        "DURATION",
        "Wait before the second attempt.",
        section=_TIME,
        shown=format_duration(limits.DELAY_SECONDS),
    ),
    Option(
        "backoff",
        _factor,
        limits.BACKOFF_FACTOR,
        "FACTOR",
        "Growth of the wait from attempt to attempt.",
        section=_TIME,
        shown="2",
    ),
    Option(
        "max-delay",
        parse_duration,
        limits.MAX_DELAY_SECONDS,
        "DURATION",
        "Longest wait.",
        section=_TIME,
        shown=format_duration(limits.MAX_DELAY_SECONDS),
    ),
    Option(
        "jitter",
        _one_of(("full", "equal", "none")),
        "full",
        "full|equal|none",
        "How much of the wait is random.",
        section=_TIME,
    ),
    Option(
        "seed", _integer(0), None, "N", "Makes the random part of the waits repeatable.", section=_TIME, shown="random"
    ),
    Option(
        "max-stagnant-attempts",
        _integer(1),
        limits.MAX_STAGNANT_ATTEMPTS,
        "N",
        "Attempts in a row without anything new before help is called for.",
        section=_STALE,
    ),
    Option(
        "zero-delta-fail-fast",
        None,
        True,
        "",
        "Ask for another approach as soon as one attempt brings nothing new.",
        section=_STALE,
    ),
    Option(
        "max-identical-signatures",
        _integer(1),
        limits.MAX_IDENTICAL_SIGNATURES,
        "N",
        "Sightings of one failure, with others between, before help is called for.",
        section=_STALE,
    ),
    Option(
        "guidance",
        _one_of(DELIVERIES),
        "none",
        "|".join(DELIVERIES),
        "How the next attempt is told what was learned.",
        section=_NEXT,
    ),
    Option(
        "max-prompt-bytes",
        parse_size,
        limits.MAX_PROMPT_BYTES,
        "SIZE",
        "Bound of the guidance in bytes.",
        section=_NEXT,
    ),
    Option(
        "max-prompt-tokens",
        _integer(0),
        limits.MAX_PROMPT_TOKENS,
        "N",
        "Bound of the guidance in tokens.",
        section=_NEXT,
    ),
    Option("session", _session, None, "ID", "Name of the session in the journal.", section=_KEEP, shown="a new one"),
    Option(
        "state-dir", _text, None, "DIR", "Where sessions are kept.", section=_KEEP, shown="the user's state directory"
    ),
    Option(
        "report",
        _report,
        [],
        "FORMAT:PATH",
        "Write a report (text, json, markdown) to a file; repeatable.",
        section=_KEEP,
        many=True,
    ),
    Option(
        "mask-env", _text, [], "NAME", "Treat a variable's value as a secret; repeatable.", section=_KEEP, many=True
    ),
)
_BY_NAME = {option.name: option for option in RUN_OPTIONS}

Raw = dict[str, "str | bool | list[str]"]


class HelpAskedError(Exception):
    """The command line asks for help instead of a run."""


def split_command_line(words: Sequence[str]) -> tuple[Raw, list[str]]:
    """Return the options as they were written, by field name, and the command with its arguments.

    Options end at ``--`` or at the first word that is none. Raises UsageError for an unknown option or a
    missing value, and HelpAskedError where ``--help`` stands among the options.
    """
    raw: Raw = {}
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] != "-":
        word = rest.pop(0)
        if word == "--":
            break
        if word == "--help":
            raise HelpAskedError
        _take(word, rest, raw)
    return raw, rest


def _take(word: str, rest: list[str], raw: Raw) -> None:
    """Read one option, and its value from ``rest`` where it has one."""
    name, equals, value = word[2:].partition("=")
    negated = name.removeprefix("no-")
    option = _BY_NAME.get(name) if word.startswith("--") else None
    if option is None and negated != name and negated in _BY_NAME and _BY_NAME[negated].read is None:
        option = _BY_NAME[negated]
    if option is None:
        raise UsageError(
            f"unknown option {word.partition('=')[0]}{_nearest(name)}; put -- before a command that starts with a dash"
        )
    if option.read is None:
        if equals:
            raise UsageError(f"option --{name} takes no value")
        raw[option.field] = name == option.name
        return
    if not equals:
        if not rest:
            raise UsageError(f"option --{name} needs a value ({option.metavar})")
        value = rest.pop(0)
    if option.many:
        already = raw.setdefault(option.field, [])
        if isinstance(already, list):
            already.append(value)
    else:
        raw[option.field] = value


def read_values(raw: Raw) -> RunSettings:
    """Return the options with their values read; raises UsageError that names the option and what is wrong."""
    values: dict[str, Any] = {}
    for option in RUN_OPTIONS:
        given = raw.get(option.field)
        if given is None or option.read is None:
            values[option.field] = option.default if given is None else given
            continue
        try:
            values[option.field] = (
                [option.read(v) for v in given] if isinstance(given, list) else option.read(str(given))
            )
        except ValueError as error:
            raise UsageError(f"option --{option.name}: {error}") from error
    return RunSettings(values)


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, [*_BY_NAME, *(f"no-{o.name}" for o in RUN_OPTIONS if o.read is None)], 1)
    return f", did you mean --{close[0]}?" if close else ""
