"""The small parser of `run`'s command line, which reads it before anything is imported.

Typer reads the same table for help and completion, see `kos_retry.cli.app`; a property test holds the two equal.
"""

from __future__ import annotations

from kos_retry.errors import UsageError
from kos_retry.settings import BY_NAME, RUN_OPTIONS, Raw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


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
    long = word.startswith("--")
    option = BY_NAME.get(name) if long else None
    if option is None and long and negated != name and negated in BY_NAME and BY_NAME[negated].read is None:
        option = BY_NAME[negated]
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


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, [*BY_NAME, *(f"no-{o.name}" for o in RUN_OPTIONS if o.read is None)], 1)
    return f", did you mean --{close[0]}?" if close else ""
