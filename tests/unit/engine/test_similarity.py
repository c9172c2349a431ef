"""How alike two failures are, and why."""

from __future__ import annotations

import pytest
from builders import observed
from hypothesis import given, settings
from hypothesis import strategies as st

from kos_retry.engine.similarity import similarity

_TEXTS = st.lists(st.sampled_from(["error: no queue", "error: no stack", "KeyError: 7 of 9", "bye"]), max_size=3).map(
    lambda lines: observed("".join(f"{line}\n" for line in lines))
)


def _told(old: str, new: str, **fields):
    return similarity(observed(old, **fields), observed(new, **fields))


def test_word_that_differs_is_all_that_is_told():
    told = _told("error: expected status 200, got 503 for cart\n", "error: expected status 200, got 500 for cart\n")
    assert [(("503",), ("500",))] == [(d.removed, d.added) for d in told.differences]


def test_line_that_only_one_has_is_told_whole():
    told = _told("error: no queue\n", "error: no queue\nValueError: total is odd\n")
    assert [("", "ValueError: total is odd")] == [(d.old, d.new) for d in told.differences]


def test_lines_are_paired_with_the_nearest():
    told = _told(
        "error: no queue 1 for cart\nerror: cannot open stack 2\n",
        "error: cannot open stack 3\nerror: no queue 4 for cart\n",
    )
    assert [(("2",), ("3",)), (("1",), ("4",))] == [(d.removed, d.added) for d in told.differences]


def test_parts_that_neither_side_has_do_not_count():
    assert ["message", "category", "end"] == [part.name for part in _told("error: a\n", "error: b\n").parts]


def test_what_failed_by_name_weighs_most():
    named = similarity(observed("error: a\n", constraints=("x",)), observed("error: a\n", constraints=("y",)))
    said = similarity(observed("error: a\n", constraints=("x",)), observed("error: b\n", constraints=("x",)))
    assert named.score < said.score


@settings(deadline=None)
@given(_TEXTS, _TEXTS)
def test_similarity_is_symmetric_and_bounded(old, new):
    one, other = similarity(old, new), similarity(new, old)
    assert (one.score, True) == (other.score, 0 <= one.score <= 1)


@settings(deadline=None)
@given(_TEXTS, _TEXTS)
def test_equal_signatures_are_those_without_differences(old, new):
    told = similarity(old, new)
    assert told.same_signature == (not told.differences)


@settings(deadline=None)
@given(_TEXTS)
def test_a_failure_is_wholly_like_itself(one):
    assert 1.0 == similarity(one, one).score


@pytest.mark.parametrize("size", [10, 3000])
def test_long_lines_are_compared_in_bounded_work(size):
    words = " ".join(f"w{n}" for n in range(size))
    assert 0 < _told(f"error: {words}\n", f"error: x {words}\n").score <= 1
