"""What a signature is made of, and what it is blind to."""

from __future__ import annotations

import re

import pytest
from builders import an_envelope

from kos_retry.engine.sign import SIGNATURE_VERSION, coarse, comparable, features, signed
from kos_retry.model import FailureEnvelope

_SAME = {
    "order-of-constraints": ({"failing_constraints": ["a", "b"]}, {"failing_constraints": ["b", "a"]}),
    "order-of-lines": ({"message": "error: a\nerror: b"}, {"message": "error: b\nerror: a"}),
    "repeated-lines": ({"message": "error: a"}, {"message": "error: a\nerror: a"}),
    "timestamp-of-the-attempt": ({"timestamp": "2026-03-01T08:15:42Z"}, {"timestamp": "2027-03-01T08:15:42Z"}),
    "clock-in-the-message": ({"message": "08:15:42 no"}, {"message": "09:15:42 no"}),
    "attempt": ({"attempt": 1}, {"attempt": 7}),
    "duration": ({"duration_seconds": 1.5}, {"duration_seconds": 99.0}),
    "actions": ({"executed_actions": ["edit"]}, {"executed_actions": ["revert"]}),
    "artifacts": ({"diagnostic_artifacts": []}, {"diagnostic_artifacts": [{"name": "lint"}]}),
    "cause": ({}, {"cause": "auth"}),
    "usage": ({}, {"usage": {"tokens": 9}}),
    "how-a-time-limit-ended-it": (
        {"category": "timeout", "exit_code": 124, "message": "timed out after 5s"},
        {"category": "timeout", "exit_code": 137, "signal": "SIGKILL", "message": "timed out after 5s"},
    ),
}


@pytest.mark.parametrize(("one", "other"), _SAME.values(), ids=_SAME)
def test_signature_is_blind_to(one, other):
    assert an_envelope(**one).signature == an_envelope(**other).signature


_DIFFERENT = {
    "exit-code": ({"exit_code": 1}, {"exit_code": 2}),
    "signal": ({"exit_code": 137}, {"exit_code": 137, "signal": "SIGKILL"}),
    "category": ({"category": "execution_failure"}, {"category": "verification_failed"}),
    "message": ({"message": "error: a"}, {"message": "error: b"}),
    "constraint": ({"failing_constraints": ["a"]}, {"failing_constraints": ["b"]}),
    "constraint-fixed": ({"failing_constraints": ["a", "b"]}, {"failing_constraints": ["b"]}),
    "constraint-against-message": ({"message": "a"}, {"message": "", "failing_constraints": ["a"]}),
    "time-limit": (
        {"category": "timeout", "message": "timed out after 5s"},
        {"category": "timeout", "message": "timed out after 9s"},
    ),
}


@pytest.mark.parametrize(("one", "other"), _DIFFERENT.values(), ids=_DIFFERENT)
def test_signature_tells_apart(one, other):
    assert an_envelope(**one).signature != an_envelope(**other).signature


def test_signature_names_its_version():
    assert re.fullmatch(re.escape(SIGNATURE_VERSION) + ":[0-9a-f]{64}", an_envelope().signature)


def test_features_are_sorted_and_name_their_kind():
    envelope = an_envelope("b 3s\na", failing_constraints=["t"], exit_code=3)
    assert (
        "category:execution_failure",
        "constraint:t",
        "end:exit 3",
        "message:a",
        "message:b <duration>",
    ) == features(envelope)


def test_given_signature_is_kept():
    assert "mine" == an_envelope(signature="mine").signature


def test_history_of_one_scheme_keeps_its_signatures():
    history = (FailureEnvelope(signature="sha:a"), FailureEnvelope(signature="sha:b"))
    assert ["sha:a", "sha:b"] == [e.signature for e in comparable(history)]


@pytest.mark.parametrize("other", ["", "bare", "k1:1"], ids=["missing", "without-a-scheme", "another-scheme"])
def test_history_of_mixed_schemes_is_signed_anew(other):
    history = (FailureEnvelope(signature="sha:a"), FailureEnvelope(signature=other))
    assert [signed(FailureEnvelope()).signature] * 2 == [e.signature for e in comparable(history)]


_COARSE = {
    "error-type": ({"message": "app.errors.CartError: no total"}, "CartError"),
    "code": ({"message": "error TS2304: no name"}, "TS2304"),
    "errno": ({"message": "connect ECONNREFUSED"}, "ECONNREFUSED"),
    "nothing": ({"message": "gave up"}, "execution_failure"),
}


@pytest.mark.parametrize(("given", "expected"), _COARSE.values(), ids=_COARSE)
def test_class_for_people_is_the_error_type_or_code(given, expected):
    assert expected == coarse(an_envelope(**given))


def test_approach_is_filled_in_only_where_there_were_actions():
    assert (None, True) == (an_envelope().approach, bool(an_envelope(executed_actions=["edit"]).approach))
