"""The small reader of `run`'s command line."""

from __future__ import annotations

import pytest

from kos_retry.cli.options import HelpAskedError, split_command_line
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
