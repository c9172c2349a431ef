"""What an agent's hooks are told."""

from __future__ import annotations

import pytest
from builders import an_action, an_envelope

from kos_retry.engine.decide import decide
from kos_retry.engine.hooks import repeated, unfinished
from kos_retry.model import Policy

_TESTS = {"failing_constraints": ["t::a", "t::b"], "category": "verification_failed"}
_SAME = {"next_attempt": "same"}

# What happened last, how often, under which policy, and whether the agent may stop.
_ENDS = {
    "first failure": ({}, 1, {}, False),
    "the same once more": (_TESTS, 2, {}, False),
    "transient": ({"cause": "transient"}, 1, {}, False),
    "help is called for": (_TESTS, 3, {}, True),
    "a human has to settle it": ({"cause": "auth"}, 1, {}, True),
    "a human has to settle it first": ({**_TESTS, "cause": "quota"}, 1, {}, True),
    "the money is spent": ({**_TESTS, "usage": {"cost_usd": 2}}, 1, {"max_cost_usd": 1}, True),
    "attempts used up, tests named": (_TESTS, 1, {"max_attempts": 1}, False),
    "attempts used up, nothing named": ({}, 1, {"max_attempts": 1}, True),
    "the same input fails the same way": ({**_TESTS, "cause": "deterministic"}, 1, _SAME, False),
    "cancelled": ({**_TESTS, "category": "context_cancelled"}, 1, {}, True),
}


@pytest.mark.parametrize(("last", "times", "policy", "may_stop"), _ENDS.values(), ids=_ENDS)
def test_agent_may_stop_where_going_on_has_to_end(last, times, policy, may_stop):
    history = [an_envelope(attempt=n, **last) for n in range(1, times + 1)]
    decision = decide(history, Policy.from_json(policy))
    assert may_stop == (unfinished(history[-1], decision) == "")


def test_guidance_of_the_decision_is_what_is_told():
    history = [an_envelope(**_TESTS)]
    decision = decide(history, Policy())
    assert decision.guidance == unfinished(history[-1], decision)


def test_halt_is_not_told_where_the_work_goes_on():
    history = [an_envelope(**{**_TESTS, "failing_constraints": [f"t::{n}" for n in range(7)]})]
    told = unfinished(history[-1], decide(history, Policy(max_attempts=1)))
    assert "The work is not done. Still failing: t::0, t::1, t::2, t::3, t::4 and 2 more." == told


def test_failing_constraints_are_told_where_nothing_was_decided():
    assert "t::a, t::b." in unfinished(an_envelope(**_TESTS), None)


def test_nothing_is_told_where_nothing_is_known():
    assert "" == unfinished(an_envelope(), None)


def test_repetition_names_the_call_and_the_number():
    told = repeated(an_action("shell", input={"cmd": "make"}), 4)
    assert 'succeeded 4 times in a row with the same result: shell {"cmd":"make"}\n' in told
