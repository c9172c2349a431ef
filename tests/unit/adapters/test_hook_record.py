"""What the hooks of an agent remember in a session's directory."""

from __future__ import annotations

import pytest

from kos_retry.adapters import hook_record
from kos_retry.adapters.hook_record import HookRecord
from kos_retry.errors import StateError


@pytest.fixture
def record(tmp_path):
    return HookRecord(str(tmp_path / "session"))


def test_nothing_was_refused_before_the_first_time(record):
    assert 0 == record.blocks("one", again=True)


@pytest.mark.parametrize(
    ("about", "again", "expected"), [("one", False, 2), ("one", True, 2), ("two", True, 2), ("two", False, 0)]
)
def test_refusals_count_on_while_the_agent_is_kept_going_or_nothing_is_new(record, about, again, expected):
    record.blocked("one", 2)
    assert expected == record.blocks(about, again=again)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"about": "one"}', b'{"about": "one", "blocks": null}', b"\xff"]
)
def test_record_that_cannot_be_read_counts_nothing(record, tmp_path, content):
    record.blocked("one", 2)
    (tmp_path / "session" / "hook_stops.json").write_bytes(content)
    assert 0 == record.blocks("one", again=True)


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ("aaa", 3),
        ("aab", 1),
        ("aba", 1),
        ("baa", 2),
        ("aA", 0),
        ("aAa", 1),
    ],
)
def test_only_successful_calls_in_a_row_count(record, calls, expected):
    # A capital is a call that failed.
    assert expected == [record.called("shell", call.lower(), ok=call.islower()) for call in calls][-1]


@pytest.mark.parametrize("torn", [b'{"tool": "shell", "mar', b"\xff\n", b"[]\n", b"\n"])
def test_line_that_cannot_be_read_ends_the_row(record, tmp_path, torn):
    record.called("shell", "a", ok=True)
    with (tmp_path / "session" / "hook_calls.jsonl").open("ab") as file:
        file.write(torn)
    assert record.called("shell", "a", ok=True) <= 1
    assert 2 == [record.called("shell", "b", ok=True) for _ in range(2)][-1]


def test_only_the_end_of_a_long_record_is_read(record, monkeypatch):
    monkeypatch.setattr(hook_record, "HOOK_CALLS_BYTES", 100)
    assert 1 <= [record.called("shell", "a", ok=True) for _ in range(20)][-1] < 4


def test_record_is_nobody_elses_to_read(record, tmp_path):
    record.called("shell", "a", ok=True)
    assert 0o600 == (tmp_path / "session" / "hook_calls.jsonl").stat().st_mode & 0o777


def test_record_that_cannot_be_kept_is_an_expected_fault(tmp_path):
    (tmp_path / "session").write_text("a file")
    with pytest.raises(StateError, match="cannot"):
        HookRecord(str(tmp_path / "session")).called("shell", "a", ok=True)
