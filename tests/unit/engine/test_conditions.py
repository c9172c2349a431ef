"""Conditions on failures: what can be written, and which failures it means."""

from __future__ import annotations

import pytest
from builders import an_envelope, observed

from kos_retry.engine.conditions import check_condition, check_expression, first_match, matches
from kos_retry.model import Category, CauseKind


@pytest.mark.parametrize(
    "text",
    [
        "exit:0",
        "exit:255",
        "exit:1,75,100-110",
        "exit:1, 75",
        "exit:7-7",
        "signal:KILL",
        "signal:SIGKILL",
        "signal:kill",
        "signal:9",
        "timeout",
        "output:connection reset",
        "output:a:b",
        "output:(?i)^x$",
        *(f"category:{c}" for c in Category),
        *(f"cause:{c}" for c in CauseKind),
    ],
)
def test_condition_is_taken_as_it_was_written(text):
    assert text == check_condition(text)


_REFUSED = {
    "": "is not a condition such as exit:",
    "exit": "is not a condition such as exit:",
    "exit:": "is not a condition such as exit:",
    "EXIT:1": "is not a condition such as exit:",
    "timeout:": "is not a condition such as exit:",
    "timeout:5s": "is not a condition such as exit:",
    "1": "is not a condition such as exit:",
    "code:1": "is not a condition such as exit:",
    "exit:a": "'a' is not an exit code from 0 to 255",
    "exit:256": "'256' is not an exit code",
    "exit:-1": "'-1' is not an exit code",
    "exit:5-": "'5-' is not an exit code",
    "exit:9-5": "'9-5' is not an exit code",
    "exit:1,,2": "'' is not an exit code",
    "exit:1-2-3": "'1-2-3' is not an exit code",
    "exit:٣": "'٣' is not an exit code",
    "exit:1.5": "'1.5' is not an exit code",
    "signal:": "is not a condition such as exit:",
    "signal:KILL TERM": "is not the name or number of a signal",
    "signal:KIL": "is not the name or number of a signal",
    "signal:999": "is not the name or number of a signal",
    "category:broken": "'broken' is not a category; known are success, timeout",
    "cause:bad luck": "'bad luck' is not a cause; known are transient",
    "output:": "is not a condition such as exit:",
    "output:(": "'(' is not a regular expression",
    "output:" + "(" * 5000 + ")" * 5000: "is not a regular expression",
    "output:a{99999999999}": "is not a regular expression",
}


@pytest.mark.parametrize(("text", "told"), _REFUSED.items(), ids=[t[:24] or "empty" for t in _REFUSED])
def test_what_is_no_condition_is_refused_with_the_reason(text, told):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is what is looked at
        check_condition(text)
    assert told in str(caught.value)


def test_expression_that_is_right_is_returned():
    assert "a|b" == check_expression("a|b")


# What ended the attempt, and which conditions mean it.
_EXIT_3 = {"exit_code": 3}
_KILLED = {"exit_code": 137, "signal": "SIGKILL"}
_KILLED_INSIDE = {"exit_code": 137}
_TIMED_OUT = {"exit_code": 124, "category": "timeout"}
_TIMED_OUT_AND_KILLED = {"exit_code": 124, "signal": "SIGKILL", "category": "timeout"}
_MATCHES = {
    "exit": ("exit:3", _EXIT_3, True),
    "another-exit": ("exit:4", _EXIT_3, False),
    "list": ("exit:1,3", _EXIT_3, True),
    "list-without-it": ("exit:1,2", _EXIT_3, False),
    "range": ("exit:1-5", _EXIT_3, True),
    "lower-end": ("exit:3-5", _EXIT_3, True),
    "upper-end": ("exit:1-3", _EXIT_3, True),
    "below-the-range": ("exit:4-5", _EXIT_3, False),
    "above-the-range": ("exit:1-2", _EXIT_3, False),
    "digits-are-no-prefix": ("exit:3", {"exit_code": 33}, False),
    "signal": ("signal:KILL", _KILLED, True),
    "signal-with-its-prefix": ("signal:SIGKILL", _KILLED, True),
    "signal-in-small-letters": ("signal:sigkill", _KILLED, True),
    "signal-by-number": ("signal:9", _KILLED, True),
    "another-signal": ("signal:TERM", _KILLED, False),
    "another-signal-by-number": ("signal:15", _KILLED, False),
    "signal-is-no-exit-code": ("exit:137", _KILLED, False),
    "signal-is-in-no-range": ("exit:0-255", _KILLED, False),
    "exit-code-is-no-signal": ("signal:KILL", _KILLED_INSIDE, False),
    "exit-code-is-no-signal-by-number": ("signal:9", _KILLED_INSIDE, False),
    "exit-code-of-a-shell": ("exit:137", _KILLED_INSIDE, True),
    "timeout": ("timeout", _TIMED_OUT, True),
    "timeout-has-its-code": ("exit:124", _TIMED_OUT, True),
    "timeout-of-the-command-itself": ("timeout", {"exit_code": 124, "category": "execution_failure"}, False),
    "timeout-that-took-a-signal": ("signal:KILL", _TIMED_OUT_AND_KILLED, True),
    "timeout-that-took-a-signal-by-number": ("signal:9", _TIMED_OUT_AND_KILLED, True),
    "category": ("category:timeout", _TIMED_OUT, True),
    "another-category": ("category:unknown", _TIMED_OUT, False),
    "cause": ("cause:auth", {"cause": "auth"}, True),
    "another-cause": ("cause:auth", {"cause": "quota"}, False),
    "no-cause": ("cause:auth", {}, False),
    "output": ("output:re.et", {"output_matches": ["output:re.et"]}, True),
    "another-output": ("output:reset", {"output_matches": ["output:re.et"]}, False),
    "output-is-not-searched-here": ("output:reset", {"message": "connection reset"}, False),
    "output-with-a-colon": ("output:a:b", {"output_matches": ["output:a:b"]}, True),
}


@pytest.mark.parametrize(("condition", "failure", "meant"), _MATCHES.values(), ids=_MATCHES)
def test_condition_means(condition, failure, meant):
    assert meant is matches(condition, an_envelope(**failure))


@pytest.mark.parametrize(("number", "name"), [(1, "SIGHUP"), (6, "SIGABRT"), (11, "SIGSEGV"), (15, "SIGTERM")])
def test_signal_is_known_by_name_and_number(number, name):
    envelope = observed("gone\n", exit_code=128 + number, signal=name)
    assert [True, True] == [matches(f"signal:{word}", envelope) for word in (name.removeprefix("SIG"), number)]


_FIRST = {
    "first-of-two": (["exit:3", "exit:1-5"], "exit:3"),
    "second": (["exit:4", "exit:1-5"], "exit:1-5"),
    "none": (["exit:4", "timeout"], None),
    "nothing": ([], None),
}


@pytest.mark.parametrize(("conditions", "found"), _FIRST.values(), ids=_FIRST)
def test_first_condition_that_is_met_is_named(conditions, found):
    assert found == first_match(conditions, an_envelope(exit_code=3))
