"""Every rule of the decision: a case where it decides, and its nearest miss."""

from __future__ import annotations

import pytest
from builders import a_history, a_record, a_success, an_envelope

from kos_retry.engine.backoff import Schedule
from kos_retry.engine.decide import consider, decide
from kos_retry.engine.memory import Known
from kos_retry.engine.rules import RULES
from kos_retry.model import NextAttempt, Policy, Recommendation, StopReason

FAILED, DONE = {"name": "edit", "ok": False}, {"name": "edit", "ok": True}
TRANSIENT = {"cause": "transient"}


def _numbered(*envelopes):
    return tuple(e.replace(attempt=n) for n, e in enumerate(envelopes, 1))


def _varied(count: int, **fields):
    """Return failures that all differ, so that no rule of repetition interferes."""
    return a_history(*(f"error: thing_{chr(97 + n)}" for n in range(count)), **fields)


def _decided(history, known=None, **policy):
    return decide(history, Policy(**policy), known=known)


def _known(**fields) -> Known:
    return Known(a_record(**fields))


SAME = {"next_attempt": NextAttempt.SAME}


# For each rule: the history and policy on which it decides, and the nearest ones on which it does not.
_CASES = {
    "succeeded": ((a_history("A")[0], a_success(attempt=2)), {}, (_varied(1), {})),
    "cancelled": (
        (an_envelope(exit_code=130, category="context_cancelled"),),
        {},
        ((an_envelope(exit_code=130, category="execution_failure"),), {}),
    ),
    "stop_on": (_varied(1, exit_code=3), {"stop_on": ("exit:3",)}, (_varied(1, exit_code=4), {"stop_on": ("exit:3",)})),
    "max_attempts": (_varied(3), {"max_attempts": 3}, (_varied(2), {"max_attempts": 3})),
    "deadline": (
        _varied(2, duration_seconds=5),
        {"deadline_seconds": 10},
        (_varied(2, duration_seconds=4.9), {"deadline_seconds": 10}),
    ),
    "cost_budget": (
        _varied(2, usage={"cost_usd": 0.5}),
        {"max_cost_usd": 1},
        (_varied(2, usage={"cost_usd": 0.49}), {"max_cost_usd": 1}),
    ),
    "token_budget": (
        _varied(2, usage={"tokens": 500}),
        {"max_tokens": 1000},
        (_varied(2, usage={"tokens": 499}), {"max_tokens": 1000}),
    ),
    "failure_budget": (
        _varied(2, executed_actions=[DONE, FAILED])[:1] + _varied(2, executed_actions=[FAILED])[1:],
        {"max_failures": 2},
        (_varied(2, executed_actions=[FAILED, DONE]), {"max_failures": 2}),
    ),
    "retry_on": (
        _varied(1, cause="auth"),
        {"retry_on": ("cause:auth",)},
        (_varied(1, cause="quota"), {"retry_on": ("cause:auth",)}),
    ),
    "own_budget": (_varied(1, cause="budget"), {}, (_varied(1, cause="turn_limit"), {})),
    "non_retryable": (
        _varied(1, cause="auth"),
        {},
        (_varied(1, cause={"kind": "auth", "retryable": "unknown"}), {}),
    ),
    "known_flake": (
        a_history("A", "A"),
        {"known": _known(passed=1, failed=2)},
        (a_history("A", "A"), {"known": _known(passed=1, failed=4)}),
    ),
    "deterministic": (
        _varied(1, cause="deterministic"),
        {"next_attempt": NextAttempt.SAME},
        (_varied(1, cause="deterministic"), {"next_attempt": NextAttempt.MAY_DIFFER}),
    ),
    "transient": (
        _varied(1, **TRANSIENT),
        {},
        (_varied(1, cause={"kind": "transient", "retryable": "no"}), {}),
    ),
    "never_passed": (
        _varied(1),
        {**SAME, "known": _known(failed=30)},
        (_varied(1), {**SAME, "known": _known(failed=29)}),
    ),
    "escalation_ignored": (
        _numbered(
            an_envelope("A", emitted_recommendation="escalate_to_supervisor"), an_envelope("B"), an_envelope("A")
        ),
        {},
        (_numbered(an_envelope("A", emitted_recommendation="pivot_strategy"), an_envelope("B"), an_envelope("A")), {}),
    ),
    "unusable_output": (
        _varied(2, cause="malformed_output"),
        {},
        (_varied(1, cause="malformed_output"), {}),
    ),
    "repeated_action": (
        _varied(1, executed_actions=["poll"] * 4),
        {},
        (_varied(1, executed_actions=["poll"] * 3), {}),
    ),
    "progress": (
        _numbered(an_envelope("A", failing_constraints=["a", "b"]), an_envelope("A", failing_constraints=["b"])),
        {},
        (
            _numbered(
                an_envelope("A", failing_constraints=["a", "b"]), an_envelope("A", failing_constraints=["b", "c"])
            ),
            {},
        ),
    ),
    "zero_delta": (
        a_history("A", "A"),
        {},
        (
            _numbered(an_envelope("A", executed_actions=["edit"]), an_envelope("A", executed_actions=["revert"])),
            {},
        ),
    ),
    "oscillation": (
        a_history("A", "B", "A", "B"),
        {"max_identical_signatures": 5},
        (a_history("A", "B", "A"), {"max_identical_signatures": 5}),
    ),
    "identical_signatures": (a_history("A", "B", "A"), {}, (a_history("A", "B", "C"), {})),
    "no_novelty": (
        a_history(*(f"error: {n} of the jobs hang" for n in (7, 4, 9, 6))),
        {},
        (a_history(*(f"error: {n} of the jobs hang" for n in (9, 8, 6, 5))), {}),
    ),
    "still_news": (_varied(2), {}, (a_history("A", "A"), {})),
}


