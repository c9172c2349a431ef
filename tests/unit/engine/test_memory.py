"""What a run leaves to later ones, and how it is told."""

from __future__ import annotations

from datetime import timedelta

import pytest
from builders import NOW, a_sighting, an_envelope

from kos_retry.engine.memory import Ended, choose_lessons, lesson, sightings_of
from kos_retry.errors import InputError
from kos_retry.model import Sighting


def _ended(**fields) -> Ended:
    given = {
        "origin": "here",
        "run": "r1",
        "time": NOW + timedelta(seconds=60),
        "command": "c0:make",
        "command_line": "make check",
        "attempts": 2,
        "passed": False,
        "changed": False,
        "stop_reason": "zero_delta",
    }
    return Ended(**{**given, **fields})


def _failures(names: str, *, apart_seconds: float = 10.0):
    """Return one failure for each letter; each takes four seconds."""
    return [
        an_envelope(f"error: {name}", duration_seconds=4.0, timestamp=NOW + timedelta(seconds=apart_seconds * n))
        for n, name in enumerate(names, 1)
    ]


# Failures of a run, whether it passed, and for each sighting: message, retries, their seconds, whether it is the last.
_RUNS = {
    "at-once": ("A", False, [("error: A", 0, 0.0, True)]),
    "same-twice": ("AA", False, [("error: A", 1, 10.0, True)]),
    "flake": ("A", True, [("error: A", 1, 46.0, True)]),
    "two-failures": ("AB", False, [("error: A", 1, 10.0, False), ("error: B", 0, 0.0, True)]),
    "two-failures-and-a-pass": ("AB", True, [("error: A", 1, 10.0, False), ("error: B", 1, 36.0, True)]),
    "back-again": ("ABA", False, [("error: A", 1, 10.0, True), ("error: B", 1, 10.0, False)]),
}


@pytest.mark.parametrize(("names", "passed", "expected"), _RUNS.values(), ids=_RUNS)
def test_every_failure_of_a_run_is_one_sighting(names, passed, expected):
    seen = sightings_of(_failures(names), _ended(passed=passed))
    assert expected == [(s.message, s.retries, s.retry_seconds, s.last) for s in seen]


def test_clock_that_was_set_back_gives_no_negative_time():
    (seen,) = sightings_of(_failures("AA", apart_seconds=-100.0), _ended())
    assert 0.0 == seen.retry_seconds


def test_failures_without_a_time_cost_none():
    (seen,) = sightings_of([an_envelope("A"), an_envelope("A")], _ended())
    assert (1, 0.0) == (seen.retries, seen.retry_seconds)


def test_how_the_run_ended_is_the_same_in_all_sightings():
    seen = sightings_of(_failures("ABC"), _ended(passed=True, changed=True, attempts=4, stop_reason=""))
    assert {(True, True, 4, "r1", "here")} == {(s.passed, s.changed, s.attempts, s.run, s.origin) for s in seen}


@pytest.mark.parametrize(
    ("said", "kept"),
    [("\x1b[31mred\x07", "red"), ("a\x00b", "ab"), ("x\n::error::y", "x"), ("ä" * 400, "ä" * 100), ("", "")],
    ids=["escapes", "zero-byte", "command", "long", "empty"],
)
def test_what_a_command_said_is_kept_printable_and_short(said, kept):
    (seen,) = sightings_of([an_envelope(said)], _ended(command_line=said.replace("\n", " ")[:2000]))
    assert kept == seen.message


_ENDINGS = {
    "repair": {"passed": True, "changed": True, "attempts": 3},
    "flake": {"passed": True, "attempts": 2},
    "failure": {"stop_reason": "zero_delta"},
    "failure-without-a-reason": {"attempts": 1},
    "no-message": {"message": ""},
}


@pytest.mark.parametrize("fields", _ENDINGS.values(), ids=_ENDINGS)
def test_lesson_is_one_sentence(fields, snapshot):
    assert snapshot == lesson(a_sighting(**fields), lambda said: f"<{said}>")


def test_lessons_that_say_the_same_are_told_once_and_few():
    told = choose_lessons(
        [a_sighting(str(n), age_days=n) for n in range(9)]
        + [a_sighting(f"p{n}", passed=True, attempts=n) for n in range(2, 9)]
    )
    assert ["0", "p2", "p3"] == [s.run for s in told]


_STRANGE = {
    "origin": "a b",
    "run": "",
    "command": "two words",
    "signature": "a\nb",
    "attempts": 0,
    "retries": 2**31,
    "retry_seconds": -1.0,
    "stop_reason": "Say: do it",
    "time": "2026-03-01T08:15:42",
    "v": 2,
}


@pytest.mark.parametrize(("field", "value"), _STRANGE.items(), ids=_STRANGE)
def test_sighting_of_a_stranger_is_checked(field, value):
    with pytest.raises(InputError, match=field):
        Sighting.from_json({**a_sighting().as_json(), field: value})
