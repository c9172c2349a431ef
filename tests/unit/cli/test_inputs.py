"""What callers hand in, and how what is wrong with it is told."""

from __future__ import annotations

import pytest

from kos_retry.cli import inputs
from kos_retry.cli.inputs import parse_json, parse_model
from kos_retry.cli.next import read_question
from kos_retry.errors import InputError
from kos_retry.model import FailureEnvelope, OutcomeRow, Policy

_READ = {
    "object": (b'{"a": 1}', {"a": 1}),
    "blanks": (b" \n[1] \n", [1]),
    "huge-number": (b'{"a": 1267650600228229401496703205376}', {"a": 2**100}),
    "not-a-number": (b'{"a": NaN}', {"a": "NaN"}),
    "half-a-character": (b'"\\ud800"', "\ud800"),
    "broken-encoding": (b'"a\xff"', "a\ufffd"),
}


@pytest.mark.parametrize(("data", "value"), _READ.values(), ids=_READ)
def test_json_of_any_writer_is_read(data, value):
    assert value == parse_json(data, "input")


@pytest.mark.parametrize(
    ("data", "place"),
    [(b'{"a": }', "line 1, column 7"), (b'{\n "a": 1,\n}', "line 2, column 8"), (b"nope", "line 1"), (b"[1", "line 1")],
    ids=["missing-value", "trailing-comma", "word", "cut-off"],
)
def test_fault_in_json_is_told_with_its_place(data, place):
    with pytest.raises(InputError) as caught:
        parse_json(data, "input")
    assert str(caught.value).startswith("input: not JSON: ")
    assert place in str(caught.value)


_FAULTS = {
    "unknown-field": (Policy, {"max_atempts": 1}, "x: unknown field 'max_atempts'"),
    "field": (FailureEnvelope, {"exit_code": "1"}, "x: exit_code: "),
    "nested-field": (FailureEnvelope, {"usage": {"tokens": -1}}, "x: usage.tokens: "),
    "item": (FailureEnvelope, {"executed_actions": ["a", 3]}, "x: executed_actions[1]"),
    "several": (FailureEnvelope, {"exit_code": "1", "attempt": 0}, "x: exit_code: expected an integer, not '1'"),
    "not-an-object": (OutcomeRow, [], "x: "),
    "constraint-of-the-wrong-type": (
        FailureEnvelope,
        {"failing_constraints": [{"name": "a"}]},
        "x: failing_constraints",
    ),
}


@pytest.mark.parametrize(("kind", "value", "told"), _FAULTS.values(), ids=_FAULTS)
def test_fault_in_a_value_names_the_field(kind, value, told):
    with pytest.raises(InputError) as caught:
        parse_model(kind, value, "x")
    assert told in str(caught.value)


@pytest.mark.parametrize(("kind", "value", "told"), _FAULTS.values(), ids=_FAULTS)
def test_fault_is_told_on_one_short_line(kind, value, told):
    with pytest.raises(InputError) as caught:
        parse_model(kind, value, "x")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_deep_nesting_gives_an_answer():
    row = parse_model(OutcomeRow, parse_json(b'{"exit_code": 1, "id": ' + b"[" * 500 + b"]" * 500 + b"}", "x"), "x")
    assert 1 == row.exit_code


def test_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        inputs.read_bytes(str(tmp_path / "none"))


def test_file_over_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "MAX_INPUT_BYTES", 8)
    (tmp_path / "a").write_bytes(b"123456789")
    with pytest.raises(InputError, match="larger than 8B"):
        inputs.read_bytes(str(tmp_path / "a"))


def test_of_a_large_log_is_kept_what_a_run_would_keep(tmp_path):
    noise = b"worker handled a request\n" * 200_000
    (tmp_path / "a").write_bytes(b"head\n" + noise + b"error: off by one\n" + noise + b"tail\n")
    kept = inputs.read_log(str(tmp_path / "a"))
    assert (True, True, True) == (
        kept.head.startswith(b"head\n"),
        any(b"error: off by one" in part for part in kept.middle),
        kept.tail.endswith(b"tail\n"),
    )
    assert (tmp_path / "a").stat().st_size == kept.omitted + sum(map(len, (kept.head, *kept.middle, kept.tail)))


def test_output_that_came_as_text_is_kept_alike():
    text = "worker handled a request\n" * 400_000
    assert 0 < inputs.kept(text).omitted < len(text)


def test_lines_are_numbered_and_blank_ones_left_out(tmp_path):
    (tmp_path / "a").write_bytes(b"one\n\n  \nfour")
    assert [(1, b"one\n"), (4, b"four")] == list(inputs.lines(str(tmp_path / "a")))


def test_line_over_the_limit_spoils_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "MAX_INPUT_BYTES", 8)
    (tmp_path / "a").write_bytes(b"x" * 30 + b"\nnext\n")
    assert [1, 2] == [number for number, _ in inputs.lines(str(tmp_path / "a"))]
    assert b"next\n" == list(inputs.lines(str(tmp_path / "a")))[-1][1]


_E = '{"exit_code":1,"error_message":"a"}'
_FORMS = {
    "envelope": (_E, 1),
    "array": (f"[{_E},{_E}]", 2),
    "lines": (f"{_E}\n{_E}\n\n{_E}\n", 3),
    "history": (f'{{"history":[{_E},{_E}],"policy":{{}}}}', 2),
    "history-without-policy": (f'{{"history":[{_E}]}}', 1),
    "rows-of-observe": (f'{{"id":1,"envelope":{_E}}}\n{{"id":2,"envelope":{_E}}}', 2),
    "nothing": ("", 0),
    "empty-array": ("[]", 0),
}


@pytest.mark.parametrize(("text", "count"), _FORMS.values(), ids=_FORMS)
def test_history_is_read_in_any_form(text, count):
    assert count == len(read_question(text.encode(), "input").history)


def test_envelopes_without_a_number_are_numbered_in_their_order():
    assert [1, 2] == [e.attempt for e in read_question(f"[{_E},{_E}]".encode(), "input").history]


_BAD_QUESTIONS = {
    "word": ("nope", "input: not JSON"),
    "number": ("3", "input"),
    "history-of-the-wrong-type": ('{"history":3}', "history: should be an array"),
    "policy-of-the-wrong-type": ('{"history":[],"policy":3}', "policy: should be an object"),
    "bad-item": (f"[{_E},3]", "input[1]"),
    "bad-item-of-the-history": (f'{{"history":[{_E},{{"attempt":0}}]}}', "history[1]: attempt"),
    "bad-line": (f"{_E}\n{{]\n", "line 2"),
}


@pytest.mark.parametrize(("text", "told"), _BAD_QUESTIONS.values(), ids=_BAD_QUESTIONS)
def test_bad_history_is_told_with_its_place(text, told):
    with pytest.raises(InputError) as caught:
        read_question(text.encode(), "input")
    assert told in str(caught.value)
