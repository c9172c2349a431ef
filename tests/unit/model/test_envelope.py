"""The envelope: what it accepts, what it bounds, and what it says about the rest."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from kos_retry.errors import InputError
from kos_retry.model import Action, Category, DiagnosticArtifact, FailureEnvelope, Omitted


def test_message_is_bounded_to_4096_bytes():
    envelope = FailureEnvelope(error_message="x" * 5000)
    assert (4096, 904) == (len(envelope.error_message), envelope.omitted.message_bytes)


def test_message_is_never_cut_inside_a_character():
    envelope = FailureEnvelope(error_message="x" + "€" * 2000)
    assert "x" + "€" * 1365 == envelope.error_message


def test_message_of_exactly_the_bound_is_whole():
    envelope = FailureEnvelope(error_message="x" * 4096)
    assert Omitted() == envelope.omitted


_LISTS = {
    "constraints": ("failing_constraints", [f"t{i:03}" for i in range(70)], 64, "constraints"),
    "actions": ("executed_actions", [f"a{i:03}" for i in range(70)], 64, "actions"),
    "artifacts": ("diagnostic_artifacts", [{"name": f"d{i:03}"} for i in range(40)], 32, "artifacts"),
}


@pytest.mark.parametrize(("field", "items", "limit", "counter"), _LISTS.values(), ids=_LISTS)
def test_list_is_bounded(field, items, limit, counter):
    assert limit == len(getattr(FailureEnvelope.from_json({field: items}), field))


@pytest.mark.parametrize(("field", "items", "limit", "counter"), _LISTS.values(), ids=_LISTS)
def test_what_does_not_fit_is_counted(field, items, limit, counter):
    omitted = FailureEnvelope.from_json({field: items}).omitted
    assert Omitted(**{counter: len(items) - limit}) == omitted


def test_of_too_many_actions_the_latest_stay():
    envelope = FailureEnvelope.from_json({"executed_actions": [f"a{i}" for i in range(70)]})
    assert ("a6", "a69") == (envelope.executed_actions[0].name, envelope.executed_actions[-1].name)


def test_of_too_many_constraints_the_first_in_sorted_order_stay_whoever_listed_them():
    names = [f"t{i:03}" for i in range(70)]
    forward = FailureEnvelope.from_json({"failing_constraints": names})
    backward = FailureEnvelope.from_json({"failing_constraints": names[::-1]})
    assert set(names[:64]) == set(forward.failing_constraints) == set(backward.failing_constraints)


def test_constraints_lose_blanks_margins_and_repetitions():
    envelope = FailureEnvelope.from_json({"failing_constraints": [" a ", "", "a", "  ", "b"]})
    assert ("a", "b") == envelope.failing_constraints


def test_counts_of_what_was_left_out_survive_a_second_reading():
    once = FailureEnvelope(error_message="x" * 5000)
    assert once == FailureEnvelope.from_json(once.as_json())


def test_message_with_half_a_character_is_mended():
    assert "a\ufffd" == FailureEnvelope.from_json({"error_message": "a\ud800"}).error_message


_ORIGINAL = {
    "Attempt": 2,
    "ExitCode": 1,
    "ErrorMessage": "exit status 1",
    "Category": "constraint_violation",
    "FailingConstraints": ["tests pass"],
    "ExecutedActions": ["write_file", "run_tests"],
    "DiagnosticArtifacts": [
        {"Name": "lint", "SizeBytes": 12, "MIMEType": "application/json", "Payload": {"Level": "error"}}
    ],
    "Signature": "9f86d081884c7d65",
    "Timestamp": "2026-03-01T08:15:42.123456789Z",
}


def test_field_names_of_the_original_are_read():
    envelope = FailureEnvelope.from_json(_ORIGINAL)
    assert (2, 1, "exit status 1", Category.CONSTRAINT_VIOLATION, ("tests pass",), "9f86d081884c7d65") == (
        envelope.attempt,
        envelope.exit_code,
        envelope.error_message,
        envelope.category,
        envelope.failing_constraints,
        envelope.signature,
    )


def test_bare_strings_of_the_original_are_actions():
    envelope = FailureEnvelope.from_json(_ORIGINAL)
    assert (Action(name="write_file"), Action(name="run_tests")) == envelope.executed_actions


def test_artifacts_of_the_original_are_read_with_their_payload_untouched():
    (artifact,) = FailureEnvelope.from_json(_ORIGINAL).diagnostic_artifacts
    assert (
        DiagnosticArtifact(name="lint", size_bytes=12, mime_type="application/json", payload={"Level": "error"})
        == artifact
    )


def test_snake_case_with_artifacts_in_the_case_of_the_original_is_read():
    given = {"exit_code": 1, "diagnostic_artifacts": [{"Name": "lint", "MIMEType": "text/plain", "Payload": "x"}]}
    (artifact,) = FailureEnvelope.from_json(given).diagnostic_artifacts
    assert ("lint", "text/plain", "x") == (artifact.name, artifact.mime_type, artifact.payload)


@pytest.mark.parametrize(
    "field", ["failing_constraints", "FailingConstraints", "executed_actions", "diagnostic_artifacts", "Timestamp"]
)
def test_null_means_not_set(field):
    assert FailureEnvelope() == FailureEnvelope.from_json({field: None})


def test_nanoseconds_are_rounded_to_microseconds():
    assert datetime(2026, 3, 1, 8, 15, 42, 123457, tzinfo=UTC) == FailureEnvelope.from_json(_ORIGINAL).timestamp


def test_zero_time_means_unknown():
    assert FailureEnvelope.from_json({"timestamp": "0001-01-01T00:00:00Z"}).timestamp is None


def test_time_without_a_zone_is_read_as_utc():
    assert datetime(2026, 3, 1, tzinfo=UTC) == FailureEnvelope.from_json({"timestamp": "2026-03-01T00:00:00"}).timestamp


def test_time_keeps_its_zone():
    zone = timezone(timedelta(hours=2))
    given = FailureEnvelope.from_json({"timestamp": "2026-03-01T02:00:00+02:00"}).timestamp
    assert datetime(2026, 3, 1, 2, tzinfo=zone).isoformat() == given.isoformat()


def test_unknown_field_is_ignored():
    assert FailureEnvelope() == FailureEnvelope.from_json({"trace_id": "x"})


_WRONG = {
    "category": {"category": "weird"},
    "attempt-zero": {"attempt": 0},
    "attempt-fraction": {"attempt": 1.5},
    "attempt-text": {"attempt": "1"},
    "exit-code-text": {"exit_code": "1"},
    "exit-code-too-large": {"exit_code": 2**32},
    "message-number": {"error_message": 3},
    "constraints-string": {"failing_constraints": "tests pass"},
    "constraints-of-objects": {"failing_constraints": [{"name": "x"}]},
    "constraints-of-lists": {"failing_constraints": [["x"]]},
    "actions-number": {"executed_actions": 3},
    "tokens-negative": {"usage": {"tokens": -1}},
    "tokens-beyond-64-bits": {"usage": {"tokens": 2**64}},
    "files-beyond-64-bits": {"files_changed": 2**64},
    "duration-infinite": {"duration_seconds": float("inf")},
    "cost-not-a-number": {"usage": {"cost_usd": float("nan")}},
    "timestamp-word": {"timestamp": "yesterday"},
    "cause-unknown": {"cause": "gremlins"},
    "omitted-word": {"omitted": "much", "error_message": "x" * 5000},
}


@pytest.mark.parametrize("given", _WRONG.values(), ids=_WRONG)
def test_wrong_type_or_range_is_refused(given):
    with pytest.raises(InputError):
        FailureEnvelope.from_json(given)


def test_payload_that_no_reader_takes_becomes_text():
    payload = {"nan": float("nan"), "huge": 2**80, "nested": [float("inf")]}
    (artifact,) = FailureEnvelope.from_json({"diagnostic_artifacts": [{"payload": payload}]}).diagnostic_artifacts
    assert {"nan": "nan", "huge": hex(2**80), "nested": ["inf"]} == artifact.payload


def test_nesting_is_bounded():
    deep: list = []
    for _ in range(200):
        deep = [deep]
    action = Action.from_json({"name": "x", "input": deep})
    assert json.dumps(action.input).count("[") <= 65


def test_values_are_frozen():
    with pytest.raises(AttributeError):
        FailureEnvelope().exit_code = 2  # type: ignore[misc]
