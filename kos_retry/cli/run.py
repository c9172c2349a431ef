"""`kos-retry run`: wrap a command."""

from __future__ import annotations

from kos_retry.cli.options import read_values, split_command_line
from kos_retry.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def run(words: Sequence[str]) -> int:
    """Run the command line behind `run` and return the exit status.

    Raises UsageError, and HelpAskedError where help is asked for; the command is not started then.
    """
    raw, command = split_command_line(words)
    options = read_values(raw)
    if not command:
        raise UsageError("no command to run: kos-retry run [OPTIONS] -- COMMAND [ARG]...")
    if not command[0]:
        raise UsageError("the command to run is an empty word")
    from kos_retry import composition

    return composition.run(command, options).exit_code
