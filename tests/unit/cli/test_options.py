"""The small reader of `run`'s command line."""

from __future__ import annotations

import pytest

from kos_retry.cli.options import RUN_OPTIONS, HelpAskedError, read_values, split_command_line
from kos_retry.errors import UsageError

_LINES = {
    "command-alone": ("make all", {}, ["make", "all"]),
    "value-apart": ("--timeout 5s make", {"timeout": "5s"}, ["make"]),
    "value-behind-an-equals-sign": ("--timeout=5s make", {"timeout": "5s"}, ["make"]),
    "empty-value": ("--session= make", {"session": ""}, ["make"]),
    "value-with-an-equals-sign": ("--session=a=b make", {"session": "a=b"}, ["make"]),
    "separator": ("--timeout 5s -- make -k", {"timeout": "5s"}, ["make", "-k"]),
    "separator-of-the-command": ("-- make -- -k", {}, ["make", "--", "-k"]),
    "separator-as-a-value": ("--session -- make", {"session": "--"}, ["make"]),
    "option-as-a-value": ("--session --timeout make", {"session": "--timeout"}, ["make"]),
    "options-of-the-command": ("make --timeout 5s --help", {}, ["make", "--timeout", "5s", "--help"]),
    "dash-is-a-command": ("- x", {}, ["-", "x"]),
    "last-one-counts": ("--timeout 1s --timeout 2s make", {"timeout": "2s"}, ["make"]),
    "repeatable": ("--mask-env A --mask-env=B make", {"mask_env": ["A", "B"]}, ["make"]),
    "flag": ("--zero-delta-fail-fast make", {"zero_delta_fail_fast": True}, ["make"]),
    "negated-flag": ("--no-zero-delta-fail-fast make", {"zero_delta_fail_fast": False}, ["make"]),
    "nothing": ("", {}, []),
}


@pytest.mark.parametrize(("line", "raw", "command"), _LINES.values(), ids=_LINES)
def test_command_line_is_split(line, raw, command):
    assert (raw, command) == split_command_line(line.split())


_REFUSED = {
    "unknown": ("--what make", "unknown option --what"),
    "misspelt": ("--time-out 5s make", "did you mean --timeout?"),
    "short": ("-t 5s make", "unknown option -t"),
    "abbreviated": ("--time 5s make", "unknown option --time"),
    "single-dash": ("-timeout 5s make", "unknown option -timeout"),
    "single-dash-flag": ("-xno-zero-delta-fail-fast make", "unknown option -xno-zero-delta-fail-fast"),
    "negated-value-option": ("--no-timeout make", "unknown option --no-timeout"),
    "negated-twice": ("--no-no-zero-delta-fail-fast make", "unknown option"),
    "flag-with-a-value": ("--zero-delta-fail-fast=yes make", "takes no value"),
    "missing-value": ("--timeout", "needs a value"),
    "other-case": ("--Timeout 5s make", "unknown option"),
}


@pytest.mark.parametrize(("line", "message"), _REFUSED.values(), ids=_REFUSED)
def test_wrong_option_is_refused_by_name(line, message):
    with pytest.raises(UsageError) as caught:
        split_command_line(line.split())
    assert message in str(caught.value)


def test_help_is_noticed_among_the_options():
    with pytest.raises(HelpAskedError):
        split_command_line(["--timeout", "5s", "--help", "make"])


_VALUES = {
    "duration": ("timeout", "1m30s", 90.0),
    "count": ("max_attempts", "0", 0),
    "factor": ("backoff", "1.5", 1.5),
    "size": ("max_prompt_bytes", "2KiB", 2048),
    "choice": ("jitter", "equal", "equal"),
    "report": ("report", ["json:a:b.json"], [("json", "a:b.json")]),
}


@pytest.mark.parametrize(("field", "given", "value"), _VALUES.values(), ids=_VALUES)
def test_value_is_read(field, given, value):
    assert value == getattr(read_values({field: given}), field)


_BAD_VALUES = {
    "negative-count": ("max_attempts", "-1"),
    "fraction-of-a-count": ("max_attempts", "1.5"),
    "digits-of-another-script": ("max_attempts", "٣"),
    "endless-count": ("max_attempts", "9" * 5000),
    "empty-count": ("max_attempts", ""),
    "zero-time-limit": ("timeout", "0s"),
    "shrinking-wait": ("backoff", "0.5"),
    "endless-factor": ("backoff", "inf"),
    "no-factor": ("backoff", "nan"),
    "unknown-choice": ("jitter", "some"),
    "zero-threshold": ("max_stagnant_attempts", "0"),
    "bad-session": ("session", "../x"),
    "empty-directory": ("state_dir", ""),
    "report-without-a-path": ("report", ["json:"]),
    "report-without-a-format": ("report", ["out.json"]),
    "unknown-report": ("report", ["yaml:out"]),
}


@pytest.mark.parametrize(("field", "given"), _BAD_VALUES.values(), ids=_BAD_VALUES)
def test_bad_value_is_refused_with_the_name_of_its_option(field, given):
    with pytest.raises(UsageError, match="option --" + field.replace("_", "-") + ": "):
        read_values({field: given})


def test_without_options_the_defaults_hold():
    settings = read_values({})
    assert {o.field: o.default for o in RUN_OPTIONS} == {o.field: getattr(settings, o.field) for o in RUN_OPTIONS}


def test_default_that_help_shows_is_the_default_that_holds():
    shown = {o.name: o.read(o.shown) for o in RUN_OPTIONS if o.shown and o.read and o.default is not None}
    assert {name: next(o.default for o in RUN_OPTIONS if o.name == name) for name in shown} == shown
