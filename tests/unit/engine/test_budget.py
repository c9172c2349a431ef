"""What was spent, and what is left."""

from __future__ import annotations

import pytest
from builders import a_history, an_envelope

from kos_retry.engine.budget import budget_of, failed_actions_in_a_row
from kos_retry.model import Budget, Policy


def test_without_limits_nothing_is_left_to_tell():
    assert Budget(attempts_used=2, seconds_used=0.0) == budget_of(a_history("A", "B"), Policy())


def test_unknown_amount_stays_unknown():
    budget = budget_of([an_envelope(usage={"tokens": None, "cost_usd": None})], Policy(max_tokens=9, max_cost_usd=1))
    assert (None, None) == (budget.tokens_used, budget.cost_usd_used)


def test_known_amounts_are_counted_beside_unknown_ones():
    history = [an_envelope(usage={"tokens": 5}), an_envelope(), an_envelope(usage={"tokens": 7})]
    assert 12 == budget_of(history, Policy()).tokens_used


def test_zero_is_a_known_amount():
    assert 0 == budget_of([an_envelope(usage={"tokens": 0})], Policy()).tokens_used


def test_cents_add_up():
    history = [an_envelope(usage={"cost_usd": 0.1}) for _ in range(3)]
    assert 0.3 == budget_of(history, Policy()).cost_usd_used


def test_nothing_is_left_rather_than_less_than_nothing():
    budget = budget_of(
        a_history("A", "B", usage={"tokens": 10, "cost_usd": 2}, duration_seconds=9),
        Policy(max_attempts=1, max_tokens=5, max_cost_usd=1, deadline_seconds=3),
    )
    assert (0, 0, 0.0, 0.0) == (
        budget.attempts_left,
        budget.tokens_left,
        budget.cost_usd_left,
        budget.seconds_left,
    )


def test_attempts_that_are_not_in_the_history_count_by_their_number():
    assert 7 == budget_of([an_envelope(attempt=7)], Policy()).attempts_used


@pytest.mark.parametrize(
    ("actions", "run"),
    [
        ([[True, False], [False]], 2),
        ([[False], [True]], 0),
        ([[False], [None]], 0),
        ([[False, False], []], 2),
        ([], 0),
    ],
    ids=["across-attempts", "ended-by-a-success", "ended-by-an-unknown", "attempt-without-actions", "no-history"],
)
def test_failed_actions_in_a_row(actions, run):
    history = [an_envelope(executed_actions=[{"name": "edit", "ok": ok} for ok in row]) for row in actions]
    assert run == failed_actions_in_a_row(history)


def _in_session(*usages, session="s"):
    return [
        an_envelope(usage={"cumulative": True, **u}, transcript={"format": "x", "session": session}) for u in usages
    ]


# What the attempts report, and what they have cost together.
_SESSIONS = {
    "going-on": (_in_session({"cost_usd": 0.3, "tokens": 10}, {"cost_usd": 0.5, "tokens": 25}), (0.5, 25)),
    "anew": (_in_session({"cost_usd": 0.3, "tokens": 10}, {"cost_usd": 0.2, "tokens": 4}), (0.5, 14)),
    "anew-and-on": (_in_session({"tokens": 10}, {"tokens": 4}, {"tokens": 6}), (None, 16)),
    "unknown-between": (_in_session({"tokens": 10}, {}, {"tokens": 12}), (None, 12)),
    "two-sessions": (_in_session({"tokens": 10}) + _in_session({"tokens": 12}, session="t"), (None, 22)),
    "another-between": (
        _in_session({"tokens": 10}) + _in_session({"tokens": 1}, session="t") + _in_session({"tokens": 12}),
        (None, 13),
    ),
    "not-cumulative": (
        _in_session({"tokens": 10, "cumulative": False}, {"tokens": 12, "cumulative": False}),
        (None, 22),
    ),
    "session-unknown": ([an_envelope(usage={"tokens": n, "cumulative": True}) for n in (10, 12)], (None, 22)),
}


@pytest.mark.parametrize(("history", "spent"), _SESSIONS.values(), ids=_SESSIONS)
def test_totals_of_a_session_are_counted_once(history, spent):
    budget = budget_of(history, Policy())
    assert spent == (budget.cost_usd_used, budget.tokens_used)
