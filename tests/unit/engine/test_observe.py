"""From the evidence of one attempt to its envelope."""

from __future__ import annotations

import pytest
from builders import a_cause, a_finding, an_envelope, observed

from kos_retry.engine.observe import completed, constraint_names, describe
from kos_retry.model import Category, CauseKind, FailureEnvelope


def test_message_is_made_of_the_lines_that_say_what_failed():
    assert "error: no total" == observed("step 1\nerror: no total\nbye\n").error_message


def test_success_says_nothing():
    envelope = observed("error: handled\n", exit_code=0)
    assert (Category.SUCCESS, "", None) == (envelope.category, envelope.error_message, envelope.cause)


def test_time_limit_is_the_message_of_a_timeout():
    envelope = observed("error: no\n", exit_code=143, signal="SIGTERM", timed_out=True, limit_seconds=90)
    assert "timed out after 1m30s" == envelope.error_message


def test_finding_tells_more_than_the_output():
    finding = a_finding("test", test_id="t::a", error_type="CartError", message="total is 41")
    envelope = observed("error: other\n", findings=(finding,))
    assert ("CartError: total is 41", ("CartError", "t::a")) == (envelope.error_message, envelope.failing_constraints)


@pytest.mark.parametrize(
    "error_type",
    ["CartError", "shop.cart.CartError", "org.shop.CartException", "Shop::CartError", "Shop\\CartException", "Timeout"],
)
def test_test_that_dies_of_an_exception_names_its_type_too(error_type):
    finding = a_finding("test", test_id="t::a", error_type=error_type)
    assert {"t::a", error_type} == set(constraint_names([finding]))


@pytest.mark.parametrize(
    "error_type",
    [
        "AssertionError",
        "org.checks.AssertionFailedError",
        "Checks::ExpectationNotMetError",
        "Framework\\ExpectationFailedException",
        "ComparisonFailure",
        "Failed",
        "Error",
        "java.lang.Exception",
        "ExceptionGroup",
        "panic",
        "not a type",
        "",
    ],
)
def test_verdict_of_a_test_is_no_constraint_of_its_own(error_type):
    assert ("t::a",) == constraint_names([a_finding("test", test_id="t::a", error_type=error_type)])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"error_type": "CartError"}, "CartError"),
        ({"error_type": "Error"}, "Error: no total"),
        ({"error_type": "java.lang.Exception"}, "java.lang.Exception: no total"),
        ({"error_type": "FATAL ERROR"}, "FATAL ERROR: no total"),
        ({"error_type": "Error", "code": "E_TOTAL"}, "E_TOTAL"),
    ],
    ids=["type", "bare", "bare-and-qualified", "bare-words", "code"],
)
def test_crash_of_a_type_that_tells_nothing_is_named_by_what_it_says(fields, expected):
    assert (expected,) == constraint_names([a_finding("crash", message="no total\nat all", **fields)])


def test_diagnostic_without_a_code_is_named_by_its_type():
    assert ("CartError",) == constraint_names([a_finding("diagnostic", error_type="CartError")])


def test_type_of_a_diagnostic_with_a_code_is_not_named():
    assert ("E7",) == constraint_names([a_finding("diagnostic", code="E7", error_type="CartError")])


def test_guess_is_no_evidence():
    envelope = observed("error: no total\n", findings=(a_finding("test", test_id="t::a", confidence="guess"),))
    assert ("error: no total", ()) == (envelope.error_message, envelope.failing_constraints)


