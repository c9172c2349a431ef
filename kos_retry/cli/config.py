"""`kos-retry config`: the values that hold here, and a file to start from."""

from __future__ import annotations

import os

from kos_retry.adapters.config import OWN_FILE
from kos_retry.cli.output import write_text
from kos_retry.cli.plan import show_config
from kos_retry.cli.run import settings_of
from kos_retry.errors import InputError, UsageError
from kos_retry.settings import RUN_OPTIONS, Option, Raw

_WIDTH = 100


def show(config: str | None, profile: str | None, form: str) -> None:
    """Print every option's value with its source."""
    raw: Raw = {name: value for name, value in (("config", config), ("profile", profile)) if value is not None}
    try:
        settings = settings_of(raw, os.environ)
    except UsageError as error:
        # Here the values are the input; nothing was to be run.
        raise InputError(str(error)) from error
    show_config(settings, form)


def init(path: str | None) -> None:
    """Write a commented configuration file; one that is there already is an error."""
    target = path or OWN_FILE
    try:
        with open(target, "x", encoding="utf-8") as file:
            file.write(template())
    except OSError as error:
        raise InputError(f"{target}: {error.strerror}") from error
    write_text(f"wrote {target}\n")


def template() -> str:
    """Return a configuration file that holds every option's default as a comment."""
    lines = [
        "# Settings of kos-retry. Remove the # in front of a line to change a value; the command line wins over this file."
    ]
    section = ""
    for option in RUN_OPTIONS:
        if option.field in ("config", "dry_run"):
            continue
        if option.section != section:
            section = option.section
            lines += ["", f"# {section}"]
        lines += _wrapped(option.help)
        lines.append(f"# {option.name} = {_default(option)}")
    lines += [
        "",
        "# A profile of your own: kos-retry run --profile nightly",
        "# [profiles.nightly]",
        '# deadline = "2h"',
    ]
    return "\n".join(lines) + "\n"


def _default(option: Option) -> str:
    if option.many:
        return "[]"
    if option.read is None:
        return "true" if option.default else "false"
    return f'"{option.default}"' if option.default is not None else f'"" # {option.unset} where it is left out'


def _wrapped(text: str) -> list[str]:
    from textwrap import wrap

    return [f"# {line}" for line in wrap(text, _WIDTH)]
