"""Repetition in a history."""

from __future__ import annotations

import pytest
from builders import a_history, a_success, an_envelope

from kos_retry.engine.stagnation import assess, cycle, evidential, is_transient, sightings, zero_delta_run
from kos_retry.model import Recommendation, StagnationPolicy

_RUNS = {
    "single": ("A", 0),
    "different": ("AB", 0),
    "pair": ("AA", 1),
    "triple": ("AAA", 2),
    "pair-at-the-end": ("ABB", 1),
    "pair-at-the-start": ("AAB", 0),
}


@pytest.mark.parametrize(("messages", "run"), _RUNS.values(), ids=_RUNS)
def test_zero_deltas_are_counted_at_the_end(messages, run):
    assert run == zero_delta_run(a_history(*messages))


_SIGHTINGS = {
    "none": ("", (0, False)),
    "first": ("A", (1, False)),
    "adjacent": ("AA", (2, False)),
    "apart": ("ABA", (2, True)),
    "apart-and-adjacent": ("ABAA", (3, True)),
    "only-others-before": ("AAB", (1, False)),
}


@pytest.mark.parametrize(("messages", "expected"), _SIGHTINGS.values(), ids=_SIGHTINGS)
def test_sightings_of_the_latest_failure(messages, expected):
    assert expected == sightings(a_history(*messages))


_CYCLES = {
    "one-and-a-half-rounds": ("ABA", 0),
    "two-rounds": ("ABAB", 2),
    "two-rounds-after-something-else": ("CABAB", 2),
    "period-of-three": ("ABCABC", 3),
    "period-over-the-limit": ("ABCDEABCDE", 0),
    "stuck-is-no-cycle": ("AAAA", 0),
    "broken-off": ("ABABC", 0),
    "empty": ("", 0),
}


@pytest.mark.parametrize(("messages", "period"), _CYCLES.values(), ids=_CYCLES)
def test_cycle_counts_from_the_second_round(messages, period):
    assert period == cycle(a_history(*messages), 4, 2)


_TRANSIENT = {
    "transient": ("transient", True),
    "runner-lost": ("runner_lost", True),
    "transient-but-not-to-be-retried": ({"kind": "transient", "retryable": "no"}, False),
    "auth": ("auth", False),
    "none": (None, False),
}


@pytest.mark.parametrize(("cause", "expected"), _TRANSIENT.values(), ids=_TRANSIENT)
def test_transient_is_what_waiting_mends(cause, expected):
    assert expected == is_transient(an_envelope(cause=cause))


def test_success_and_transient_trouble_say_nothing_about_the_approach():
    telling = an_envelope()
    assert (telling,) == evidential([a_success(), telling, an_envelope(cause="transient")])


def test_assessment_counts_what_it_judges():
    found = assess(a_history("A", "B", "A", "A"), StagnationPolicy())
    assert (True, 1, 3, False, Recommendation.PIVOT) == (
        found.is_stagnant,
        found.consecutive_zero_delta,
        found.identical_sig_occurrences,
        found.escalate,
        found.recommendation,
    )


def test_history_of_one_failure_never_stagnates():
    assert assess(a_history("A"), StagnationPolicy()).is_stagnant is False


def test_history_of_transient_failures_never_stagnates():
    assert assess(a_history("A", "A", "A", cause="transient"), StagnationPolicy()).is_stagnant is False
