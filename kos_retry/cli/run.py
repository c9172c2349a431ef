"""`kos-retry run`: wrap a command."""

from __future__ import annotations

import os

from kos_retry.adapters import config
from kos_retry.cli.options import split_command_line
from kos_retry.errors import UsageError
from kos_retry.settings import COMMAND_LINE, drop_nested_retries, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kos_retry.settings import Raw, RunSettings


def run(words: Sequence[str]) -> int:
    """Run the command line behind `run` and return the exit status.

    Raises UsageError, and HelpAskedError where help is asked for; the command is not started then.
    """
    raw, command = split_command_line(words)
    return run_command(raw, command)


def run_command(raw: Raw, command: Sequence[str]) -> int:
    """Run a command with options as they were written, and return the exit status."""
    settings = settings_of(raw, os.environ)
    if not command:
        raise UsageError("no command to run: kos-retry run [OPTIONS] -- COMMAND [ARG]...")
    if not command[0]:
        raise UsageError("the command to run is an empty word")
    from kos_retry import composition

    if settings.dry_run:
        from kos_retry.cli.plan import show_plan

        composition.chosen_extractors(settings)
        show_plan(settings, command)
        return 0
    return composition.run(command, settings).exit_code


def settings_of(raw: Raw, environment: Mapping[str, str]) -> RunSettings:
    """Return the settings of configuration, environment and command line together."""
    configuration = config.load(environment, _cwd(), _config_file(raw, environment))
    settings = resolve([*configuration.layers, (COMMAND_LINE, raw)], configuration.profiles)
    drop_nested_retries(settings, environment)
    return settings


def _config_file(raw: Raw, environment: Mapping[str, str]) -> str | None:
    """Return the file that the command line or the environment names."""
    given = raw.get("config") or environment.get(f"{config.PREFIX}CONFIG")
    return given if isinstance(given, str) else None


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        # The directory is gone; there is nothing to search in it.
        return ""
