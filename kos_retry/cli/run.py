"""`kos-retry run`: wrap a command."""

from __future__ import annotations

import os

from kos_retry.adapters import config
from kos_retry.cli.options import split_command_line
from kos_retry.errors import UnknownNameError, UsageError
from kos_retry.settings import COMMAND_LINE, drop_nested_retries, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kos_retry.adapters.config import Configuration
    from kos_retry.outcome import Past
    from kos_retry.settings import Raw, RunSettings


def run(words: Sequence[str]) -> int:
    """Run the command line behind `run` and return the exit status.

    Raises UsageError, and HelpAskedError where help is asked for; the command is not started then.
    """
    raw, command = split_command_line(words)
    return run_command(raw, command)


def run_command(raw: Raw, command: Sequence[str], past: Past | None = None) -> int:
    """Run a command with options as they were written, and return the exit status; ``past`` is what a resumed run has behind it."""
    settings = settings_of(raw, os.environ)
    if not command:
        raise UsageError("no command to run: kos-retry run [OPTIONS] -- COMMAND [ARG]...")
    if not command[0]:
        raise UsageError("the command to run is an empty word")
    _check_transcript(settings)
    if settings.dry_run:
        from kos_retry.cli.plan import show_plan

        show_plan(settings, command)
        return 0
    from kos_retry import composition

    return composition.run(command, settings, raw=raw, past=past).exit_code


def _check_transcript(settings: RunSettings) -> None:
    """Raise UsageError for a format that no extractor reads."""
    if settings.transcript is None:
        return
    from kos_retry.adapters.extraction.transcripts import check_format

    try:
        check_format(settings.transcript)
    except UnknownNameError as error:
        raise UsageError(f"option --{error}") from error


def settings_of(raw: Raw, environment: Mapping[str, str]) -> RunSettings:
    """Return the settings of configuration, environment and command line together.

    Raises UsageError, and InputError for a file that one of them names and that is not what it should be.
    """
    configuration = configuration_of(raw, environment)
    settings = resolve([*configuration.layers, (COMMAND_LINE, raw)], configuration.profiles)
    settings.token_rules = configuration.token_rules
    drop_nested_retries(settings, environment)
    if settings.matcher:
        from kos_retry.adapters.matchers import load_matchers

        settings.matchers = load_matchers(settings.matcher)
    if settings.extractor:
        from kos_retry.adapters.extraction.extract import chosen

        # They are read before the command starts: what that does to their files must not change them.
        settings.extractors = chosen(settings.extractor)
    return settings


def configuration_of(raw: Raw, environment: Mapping[str, str]) -> Configuration:
    """Return what configuration files and environment say here."""
    return config.load(environment, _cwd(), _config_file(raw, environment))


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
