"""The estimate that a failure passes when it is run again: known values, and what counts."""

from __future__ import annotations

import math

import pytest
from builders import NOW, a_record, a_sighting

from kos_retry import limits
from kos_retry.engine.estimate import beta_cdf, beta_quantile, estimate, record_of, weight


def _binomial(x: float, a: int, b: int) -> float:
    """Return I_x(a, b) for whole numbers: the chance of at least ``a`` passes in ``a + b - 1`` trials (DLMF 8.17.5)."""
    n = a + b - 1
    return math.fsum(math.comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(a, n + 1))


@pytest.mark.parametrize("x", [1e-9, 0.001, 0.05, 0.3, 0.5, 0.7, 0.95, 0.999])
@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 6), (2, 2), (1, 46), (8, 8), (30, 3), (200, 7), (120, 400)])
def test_distribution_is_the_binomial_sum_for_whole_numbers(x, a, b):
    assert _binomial(x, a, b) == pytest.approx(beta_cdf(x, a, b), rel=1e-9, abs=1e-12)


# Closed forms for parameters that are no whole numbers.
_CLOSED = {
    "arcsine": (0.25, 0.5, 0.5, 2 / math.pi * math.asin(math.sqrt(0.25))),
    "power": (0.3, 2.5, 1.0, 0.3**2.5),
    "mirrored-power": (0.3, 1.0, 2.5, 1 - 0.7**2.5),
    "below": (-1.0, 2.0, 3.0, 0.0),
    "beyond": (2.0, 2.0, 3.0, 1.0),
    "symmetric": (0.5, 3.7, 3.7, 0.5),
}


@pytest.mark.parametrize(("x", "a", "b", "expected"), _CLOSED.values(), ids=_CLOSED)
def test_distribution_has_its_closed_forms(x, a, b, expected):
    assert expected == pytest.approx(beta_cdf(x, a, b), abs=1e-11)


@pytest.mark.parametrize("p", [0.001, 0.025, 0.5, 0.975, 0.999])
@pytest.mark.parametrize("b", [1.0, 6.0, 36.5, 500.0])
def test_quantile_of_no_passes_has_its_closed_form(p, b):
    assert 1 - (1 - p) ** (1 / b) == pytest.approx(beta_quantile(p, 1.0, b), rel=1e-7)


@pytest.mark.parametrize("p", [0.025, 0.5, 0.975])
@pytest.mark.parametrize(("a", "b"), [(8.0, 8.0), (1.3, 40.2), (90_000.0, 10.5), (600_000.0, 400_000.0)])
def test_quantile_is_the_inverse_of_the_distribution(p, a, b):
    assert p == pytest.approx(beta_cdf(beta_quantile(p, a, b), a, b), abs=1e-5)


def test_without_trials_the_prior_speaks():
    assert 1 / 7 == pytest.approx(estimate([]).rate)


@pytest.mark.parametrize(
    ("trials", "rate"),
    [
        ([(True, 0.0)], 2 / 8),
        ([(True, 0.0)] * 7 + [(False, 0.0)] * 2, 8 / 16),
        ([(False, 0.0)] * 40, 1 / 47),
        ([(True, 30.0)] * 2, 2 / 8),
        ([(True, 60.0)] * 4, 2 / 8),
    ],
    ids=["one-pass", "seven-of-nine", "none-of-forty", "half-a-life-ago", "a-life-ago"],
)
def test_rate_is_the_mean_of_the_posterior(trials, rate):
    assert rate == pytest.approx(estimate(trials).rate)


def test_interval_lies_round_the_rate():
    found = estimate([(True, 0.0)] * 7 + [(False, 0.0)] * 2)
    assert (0.2659, 0.5, 0.7341) == tuple(round(value, 4) for value in (found.low, found.rate, found.high))


@pytest.mark.parametrize(
    ("age", "expected"), [(0, 1.0), (limits.HALF_LIFE_DAYS, 0.5), (-5, 1.0), (1e9, 0.0), (math.inf, 0.0)]
)
def test_weight_halves_with_age(age, expected):
    assert expected == pytest.approx(weight(age))


def test_thirty_retried_runs_without_a_pass_are_what_it_takes():
    """What `limits.NEVER_PASSED_RATE` says of itself."""
    highs = [estimate([(False, 0.0)] * n).high < limits.NEVER_PASSED_RATE for n in (29, 30)]
    assert [False, True] == highs


# Runs, and what they count as: (runs, retried, passed, repaired, failed).
_COUNTED = {
    "failed-after-a-retry": ({}, (1, 1, 0, 0, 1)),
    "failed-at-once": ({"retries": 0, "attempts": 1}, (1, 0, 0, 0, 1)),
    "failed-after-a-change": ({"changed": True}, (1, 0, 0, 0, 1)),
    "flake": ({"passed": True}, (1, 1, 1, 0, 0)),
    "repair": ({"passed": True, "changed": True}, (1, 0, 0, 1, 0)),
}


@pytest.mark.parametrize(("fields", "counts"), _COUNTED.values(), ids=_COUNTED)
def test_run_counts_as_what_it_was(fields, counts):
    record = record_of([a_sighting(**fields)], NOW)
    assert counts == (record.runs, record.retried, record.passed, record.repaired, record.failed)


def test_repairs_and_changed_attempts_leave_the_estimate_alone():
    assert estimate([]) == a_record(repaired=9, runs=20).estimate


def test_most_attempts_are_those_of_a_pass_on_retry():
    seen = [
        a_sighting("a", passed=True, attempts=3),
        a_sighting("b", attempts=9),
        a_sighting("c", passed=True, changed=True, attempts=8),
    ]
    assert 3 == record_of(seen, NOW).most_attempts


def test_first_and_last_are_found_whatever_the_order():
    seen = [a_sighting(str(n), age_days=age) for n, age in enumerate((3, 9, 1))]
    record = record_of(seen, NOW)
    assert (9, 1) == ((NOW - record.first_seen).days, (NOW - record.last_seen).days)


def test_nothing_seen_is_an_empty_record():
    record = record_of([], NOW)
    assert (0, None, estimate([])) == (record.runs, record.last_seen, record.estimate)
