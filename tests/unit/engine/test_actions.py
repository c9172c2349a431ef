"""Actions compared by what they did."""

from __future__ import annotations

import json

import pytest
from builders import an_action

from kos_retry.engine.actions import approach, counted, fingerprint, label, longest_repeat

_SAME = {
    "key-order": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "nested-key-order": ({"x": {"a": 1, "b": [{"c": 1, "d": 2}]}}, {"x": {"b": [{"d": 2, "c": 1}], "a": 1}}),
    "request-id": ({"path": "a", "request_id": "1"}, {"path": "a", "request_id": "2"}),
    "tool-call-id": ({"path": "a", "tool_call_id": "1"}, {"path": "a", "tool_call_id": "2"}),
    "trace-id": ({"path": "a", "trace_id": "1"}, {"path": "a"}),
    "call-id": ({"path": "a", "call_id": "1"}, {"path": "a"}),
    "description": ({"path": "a", "description": "first try"}, {"path": "a", "description": "again"}),
    "timestamp": ({"path": "a", "timestamp": 1}, {"path": "a", "timestamp": 2}),
    "encoded-twice": ({"path": "a", "line": 3}, '{"line": 3, "path": "a"}'),
}


@pytest.mark.parametrize(("one", "other"), _SAME.values(), ids=_SAME)
def test_same_action_is_recognised(one, other):
    assert fingerprint(an_action(input=one)) == fingerprint(an_action(input=other))


_DIFFERENT = {
    "value": ({"path": "a"}, {"path": "b"}),
    "id-of-a-thing": ({"id": 1}, {"id": 2}),
    "list-order": ({"paths": ["a", "b"]}, {"paths": ["b", "a"]}),
    "type": ({"n": 1}, {"n": "1"}),
    "null-against-missing-key": ({"a": None}, {}),
    "incidental-name-further-in": ({"x": {"description": "a"}}, {"x": {"description": "b"}}),
    "nothing-against-empty": (None, {}),
    "end-of-a-long-input": ({"text": "x" * 9000 + "a"}, {"text": "x" * 9000 + "b"}),
}


@pytest.mark.parametrize(("one", "other"), _DIFFERENT.values(), ids=_DIFFERENT)
def test_different_action_is_told_apart(one, other):
    assert fingerprint(an_action(input=one)) != fingerprint(an_action(input=other))


def test_name_counts():
    assert fingerprint(an_action("edit")) != fingerprint(an_action("revert"))


def test_failed_action_that_is_tried_again_is_the_same_action():
    assert fingerprint(an_action(ok=False, result="no")) == fingerprint(an_action(ok=True, result="yes"))


@pytest.mark.parametrize("text", ['{"a": ', "{}}"], ids=["cut-off", "not-json"])
def test_string_that_only_looks_like_an_object_is_taken_as_it_is(text):
    assert fingerprint(an_action(input=text)) != fingerprint(an_action(input=text + " "))


@pytest.mark.parametrize("depth", [100, 300, 5000])
def test_very_deep_arguments_have_a_fingerprint(depth):
    assert fingerprint(an_action(input='{"a":' * depth + "1" + "}" * depth))


def test_approach_keeps_the_order_of_the_actions():
    one, other = an_action("edit"), an_action("build")
    assert approach([one, other]) != approach([other, one])


def test_no_actions_are_no_approach():
    assert approach([]) is None


_RUNS = {
    "none": ([], 0),
    "single": (["a"], 1),
    "in-a-row": (["a", "b", "b", "b", "a"], 3),
    "interrupted": (["b", "a", "b"], 1),
}


@pytest.mark.parametrize(("names", "expected"), _RUNS.values(), ids=_RUNS)
def test_longest_repeat_counts_what_stands_in_a_row(names, expected):
    assert expected == longest_repeat([an_action(n) for n in names])[0]


def test_polling_that_sees_something_new_is_no_repeat():
    assert 1 == longest_repeat([an_action("poll", result=n) for n in range(5)])[0]


_RESULTS = {
    "duration": ("2 failed in 0.42s", "2 failed in 12.7s", 2),
    "clock": ("at 10:00:01 no", "at 10:00:02.5 no", 2),
    "timestamp": ("2026-05-04T10:00:00Z no", "2026-05-05T11:12:13.25+02:00 no", 2),
    "inside an object": ({"out": ["2 failed in 0.4s"]}, {"out": ["2 failed in 1.2s"]}, 2),
    "field of a duration": ({"out": "no", "durationMs": 7}, {"out": "no", "durationMs": 9}, 2),
    "field of a number": ({"out": "no", "count": 7}, {"out": "no", "count": 9}, 1),
    "count": ("3 of 10 done", "4 of 10 done", 1),
    "percent": ("43% done", "44% done", 1),
    "words": ("no", "yes", 1),
}


@pytest.mark.parametrize(("one", "other", "expected"), _RESULTS.values(), ids=_RESULTS)
def test_time_that_a_repeated_action_took_is_no_news(one, other, expected):
    assert expected == longest_repeat([an_action(result=one), an_action(result=other)])[0]


def test_distinct_actions_are_counted_in_the_order_of_their_appearance():
    counts = counted([an_action("b"), an_action("a"), an_action("b")])
    assert [("b", 2), ("a", 1)] == [(action.name, count) for count, action in counts.values()]


@pytest.mark.parametrize(
    ("given", "expected"),
    [(None, "edit"), ({"b": 1, "a": 2}, 'edit {"a":2,"b":1}'), ([1], "edit [1]")],
    ids=["no-input", "object", "list"],
)
def test_label_is_one_line_for_people(given, expected):
    assert expected == label(an_action(input=given))


def test_label_is_bounded():
    assert 20 == len(label(an_action(input={"text": "x" * 100}), 20))


def test_input_is_not_changed_by_fingerprinting():
    given = {"b": 1, "request_id": "x"}
    action = an_action(input=given)
    fingerprint(action)
    assert json.dumps(given) == json.dumps(action.input)