def _rule(history, policy):
    return _decided(history, **policy).reasons[0].rule


@pytest.mark.parametrize(("history", "policy", "miss"), _CASES.values(), ids=_CASES)
def test_rule_decides_and_names_itself(request, history, policy, miss):
    assert request.node.callspec.id == _rule(history, policy)


@pytest.mark.parametrize(("history", "policy", "miss"), _CASES.values(), ids=_CASES)
def test_nearest_miss_is_left_to_another_rule(request, history, policy, miss):
    assert request.node.callspec.id != _rule(*miss)


def test_every_rule_has_a_case():
    assert [rule.__name__ for rule in RULES] == list(_CASES)


def test_order_of_the_rules(snapshot):
    assert snapshot == [f"{rule.__name__}: {rule.__doc__.splitlines()[0]}" for rule in RULES]


@pytest.mark.parametrize(
    "history",
    [
        a_history(*(f"error: {n} of the jobs hang" for n in (7, 4, 9))),
        a_history("error: a hangs", *(f"error: {n} of the jobs hang" for n in (7, 4, 9))),
        _numbered(*(an_envelope(f"error: {n} jobs hang", executed_actions=[f"edit {n}"]) for n in (7, 4, 9, 6))),
        _numbered(*(an_envelope(f"error: {n} jobs hang", failing_constraints=[f"t{n}"]) for n in (7, 4, 9, 6))),
    ],
    ids=["too-few", "another-before", "another-approach", "other-constraints"],
)
def test_numbers_that_change_are_monotony_only_where_nothing_else_does(history):
    assert "no_novelty" != _rule(history, {})


@pytest.mark.parametrize(
    ("usage", "policy", "stop"),
    [
        ({"cost_usd": 0.4}, {"max_cost_usd": 1.0}, StopReason.COST_BUDGET),
        ({"cost_usd": 0.3}, {"max_cost_usd": 1.0}, None),
        ({"tokens": 400}, {"max_tokens": 1000}, StopReason.TOKEN_BUDGET),
        ({"tokens": 300}, {"max_tokens": 1000}, None),
    ],
)
def test_attempt_that_would_not_fit_in_the_budget_is_not_begun(usage, policy, stop):
    assert (stop, None) == (
        _decided(_varied(2, usage=usage), reserve_budgets=True, **policy).stop_reason,
        _decided(_varied(2, usage=usage), **policy).stop_reason,
    )


