"""Success is more than exit code 0."""

from __future__ import annotations

import os
import sys

import pytest

from kos_retry.adapters import checks, expressions
from kos_retry.adapters.checks import SuccessChecks
from kos_retry.adapters.process.runner import RunnerOptions
from kos_retry.adapters.shell import Shell, beside
from kos_retry.outcome import Captured, Outcome, Proposal
from kos_retry.settings import Check


class _Attempt:
    """An attempt that has ended, and what it printed."""

    def __init__(self, stdout: bytes | Captured = b"", stderr: bytes | Captured = b"") -> None:
        self._kept = tuple(Captured(s) if isinstance(s, bytes) else s for s in (stdout, stderr))

    def captured(self):
        return self._kept


@pytest.fixture
def checked(signal_pipe):
    """Return a function that checks an attempt and returns its outcome."""

    def check(attempt=None, *, verify=(), require=(), forbid=(), environment=None, timeout=None, warn=pytest.fail):
        subject = SuccessChecks(
            verify=[Check(*c) for c in verify],
            require=[Check(*c) for c in require],
            forbid=[Check(*c) for c in forbid],
            shell=Shell(signal_pipe, RunnerOptions(timeout_seconds=timeout, grace_seconds=0.2)),
            warn=warn,
        )
        outcome = Outcome(0, 0.0)
        proposal = Proposal(1, ["x"], {"PATH": os.environ["PATH"], **(environment or {})})
        subject.check(proposal, attempt or _Attempt(), outcome)
        return outcome

    return check


def _broken(outcome):
    return {b.name: b.detail for b in outcome.broken}


_SAYS = _Attempt(b"step 1\ndone: 3 tests\n", b"warning: slow\n")
_ON_OUTPUT = {
    "nothing-asked-for": ({}, {}),
    "required-and-there": ({"require": [("end", "^done")]}, {}),
    "required-on-the-other-stream": ({"require": [("w", "^warning")]}, {}),
    "required-and-missing": ({"require": [("end", "^DONE")]}, {"end": "the output does not contain what it must"}),
    "forbidden-and-missing": ({"forbid": [("f", "FAIL")]}, {}),
    "forbidden-and-there": ({"forbid": [("f", "slow$")]}, {"f": "the output contains what it must not"}),
    "required-and-forbidden": (
        {"require": [("a", "step")], "forbid": [("b", "step")]},
        {"b": "the output contains what it must not"},
    ),
    "several": (
        {"require": [("a", "x"), ("b", "y")], "forbid": [("c", "done")]},
        {
            "a": "the output does not contain what it must",
            "b": "the output does not contain what it must",
            "c": "the output contains what it must not",
        },
    ),
    "blank-line-between-lines-that-is-not-there": ({"forbid": [("blank", r"\n\n")]}, {}),
    "end-of-the-output": ({"require": [("end", r"slow\n\Z")]}, {}),
}


@pytest.mark.parametrize(("given", "broken"), _ON_OUTPUT.values(), ids=_ON_OUTPUT)
def test_output_is_checked(checked, given, broken):
    assert broken == _broken(checked(_SAYS, **given))


def test_colour_and_progress_do_not_hide_the_words(checked):
    attempt = _Attempt(b"10%\r20%\r\x1b[32mdone\x1b[0m: ok\r\n")
    assert {} == _broken(checked(attempt, require=[("end", "^done: ok$")], forbid=[("p", "10%")]))


def test_all_that_was_kept_of_a_long_output_is_searched(checked):
    attempt = _Attempt(Captured(b"head\n", b"tail\n", 10_000, (b"middle\n",)))
    assert {} == _broken(checked(attempt, require=[(w, f"^{w}$") for w in ("head", "middle", "tail")]))


