"""The two readers of `run`'s command line agree on any one."""

from __future__ import annotations

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from kos_retry.cli import app, run
from kos_retry.cli.options import HelpAskedError, split_command_line
from kos_retry.errors import UsageError
from kos_retry.settings import RUN_OPTIONS

_REFUSED = "refused"
_NAMES = [f"--{o.name}" for o in RUN_OPTIONS]
_VALUES = ["5s", "3", "", "-", "--", "-1", "a=b", "--timeout", "=", "json:out", "é", "a b"]
_MISSHAPEN = [
    "--no-timeout",
    "--no-zero-delta-fail-fast",
    "--no-no-zero-delta-fail-fast",
    "-xno-zero-delta-fail-fast",
    "-no-zero-delta-fail-fast",
    "--zero-delta",
    "--max",
    "--unknown",
    "-t",
    "-5",
    "---timeout",
    "--Timeout",
    "--=x",
    "--zero_delta_fail_fast",
]
_words = st.one_of(
    st.sampled_from(_NAMES),
    st.tuples(st.sampled_from(_NAMES + _MISSHAPEN), st.sampled_from(_VALUES)).map("=".join),
    st.sampled_from(_MISSHAPEN),
    st.sampled_from(_VALUES),
    st.sampled_from(["make", "run", "all"]),
)
# Options with a value each, so that long command lines that are right come up often.
_options = st.one_of(
    st.tuples(st.sampled_from([f"--{o.name}" for o in RUN_OPTIONS if o.read]), st.sampled_from(_VALUES)).map(list),
    st.sampled_from([f"--{o.name}" for o in RUN_OPTIONS if not o.read]).map(lambda name: [name]),
)
_right = st.tuples(
    st.lists(_options, max_size=5),
    st.sampled_from([[], ["--"]]),
    st.lists(st.sampled_from(["make", "-k", "--", "--x"]), max_size=3),
).map(lambda parts: [word for option in parts[0] for word in option] + parts[1] + parts[2])
_lines = st.one_of(st.lists(_words, max_size=6), _right)


def _as_the_small_reader_has_it(words):
    try:
        raw, command = split_command_line(words)
    except (UsageError, HelpAskedError):
        return _REFUSED
    return (raw, command) if command else _REFUSED


def _as_typer_has_it(words):
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "run_command", lambda raw, command: seen.append((raw, list(command))) or 0)
        try:
            _COMMAND.main(["run", *words], standalone_mode=False)
        except (UsageError, typer._click.exceptions.UsageError):
            return _REFUSED
    # Typer takes a line that asks for help, and one without a command; the small reader leaves those to others.
    return seen[0] if seen and seen[0][1] else _REFUSED


_COMMAND = typer.main.get_command(app.app)


@given(_lines)
def test_both_readers_agree(words):
    assert _as_the_small_reader_has_it(words) == _as_typer_has_it(words)