def test_every_rule_is_considered_and_the_first_that_matches_decides():
    told = consider(a_history("A", "A"), Policy(max_attempts=5))
    assert ([rule.__name__ for rule in RULES], ["zero_delta"]) == (
        [entry.rule for entry in told],
        [entry.rule for entry in told if entry.decides],
    )


def test_rule_that_does_not_match_says_why(snapshot):
    history = _numbered(an_envelope("A", cause="deterministic"), an_envelope("B", cause="deterministic"))
    assert snapshot == [f"{entry.rule}: {entry.evidence}" for entry in consider(history, Policy(max_attempts=5))]


def test_of_an_empty_history_nothing_is_considered():
    assert () == consider((), Policy())


_STOPS = {
    "succeeded": (_CASES["succeeded"][:2], Recommendation.HALT, StopReason.SUCCEEDED),
    "cancelled": (_CASES["cancelled"][:2], Recommendation.HALT, StopReason.CANCELLED),
    "stop_on": (_CASES["stop_on"][:2], Recommendation.HALT, StopReason.NON_RETRYABLE),
    "retry_on": (_CASES["retry_on"][:2], Recommendation.CONTINUE, None),
    "max_attempts": (_CASES["max_attempts"][:2], Recommendation.HALT, StopReason.MAX_ATTEMPTS),
    "deadline": (_CASES["deadline"][:2], Recommendation.HALT, StopReason.DEADLINE),
    "cost_budget": (_CASES["cost_budget"][:2], Recommendation.HALT, StopReason.COST_BUDGET),
    "token_budget": (_CASES["token_budget"][:2], Recommendation.HALT, StopReason.TOKEN_BUDGET),
    "failure_budget": (_CASES["failure_budget"][:2], Recommendation.HALT, StopReason.FAILURE_BUDGET),
    "own_budget": (_CASES["own_budget"][:2], Recommendation.HALT, StopReason.COST_BUDGET),
    "non_retryable": (_CASES["non_retryable"][:2], Recommendation.HALT, StopReason.NON_RETRYABLE),
    "deterministic": (_CASES["deterministic"][:2], Recommendation.HALT, StopReason.NON_RETRYABLE),
    "known_flake": (_CASES["known_flake"][:2], Recommendation.CONTINUE, None),
    "never_passed": (_CASES["never_passed"][:2], Recommendation.HALT, StopReason.NON_RETRYABLE),
    "transient": (_CASES["transient"][:2], Recommendation.CONTINUE, None),
    "transient_exhausted": (
        (_varied(6, **TRANSIENT), {}),
        Recommendation.ESCALATE,
        StopReason.TRANSIENT_EXHAUSTED,
    ),
    "escalation_ignored": (_CASES["escalation_ignored"][:2], Recommendation.HALT, StopReason.ESCALATION_IGNORED),
    "unusable_output": (_CASES["unusable_output"][:2], Recommendation.PIVOT, StopReason.UNUSABLE_OUTPUT),
    "unusable_output_again": (
        (_varied(3, cause="malformed_output"), {}),
        Recommendation.ESCALATE,
        StopReason.UNUSABLE_OUTPUT,
    ),
    "repeated_action": (_CASES["repeated_action"][:2], Recommendation.PIVOT, StopReason.REPEATED_ACTION),
    "progress": (_CASES["progress"][:2], Recommendation.CONTINUE, None),
    "zero_delta": (_CASES["zero_delta"][:2], Recommendation.PIVOT, StopReason.ZERO_DELTA),
    "zero_delta_again": ((a_history("A", "A", "A"), {}), Recommendation.ESCALATE, StopReason.ZERO_DELTA),
    "oscillation": (_CASES["oscillation"][:2], Recommendation.ESCALATE, StopReason.OSCILLATION),
    "no_novelty": (_CASES["no_novelty"][:2], Recommendation.ESCALATE, StopReason.NO_NOVELTY),
    "identical_signatures": (
        _CASES["identical_signatures"][:2],
        Recommendation.ESCALATE,
        StopReason.IDENTICAL_SIGNATURES,
    ),
}


@pytest.mark.parametrize(("case", "recommendation", "stop_reason"), _STOPS.values(), ids=_STOPS)
def test_rule_recommends_and_gives_its_stop_reason(case, recommendation, stop_reason):
    decision = _decided(case[0], **case[1])
    assert (recommendation, stop_reason) == (decision.recommendation, decision.stop_reason)


