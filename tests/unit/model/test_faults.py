"""What is wrong with a value is told with its place, what was expected there, and what came."""

from __future__ import annotations

import pytest

from kos_retry.errors import InputError
from kos_retry.model import ExtractorAnswer, FailureEnvelope, OutcomeRow, Policy, Recommendation

_FAULTS = {
    "kind": (FailureEnvelope, {"error_message": 3}, "error_message: expected a string, not 3"),
    "whole": (FailureEnvelope, [1], "expected an object, not [1]"),
    "nothing": (FailureEnvelope, None, "expected an object, not None"),
    "below": (FailureEnvelope, {"usage": {"tokens": -1}}, "usage.tokens: expected an integer >= 0, not -1"),
    "above": (FailureEnvelope, {"attempt": 2**70}, f"attempt: expected an integer <= 2147483647, not {2**70}"),
    "fraction": (Policy, {"max_attempts": 1.5}, "max_attempts: expected an integer or null, not 1.5"),
    "not-a-number": (Policy, {"max_cost_usd": float("nan")}, "max_cost_usd: expected a number >= 0.0, not nan"),
    "one-of": (Policy, {"next_attempt": "z"}, "next_attempt: expected same or may_differ, not 'z'"),
    "one-value": (ExtractorAnswer, {"protocol": 2}, "protocol: expected 1, not 2"),
    "several-kinds": (OutcomeRow, {"command": 3}, "command: expected a string or an array or null, not 3"),
    "missing": (FailureEnvelope, {"cause": {"rule": "x"}}, "cause: missing required field 'kind'"),
    "unknown": (Policy, {"max_atempts": 1}, "unknown field 'max_atempts'"),
    "key-of-a-caller": (FailureEnvelope, {"extractors": {"a": 3}}, "extractors[...]: expected a string, not {'a': 3}"),
    "deep": (
        ExtractorAnswer,
        {"protocol": 1, "findings": [{"kind": "test", "location": {"path": "a", "line": 0}}]},
        "findings[0].location.line: expected an integer >= 1, not 0",
    ),
    "long": (
        FailureEnvelope,
        {"executed_actions": ["a", {"name": "x", "ok": "yes" * 50}]},
        f"executed_actions[1].ok: expected true or false or null, not '{('yes' * 50)[:59]}…",
    ),
    "spelling-of-the-original": (FailureEnvelope, {"ExitCode": "1"}, "exit_code: expected an integer, not '1'"),
}


@pytest.mark.parametrize(("kind", "value", "told"), _FAULTS.values(), ids=_FAULTS)
def test_fault_is_told(kind, value, told):
    with pytest.raises(InputError) as caught:
        kind.from_json(value)
    assert told == str(caught.value)


def test_closed_set_is_told_whole():
    with pytest.raises(InputError) as caught:
        FailureEnvelope.from_json({"emitted_recommendation": "stop"})
    assert f"expected {' or '.join(Recommendation)}, not 'stop'" in str(caught.value)


def test_value_of_a_wire_type_may_stand_in_the_data():
    envelope = FailureEnvelope.from_json({"executed_actions": ["a"]})
    again = FailureEnvelope.from_json({"executed_actions": list(envelope.executed_actions)})
    assert envelope.executed_actions == again.executed_actions
