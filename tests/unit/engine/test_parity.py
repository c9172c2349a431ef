"""Facts of the original library that hold here too, and the few that deliberately do not."""

from __future__ import annotations

import pytest
from builders import a_history, a_success, an_envelope

from kos_retry.engine.decide import decide
from kos_retry.engine.sign import signature
from kos_retry.engine.stagnation import assess, checkpoints
from kos_retry.model import Policy, Recommendation, StagnationPolicy, StopReason

CONTINUE, PIVOT = Recommendation.CONTINUE, Recommendation.PIVOT
ESCALATE = Recommendation.ESCALATE


def test_empty_history_goes_on():
    assert CONTINUE == decide([], Policy()).recommendation


def test_empty_history_gives_empty_guidance():
    assert "" == decide([], Policy()).guidance


_HISTORIES = {
    "one-failure": (("A",), CONTINUE),
    "two-different": (("A", "B"), CONTINUE),
    "one-zero-delta-repeat": (("A", "A"), PIVOT),
    "three-in-a-row": (("A", "A", "A"), ESCALATE),
    "four-in-a-row": (("A", "A", "A", "A"), ESCALATE),
    "repeat-after-another": (("B", "A", "A"), PIVOT),
    "came-back": (("A", "B", "A"), ESCALATE),
    "left-behind": (("A", "A", "B"), CONTINUE),
    "always-new": (("A", "B", "C", "D"), CONTINUE),
}


@pytest.mark.parametrize(("messages", "recommendation"), _HISTORIES.values(), ids=_HISTORIES)
def test_default_policy_recommends(messages, recommendation):
    assert recommendation == decide(a_history(*messages), Policy()).recommendation


@pytest.mark.parametrize(("messages", "recommendation"), _HISTORIES.values(), ids=_HISTORIES)
def test_assessment_agrees_with_the_decision(messages, recommendation):
    assert recommendation == assess(a_history(*messages), StagnationPolicy()).recommendation


def test_default_policy_is_that_of_the_original():
    policy = StagnationPolicy()
    assert (2, True, 2) == (
        policy.max_stagnant_attempts,
        policy.zero_delta_fail_fast,
        policy.max_identical_signatures,
    )


def test_without_fail_fast_a_single_repeat_goes_on():
    assert CONTINUE == decide(a_history("A", "A"), Policy(zero_delta_fail_fast=False)).recommendation


def test_without_fail_fast_enough_repeats_escalate():
    assert ESCALATE == decide(a_history("A", "A", "A"), Policy(zero_delta_fail_fast=False)).recommendation


@pytest.mark.parametrize(("repeats", "recommendation"), [(3, PIVOT), (4, ESCALATE)])
def test_repeats_are_counted_against_the_policy(repeats, recommendation):
    policy = Policy(max_stagnant_attempts=3, max_identical_signatures=9)
    assert recommendation == decide(a_history(*["A"] * repeats), policy).recommendation


def test_adjacent_repeats_alone_never_reach_the_limit_of_identical_signatures():
    """Two equal failures in a row are a zero delta, which asks for a pivot.

    This differs from the original on purpose: it counts adjacent repeats towards the limit of identical
    signatures too, so that its defaults escalate at the second failure and the pivot is never reached.
    """
    decision = decide(a_history("A", "A"), Policy(max_stagnant_attempts=9, max_identical_signatures=2))
    assert (PIVOT, StopReason.ZERO_DELTA) == (decision.recommendation, decision.stop_reason)


@pytest.mark.parametrize(
    ("messages", "recommendation"),
    [(("A", "B", "A"), CONTINUE), (("A", "B", "A", "C", "A"), ESCALATE)],
    ids=["two-sightings", "three-sightings"],
)
def test_sightings_are_counted_with_the_first_one_included(messages, recommendation):
    assert recommendation == decide(a_history(*messages), Policy(max_identical_signatures=3)).recommendation


def test_first_checkpoint_is_news():
    assert [True] == [c.entropy_delta for c in checkpoints(a_history("A"))]


def test_checkpoint_of_an_equal_signature_brings_no_entropy():
    assert [True, False, True] == [c.entropy_delta for c in checkpoints(a_history("A", "A", "B"))]


def test_checkpoints_carry_attempt_and_signature():
    history = a_history("A", "B")
    assert [(1, history[0].signature), (2, history[1].signature)] == [
        (c.attempt, c.signature) for c in checkpoints(history)
    ]


def test_bits_of_a_checkpoint_are_zero_exactly_where_nothing_is_new():
    assert [1.0, 0.0] == [c.entropy_bits for c in checkpoints(a_history("A", "A"))]


def test_new_action_with_the_old_failure_is_news():
    """The original looks at the signature alone; here the approach counts too.

    Who tried something else and saw the same failure has explored, not repeated.
    """
    history = (an_envelope("A", executed_actions=["edit"]), an_envelope("A", attempt=2, executed_actions=["revert"]))
    assert [True, True] == [c.entropy_delta for c in checkpoints(history)]


def test_same_action_with_the_old_failure_is_no_news():
    history = tuple(an_envelope("A", attempt=n, executed_actions=["edit"]) for n in (1, 2))
    assert [True, False] == [c.entropy_delta for c in checkpoints(history)]


def test_new_action_with_the_old_failure_goes_on():
    history = (an_envelope("A", executed_actions=["edit"]), an_envelope("A", attempt=2, executed_actions=["revert"]))
    assert CONTINUE == decide(history, Policy()).recommendation


def test_success_after_failures_is_the_end():
    decision = decide([*a_history("A", "A"), a_success(attempt=3)], Policy())
    assert StopReason.SUCCEEDED == decision.stop_reason


def test_timestamp_is_not_in_the_signature():
    """The original hashes the message as it is, so a clock in the text makes every failure new."""
    assert signature(an_envelope("08:15:42 refused", timestamp="2026-03-01T08:15:42Z")) == signature(
        an_envelope("09:01:07 refused", timestamp="2026-03-01T09:01:07Z")
    )


def test_decision_is_the_same_every_time():
    history = a_history("A", "B", "A", "B")
    assert decide(history, Policy()) == decide(history, Policy())