# What ends a run without a rule: see tests/unit/test_loop.py.
_OF_THE_LOOP = {StopReason.DONE_SIGNAL, StopReason.GATE_DENIED, StopReason.VERDICT_VOID, StopReason.ESCALATED}


def test_every_stop_reason_is_reachable():
    assert set(StopReason) == ({stop for _, _, stop in _STOPS.values()} - {None}) | _OF_THE_LOOP


_EARLIER_WINS = {
    "success-over-budget": ((a_success(),), {"max_attempts": 1}, "succeeded"),
    "success-over-stop": ((a_success(),), {"stop_on": ("exit:0",)}, "succeeded"),
    "cancelling-over-retry": (
        (an_envelope(exit_code=130, category="context_cancelled"),),
        {"retry_on": ("exit:130",)},
        "cancelled",
    ),
    "stop-over-retry": (
        _varied(1, exit_code=3),
        {"stop_on": ("exit:3",), "retry_on": ("exit:1-5",)},
        "stop_on",
    ),
    "stop-over-attempts": (_varied(1, exit_code=3), {"stop_on": ("exit:3",), "max_attempts": 1}, "stop_on"),
    "attempts-over-retry": (_varied(1), {"retry_on": ("exit:1",), "max_attempts": 1}, "max_attempts"),
    "deadline-over-retry": (
        _varied(1, duration_seconds=9),
        {"retry_on": ("exit:1",), "deadline_seconds": 9},
        "deadline",
    ),
    "retry-over-own-budget": (_varied(1, cause="budget"), {"retry_on": ("exit:1",)}, "retry_on"),
    "retry-over-repetition": (a_history("A", "A", "A", "A"), {"retry_on": ("exit:1",)}, "retry_on"),
    "retry-over-transient-exhaustion": (_varied(9, **TRANSIENT), {"retry_on": ("exit:1",)}, "retry_on"),
    "attempts-over-cause": (_varied(1, cause="auth"), {"max_attempts": 1}, "max_attempts"),
    "cause-over-repetition": (a_history("A", "A", cause="auth"), {}, "non_retryable"),
    "waiting-over-repetition": (a_history("A", "A", "A", **TRANSIENT), {}, "transient"),
    "progress-over-identical-signatures": (
        _numbered(
            an_envelope("A", failing_constraints=["a"]),
            an_envelope("A", failing_constraints=["a", "b"]),
            an_envelope("A", failing_constraints=["a"]),
        ),
        {},
        "progress",
    ),
    "flake-over-deterministic": (
        _varied(1, cause="deterministic"),
        {**SAME, "known": _known(passed=7, failed=2)},
        "known_flake",
    ),
    "attempts-over-flake": (a_history("A", "A"), {"max_attempts": 2, "known": _known(passed=9)}, "max_attempts"),
    "cause-over-flake": (_varied(1, cause="auth"), {"known": _known(passed=9)}, "non_retryable"),
    "waiting-over-never-passed": (_varied(1, **TRANSIENT), {**SAME, "known": _known(failed=40)}, "transient"),
    "retry-over-never-passed": (_varied(1), {**SAME, "retry_on": ("exit:1",), "known": _known(failed=40)}, "retry_on"),
    "zero-delta-over-identical-signatures": (a_history("A", "B", "A", "A"), {}, "zero_delta"),
}


@pytest.mark.parametrize(("history", "policy", "rule"), _EARLIER_WINS.values(), ids=_EARLIER_WINS)
def test_first_rule_that_matches_wins(history, policy, rule):
    assert rule == _rule(history, policy)


_FLAKES = {
    "within-what-it-took": (2, {"passed": 3, "most_attempts": 2}, "known_flake"),
    "one-more-than-it-took": (3, {"passed": 3, "most_attempts": 2}, "known_flake"),
    "two-more-than-it-took": (4, {"passed": 3, "most_attempts": 2}, "zero_delta"),
    "within-five": (4, {"passed": 3, "most_attempts": 9}, "known_flake"),
    "five-at-most": (5, {"passed": 3, "most_attempts": 9}, "zero_delta"),
    "never-tried": (2, {"passed": 0}, "zero_delta"),
    "repairs-are-no-passes": (2, {"passed": 0, "repaired": 9}, "zero_delta"),
}


