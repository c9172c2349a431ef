"""What changed between two attempts."""

from __future__ import annotations

import pytest
from builders import a_success, an_action, an_envelope

from kos_retry.engine.compare import compare, divergence_bits


def test_equal_sets_diverge_by_nothing():
    assert 0.0 == divergence_bits({"a", "b"}, ["b", "a"])


@pytest.mark.parametrize("size", [1, 3, 49, 98, 103])
def test_disjoint_sets_diverge_by_one_bit(size):
    assert 1.0 == divergence_bits(range(size), range(1000, 1000 + size))


def test_empty_against_anything_is_one_bit():
    assert (1.0, 1.0, 0.0) == (divergence_bits([], "a"), divergence_bits("a", []), divergence_bits([], []))


def test_half_shared_is_in_between():
    assert 0.5 == pytest.approx(divergence_bits("ab", "bc"))


def test_divergence_is_symmetric():
    assert divergence_bits("abc", "bcdef") == divergence_bits("bcdef", "abc")


def test_constraints_are_fixed_broken_or_still_failing():
    delta = compare(an_envelope(failing_constraints=["a", "b"]), an_envelope(failing_constraints=["b", "c"]))
    assert (("a",), ("c",), ("b",)) == (
        delta.constraints_fixed,
        delta.constraints_broken,
        delta.constraints_still_failing,
    )


def test_actions_are_new_or_repeated():
    old = an_envelope(executed_actions=[{"name": "edit", "input": {"a": 1, "b": 2}}, "build"])
    new = an_envelope(executed_actions=[{"name": "edit", "input": {"b": 2, "a": 1}}, "revert"])
    delta = compare(old, new)
    assert (("revert",), ('edit {"a":1,"b":2}',)) == (delta.actions_new, delta.actions_repeated)


def test_features_that_came_and_went_are_listed():
    delta = compare(an_envelope("error: a"), an_envelope("error: b"))
    assert (("message:error: a",), ("message:error: b",)) == (delta.features_gone, delta.features_new)


_ZERO = {
    "same": ({}, {}, True),
    "same-actions": ({"executed_actions": ["edit"]}, {"executed_actions": ["edit"]}, True),
    "other-failure": ({}, {"message": "error: other"}, False),
    "other-approach": ({"executed_actions": ["edit"]}, {"executed_actions": ["revert"]}, False),
    "order-of-the-approach": ({"executed_actions": ["a", "b"]}, {"executed_actions": ["b", "a"]}, False),
    "approach-appears": ({}, {"executed_actions": ["edit"]}, False),
}


@pytest.mark.parametrize(("old", "new", "zero"), _ZERO.values(), ids=_ZERO)
def test_zero_delta_needs_the_same_failure_and_the_same_approach(old, new, zero):
    assert zero == compare(an_envelope(**old), an_envelope(**new)).zero_delta


@pytest.mark.parametrize(("old", "new", "zero"), _ZERO.values(), ids=_ZERO)
def test_entropy_is_introduced_exactly_where_the_delta_is_not_zero(old, new, zero):
    assert zero is not compare(an_envelope(**old), an_envelope(**new)).entropy_introduced


def test_zero_delta_has_zero_bits():
    assert 0.0 == compare(an_envelope(), an_envelope()).entropy_bits


_SUMMARIES = {
    "nothing": (an_envelope(), an_envelope(), "no change: the same failure, reached the same way"),
    "gone": (an_envelope(), a_success(), "the failure is gone"),
    "other-way": (
        an_envelope(),
        an_envelope(executed_actions=[an_action("edit")]),
        "the same failure, reached another way",
    ),
    "constraints": (
        an_envelope(failing_constraints=["a", "b"]),
        an_envelope(failing_constraints=["b", "c"]),
        "constraints: 1 fixed, 1 newly failing, 1 still failing",
    ),
    "class": (
        an_envelope("KeyError: 'a'"),
        an_envelope("TypeError: no"),
        "another failure: KeyError became TypeError",
    ),
}


@pytest.mark.parametrize(("old", "new", "summary"), _SUMMARIES.values(), ids=_SUMMARIES)
def test_summary_says_the_most_telling_difference(old, new, summary):
    assert summary == compare(old, new).differential_summary


def test_delta_names_both_attempts():
    delta = compare(an_envelope(attempt=2), an_envelope(attempt=3))
    assert (2, 3) == (delta.from_attempt, delta.to_attempt)
