"""What a run remembers, and that no fault of the store gets in its way."""

from __future__ import annotations

import threading

import pytest
from builders import a_history, an_envelope

from kos_retry import limits
from kos_retry.adapters.store import memory
from kos_retry.adapters.store.location import locate, with_store
from kos_retry.engine.decide import decide
from kos_retry.errors import StoreError
from kos_retry.model import NextAttempt, Policy
from kos_retry.outcome import FAILED, FLAKY, REPAIRED, Result

ARGV = ["make", "check"]


class Warned(list):
    """The warnings of a test."""

    def __call__(self, message):
        self.append(message)


@pytest.fixture
def warned():
    return Warned()


@pytest.fixture
def location(tmp_path):
    return locate(None, str(tmp_path))


def _memory(location, warned, argv=ARGV):
    return memory.StoreMemory(location, argv, warned)


def _stored(location):
    return with_store(location, 60.0, pytest.fail, lambda store: list(store.all()))


def _a_result(status=FAILED, history=(), attempts=2, **fields):
    history = history or a_history("A", "A")
    policy = Policy(next_attempt=NextAttempt.SAME)
    return Result(status, 1, attempts, history, decide(history, policy), **fields)


_STATUSES = {
    FAILED: ({}, (False, False, "zero_delta")),
    FLAKY: ({}, (True, False, "")),
    REPAIRED: ({"differed": True}, (True, True, "")),
}


@pytest.mark.parametrize(("status", "expected"), _STATUSES.items(), ids=_STATUSES)
def test_run_is_recorded_as_it_ended(location, status, expected):
    fields, kept = expected
    _memory(location, pytest.fail).remember(_a_result(status, **fields))
    (seen,) = _stored(location)
    assert kept == (seen.passed, seen.changed, seen.stop_reason)


def test_what_was_remembered_is_recalled_by_the_same_command_alone(location):
    _memory(location, pytest.fail).remember(_a_result(FLAKY))
    latest = an_envelope("A")
    assert 1 == _memory(location, pytest.fail).recall(latest).record.passed
    assert 0 == _memory(location, pytest.fail, ["make", "all"]).recall(latest).record.runs


def test_every_run_counts_once_for_itself(location):
    for _ in range(3):
        _memory(location, pytest.fail).remember(_a_result(FLAKY))
    assert 3 == _memory(location, pytest.fail).recall(an_envelope("A")).record.passed


def test_nothing_is_begun_by_a_question(location, tmp_path):
    assert _memory(location, pytest.fail).recall(an_envelope("A")) is None
    assert [] == list(tmp_path.iterdir())


def test_lessons_of_the_command_come_before_those_of_others(location):
    _memory(location, pytest.fail).remember(_a_result(FAILED))
    _memory(location, pytest.fail, ["make", "all"]).remember(_a_result(REPAIRED, differed=True))
    lessons = _memory(location, pytest.fail).recall(an_envelope("A")).lessons
    assert ["make check", "make all"] == [lesson.command_line for lesson in lessons]


def _raises(fault):
    def refuse(*_):
        raise fault

    return refuse


_FAULTS = {
    "expected": (StoreError("cannot use the store: locked"), "cannot use the store: locked; going on without it"),
    "bug": (ZeroDivisionError("x"), "cannot use the store {}: ZeroDivisionError: x; going on without it"),
}


@pytest.mark.parametrize(("fault", "told"), _FAULTS.values(), ids=_FAULTS)
def test_fault_is_told_once_and_ends_the_remembering(location, warned, monkeypatch, fault, told):
    _memory(location, pytest.fail).remember(_a_result())
    monkeypatch.setattr(memory, "with_store", _raises(fault))
    broken = _memory(location, warned)
    assert (None, None) == (broken.recall(an_envelope("A")), broken.recall(an_envelope("A")))
    broken.remember(_a_result())
    assert [told.format(location.shown)] == warned


def test_store_that_does_not_answer_is_given_up(location, warned, monkeypatch):
    _memory(location, pytest.fail).remember(_a_result())
    for name in ("STORE_LOOKUP_SECONDS", "STORE_WRITE_SECONDS"):
        monkeypatch.setattr(limits, name, 0.01)
    released = threading.Event()
    monkeypatch.setattr(memory, "with_store", lambda *_: released.wait(60))
    hung = _memory(location, warned)
    hung.recall(an_envelope("A"))
    hung.remember(_a_result())
    released.set()
    assert [f"the store {location.shown} does not answer within 0.01s; going on without it"] == warned


def test_store_is_tidied_now_and_then(location, monkeypatch):
    monkeypatch.setattr(limits, "STORE_PRUNE_EVERY", 1)
    monkeypatch.setattr(limits, "STORE_MAX_FILE_ROWS", 2)
    for n in range(4):
        _memory(location, pytest.fail, ["make", str(n)]).remember(_a_result())
    assert 2 == len(_stored(location))