@pytest.mark.parametrize(("attempts", "record", "rule"), _FLAKES.values(), ids=_FLAKES)
def test_known_flake_gets_as_many_attempts_as_it_took_and_two(attempts, record, rule):
    assert rule == _rule(a_history(*"A" * attempts), {"known": _known(**record)})


_HOPELESS = {
    "the-same-again": (SAME, {"failed": 40}, "never_passed"),
    "another-attempt": ({}, {"failed": 40}, "still_news"),
    "passed-once": (SAME, {"failed": 40, "passed": 1}, "still_news"),
    "never-tried-again": (SAME, {"runs": 400}, "still_news"),
    "long-ago": (SAME, {"failed": 40, "age_days": 90}, "still_news"),
}


@pytest.mark.parametrize(("policy", "record", "rule"), _HOPELESS.values(), ids=_HOPELESS)
def test_failure_that_never_passed_stops_what_would_be_the_same_again(policy, record, rule):
    assert rule == _rule(_varied(1), {**policy, "known": _known(**record)})


def test_what_is_known_is_said_in_words(snapshot):
    flake = _decided(a_history("A"), known=_known(passed=7, failed=2, most_attempts=3))
    hopeless = _decided(a_history("A"), known=_known(failed=40, runs=44), **SAME)
    assert snapshot == [decision.reasons[0].evidence for decision in (flake, hopeless)]


def test_transient_trouble_in_between_does_not_hide_a_repeat():
    history = _numbered(an_envelope("A"), an_envelope("B", **TRANSIENT), an_envelope("A"))
    assert "zero_delta" == _rule(history, {})


def test_transient_failures_are_counted_in_a_row():
    history = _numbered(*_varied(5, **TRANSIENT), an_envelope("A"), *_varied(5, **TRANSIENT))
    assert "transient" == _rule(history, {})


def test_no_retry_is_allowed_for_transient_trouble_where_the_policy_says_so():
    decision = _decided(_varied(1, **TRANSIENT), max_transient_retries=0)
    assert StopReason.TRANSIENT_EXHAUSTED == decision.stop_reason


def test_cycle_of_three_is_seen():
    history = a_history("A", "B", "C", "A", "B", "C")
    assert "oscillation" == _rule(history, {"max_identical_signatures": 9})


def test_zero_attempts_lift_the_limit():
    assert _decided(_varied(9), max_attempts=0).budget.attempts_left is None


@pytest.mark.parametrize("policy", [{"max_cost_usd": 1}, {"max_tokens": 1000}], ids=["cost", "tokens"])
def test_unknown_usage_is_not_a_spent_budget(policy):
    assert Recommendation.CONTINUE == _decided(_varied(3), **policy).recommendation


@pytest.mark.parametrize(
    ("policy", "stop"), [({"max_cost_usd": 0}, "cost_budget"), ({"max_tokens": 0}, "token_budget")]
)
def test_budget_of_nothing_is_spent_although_the_usage_is_unknown(policy, stop):
    assert stop == _decided(_varied(1), **policy).stop_reason


def test_time_that_was_measured_counts_before_summed_durations():
    history = _varied(2, duration_seconds=1)
    assert StopReason.DEADLINE == decide(history, Policy(deadline_seconds=10), seconds_used=10).stop_reason


def test_fix_of_the_cause_is_handed_on():
    cause = {"kind": "auth", "fix": "renew the token of the registry"}
    assert "renew the token of the registry" == _decided(_varied(1, cause=cause)).fix


@pytest.mark.parametrize(
    "kind",
    [
        "auth",
        "quota",
        "billing",
        "config",
        "permission_denied",
        "command_not_found",
        "environment",
        "budget",
    ],
)
def test_cause_that_no_retry_mends_always_names_a_fix(kind):
    assert _decided(_varied(1, cause=kind)).fix