def test_order_of_the_findings_does_not_change_the_signature():
    one, other = (a_finding("test", test_id=f"t::{n}", message=f"bad {n}") for n in "ab")
    assert observed(findings=(one, other)).signature == observed(findings=(other, one)).signature


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"error_type": "CartError", "message": "bad\nmore"}, "CartError: bad"),
        ({"error_type": "CartError", "message": "CartError: bad"}, "CartError: bad"),
        ({"code": "E501", "message": "too long"}, "E501: too long"),
        ({"error_type": "CartError"}, "CartError"),
        ({"message": "\n  bad"}, "bad"),
        ({"message": "not equal:\n\n4 !== 3\n"}, "not equal: 4 !== 3"),
        ({"message": "is(a, b)\n\n  Expected: 3\n  Received:   4\nin cart"}, "is(a, b) Expected: 3 Received: 4"),
        ({"message": "got: 4\nexpected: 3"}, "got: 4 expected: 3"),
        ({"message": "bad\nexpected of all:\n" + "x" * 600}, "bad expected of all:"),
        ({"message": "bad:\n" + "x" * 600}, "bad: " + "x" * 507),
        ({}, ""),
    ],
    ids=[
        "type",
        "type-said-already",
        "code",
        "type-alone",
        "first-line-with-words",
        "below-a-colon",
        "expected-and-received",
        "got-and-expected",
        "other-lines",
        "bounded",
        "nothing",
    ],
)
def test_finding_is_described_by_its_first_line_and_type(fields, expected):
    assert expected == describe(a_finding(**fields))


def test_kill_that_nobody_here_sent_points_to_the_memory():
    assert CauseKind.RESOURCE == observed("working\n", exit_code=137, signal="SIGKILL").cause.kind


def test_cancelled_attempt_has_no_cause():
    assert observed("connection refused\n", exit_code=130, signal="SIGINT", cancelled=True).cause is None


def test_cause_that_the_caller_knows_is_kept():
    assert a_cause("quota") == observed("connection refused\n", cause=a_cause("quota")).cause


def test_same_failure_elsewhere_has_the_same_signature():
    one = observed("[08:15:42] /home/a/w/x/src/cart.rs:7: error: no total (0.41s)\n")
    other = observed("[11:02:10] /builds/b/c/src/cart.rs:9: error: no total (2.9s)\n")
    assert one.signature == other.signature


_COMPLETED = {
    "exit-code-alone": ({"exit_code": 2}, Category.EXECUTION_FAILURE),
    "nothing": ({}, Category.SUCCESS),
    "message-alone": ({"error_message": "boom"}, Category.EXECUTION_FAILURE),
    "constraint": ({"exit_code": 1, "failing_constraints": ["a"]}, Category.CONSTRAINT_VIOLATION),
    "given": ({"exit_code": 1, "category": "verification_failed"}, Category.VERIFICATION_FAILED),
    "time-limit": ({"exit_code": 124}, Category.TIMEOUT),
}


@pytest.mark.parametrize(("given", "category"), _COMPLETED.values(), ids=_COMPLETED)
def test_missing_category_is_computed(given, category):
    assert category == completed(FailureEnvelope.from_json(given)).category


@pytest.mark.parametrize(
    ("given", "category", "cause"),
    [
        ({"error_message": "", "executed_actions": []}, "execution_failure", "no_output"),
        ({"error_message": "", "executed_actions": [], "failing_constraints": []}, "execution_failure", "no_output"),
        ({"error_message": "", "executed_actions": ["edit"]}, "success", None),
        ({"error_message": ""}, "success", None),
        ({"executed_actions": []}, "success", None),
        ({}, "success", None),
        ({"error_message": "", "executed_actions": [], "category": "success"}, "success", None),
    ],
)
def test_agent_that_did_and_said_nothing_did_not_succeed(given, category, cause):
    done = completed(FailureEnvelope.from_json({"exit_code": 0, **given}))
    assert (category, cause) == (done.category, done.cause and done.cause.kind)


def test_missing_cause_is_read_from_the_message():
    assert (
        "text-connection-reset" == completed(FailureEnvelope(exit_code=1, error_message="connection reset")).cause.rule
    )


def test_given_cause_is_kept():
    assert a_cause("auth") == completed(an_envelope("connection reset", cause="auth")).cause


def test_violated_constraint_is_not_explained_by_its_message():
    given = FailureEnvelope(exit_code=1, error_message="connection reset", failing_constraints=("a",))
    assert completed(given).cause is None