@pytest.mark.parametrize("kind", ["require", "forbid"])
def test_what_could_not_be_found_out_is_no_success(checked, monkeypatch, kind):
    monkeypatch.setattr(expressions, "EXPRESSION_SECONDS", 0.2)
    told = []
    outcome = checked(_Attempt(b"a" * 40 + b"!"), **{kind: [("slow", "(a+)+$")]}, warn=told.append)
    assert {"slow": "the expression takes too long on this output"} == _broken(outcome)
    assert 1 == len(told)


def test_without_expressions_the_output_is_not_looked_at(checked):
    class Unread:
        captured = pytest.fail

    assert {} == _broken(checked(Unread()))


def test_pass_leaves_the_outcome_a_success(checked):
    assert checked(_SAYS, verify=[("v", "true")], require=[("r", "done")]).succeeded


def test_broken_check_makes_a_failure_with_the_output_as_evidence(checked):
    outcome = checked(_SAYS, forbid=[("f", "slow")])
    assert (False, b"warning: slow\n") == (outcome.succeeded, outcome.stderr.head)


_VERIFIED = {
    "passes": ("true", {}),
    "fails": ("exit 3", {"v": "exit 3"}),
    "says-why": ("echo first; echo no total >&2; exit 3", {"v": "exit 3: no total"}),
    "says-why-on-its-output": ("echo no total; exit 1", {"v": "exit 1: no total"}),
    "says-why-before-blank-lines": ("echo no total; echo; echo ' '; exit 1", {"v": "exit 1: no total"}),
    "says-it-in-colour": (r"printf '\033[31mno\033[0m\n'; exit 1", {"v": "exit 1: no"}),
    "signal": ("kill -KILL $$", {"v": "ended by SIGKILL"}),
    "not-found": ("no-such-command-here 2>/dev/null", {"v": "exit 127"}),
    "reads-nothing": ("read -r line && exit 1; exit 0", {}),
    "sees-the-environment": ('test "$GREETING" = hello', {}),
}


@pytest.mark.parametrize(("command", "broken"), _VERIFIED.values(), ids=_VERIFIED)
def test_verify_command_is_run_by_a_shell(checked, command, broken):
    assert broken == _broken(checked(verify=[("v", command)], environment={"GREETING": "hello"}))


def test_every_verify_command_is_run_and_all_that_fail_are_named(checked):
    outcome = checked(verify=[("a", "exit 1"), ("b", "true"), ("c", "exit 2")])
    assert {"a": "exit 1", "c": "exit 2"} == _broken(outcome)


def test_broken_output_is_told_before_broken_commands(checked):
    assert ["r", "v"] == list(_broken(checked(_SAYS, verify=[("v", "false")], require=[("r", "nothing")])))


def test_verify_command_is_bounded_like_the_command(checked):
    assert {"v": "timed out"} == _broken(checked(verify=[("v", "exec sleep 60")], timeout=0.2))


def test_long_last_words_are_cut(checked):
    (detail,) = _broken(checked(verify=[("v", f"{sys.executable} -c 'print(\"x\" * 999)'; exit 1")])).values()
    assert len(detail) == len("exit 1: ") + checks._SAID_CHARS


def test_signal_during_a_verify_command_cancels_the_attempt(checked):
    outcome = checked(verify=[("a", "kill -TERM $PPID; exec sleep 60"), ("b", "false")])
    assert (15, 143, {}) == (outcome.cancelled_by, outcome.exit_code, _broken(outcome))


def test_verify_commands_write_to_standard_error_alone():
    assert (2, 2) == beside(RunnerOptions(grace_seconds=1, tty="always")).outputs


def test_verify_commands_keep_the_limits_and_lose_the_terminal():
    options = RunnerOptions(timeout_seconds=3, deadline_at=9, deadline_seconds=5, grace_seconds=1, tty="always")
    kept = beside(options)
    assert (3, 9, 5, 1, "never") == (
        kept.timeout_seconds,
        kept.deadline_at,
        kept.deadline_seconds,
        kept.grace_seconds,
        kept.tty,
    )