def test_context_window_goes_on():
    """Smaller steps can mend it, so nothing halts."""
    assert _decided(_varied(1, cause="context_window")).recommendation is not Recommendation.HALT


def test_delta_compares_the_last_two_attempts():
    delta = _decided(_varied(3)).delta
    assert (2, 3) == (delta.from_attempt, delta.to_attempt)


def test_single_attempt_has_no_delta():
    assert _decided(_varied(1)).delta is None


_DELAYS = {
    "schedule": (_varied(1), 2.0),
    "grows-with-the-failures": (_varied(2), 4.0),
    "asked-for": (_varied(1, cause={"kind": "transient", "retry_after_seconds": 7}), 7.0),
    "asked-for-beyond-the-cap": (_varied(1, cause={"kind": "transient", "retry_after_seconds": 700}), 30.0),
    "asked-for-zero": (_varied(1, cause={"kind": "transient", "retry_after_seconds": 0}), 0.0),
    "pivot": (a_history("A", "A"), 4.0),
    "halt": (_varied(1, cause="auth"), None),
    "escalation": (a_history("A", "A", "A"), None),
}


@pytest.mark.parametrize(("history", "seconds"), _DELAYS.values(), ids=_DELAYS)
def test_delay_before_the_next_attempt(history, seconds):
    schedule = Schedule(delay_seconds=2, factor=2, max_delay_seconds=30, jitter="none")
    assert seconds == decide(history, Policy(), schedule=schedule).delay_seconds


def test_without_a_schedule_there_is_no_delay():
    assert _decided(_varied(1)).delay_seconds is None


def test_last_attempt_number_that_fits_is_decided_too():
    assert Recommendation.CONTINUE == _decided((an_envelope(attempt=2**31 - 1),)).recommendation


def test_unsigned_history_is_signed_on_the_way():
    bare = [e.replace(signature="") for e in a_history("A", "A")]
    assert decide(a_history("A", "A"), Policy()) == decide(bare, Policy())


def test_quotation_of_the_output_stays_apart_from_our_words():
    reason = _decided(_varied(1, cause={"kind": "auth", "evidence": "401 from registry"})).reasons[0]
    assert "no retry mends this cause (auth): 401 from registry" == reason.evidence


def test_condition_is_quoted_in_the_reason():
    reason = _decided(_varied(1, exit_code=3), stop_on=("exit:3",)).reasons[0]
    assert "a condition to stop on is met: exit:3" == reason.evidence


def test_conditions_look_at_the_last_attempt_alone():
    history = _numbered(an_envelope("A", exit_code=3), an_envelope("B", exit_code=1))
    assert "still_news" == _rule(history, {"stop_on": ("exit:3",)})


_CROSSINGS = {
    "well-before": (1.0, 100.0, Recommendation.CONTINUE),
    "just-before": (1.0, 3.001, Recommendation.CONTINUE),
    "exactly": (1.0, 3.0, Recommendation.HALT),
    "beyond": (1.0, 2.0, Recommendation.HALT),
}


@pytest.mark.parametrize(("used", "deadline", "expected"), _CROSSINGS.values(), ids=_CROSSINGS)
def test_wait_that_would_cross_the_deadline_is_not_begun(used, deadline, expected):
    schedule = Schedule(delay_seconds=2, jitter="none")
    decision = decide(_varied(1), Policy(deadline_seconds=deadline), schedule=schedule, seconds_used=used)
    assert expected == decision.recommendation


def test_wait_that_would_cross_the_deadline_is_told():
    decision = decide(_varied(1), Policy(deadline_seconds=2), schedule=Schedule(2, jitter="none"), seconds_used=1)
    assert ("deadline", StopReason.DEADLINE, None) == (
        decision.reasons[0].rule,
        decision.stop_reason,
        decision.delay_seconds,
    )
    assert "the wait of 2s would cross the deadline, 1s are left" == decision.reasons[0].evidence


def test_wait_that_the_other_side_asks_for_can_cross_the_deadline_too():
    cause = {"kind": "transient", "retry_after_seconds": 7}
    decision = decide(_varied(1, cause=cause), Policy(deadline_seconds=6), schedule=Schedule(), seconds_used=1)
    assert StopReason.DEADLINE == decision.stop_reason
