"""What holds for the estimate over any runs."""

from __future__ import annotations

import math

from builders import NOW, a_sighting
from hypothesis import given
from hypothesis import strategies as st

from kos_retry.engine.estimate import beta_cdf, beta_quantile, estimate, record_of

_ages = st.floats(-1e3, 1e4) | st.sampled_from([0.0, 30.0, 1e308])
_trials = st.lists(st.tuples(st.booleans(), _ages), max_size=60)
_shapes = st.floats(0.5, 1e4)


@given(_trials)
def test_estimate_stays_within_its_bounds(trials):
    found = estimate(trials)
    assert 0.0 <= found.low < found.rate < found.high <= 1.0


@given(_trials, st.randoms(use_true_random=False))
def test_order_of_the_runs_changes_nothing(trials, draw):
    shuffled = list(trials)
    draw.shuffle(shuffled)
    assert estimate(trials) == estimate(shuffled)


@given(_trials, _ages)
def test_pass_more_never_lowers_it_and_failure_more_never_raises_it(trials, age):
    less, as_it_is, more = (estimate([*trials, *one]) for one in ([(False, age)], [], [(True, age)]))
    for name in ("low", "rate", "high"):
        assert getattr(less, name) <= getattr(as_it_is, name) + 1e-9
        assert getattr(as_it_is, name) <= getattr(more, name) + 1e-9


@given(_trials, st.floats(0, 1e3))
def test_age_takes_it_back_towards_the_prior(trials, days):
    prior = estimate([]).rate
    older = estimate([(passed, max(0.0, age) + days) for passed, age in trials]).rate
    assert abs(older - prior) <= abs(estimate(trials).rate - prior) + 1e-9 or len({passed for passed, _ in trials}) > 1


@given(st.floats(0, 1), st.floats(0, 1), _shapes, _shapes)
def test_distribution_grows(x, y, a, b):
    low, high = sorted((x, y))
    assert 0.0 <= beta_cdf(low, a, b) <= beta_cdf(high, a, b) + 1e-9 <= 1.0 + 1e-9


@given(st.floats(0, 1), _shapes, _shapes)
def test_distribution_has_a_mirror_image(x, a, b):
    assert math.isclose(beta_cdf(x, a, b) + beta_cdf(1 - x, b, a), 1.0, abs_tol=1e-6)


@given(st.floats(0.001, 0.999), st.floats(0.001, 0.999), _shapes, _shapes)
def test_quantile_grows(p, q, a, b):
    low, high = sorted((p, q))
    assert 0.0 <= beta_quantile(low, a, b) <= beta_quantile(high, a, b) + 1e-9 <= 1.0 + 1e-9


_runs = st.lists(
    st.fixed_dictionaries(
        {
            "passed": st.booleans(),
            "changed": st.booleans(),
            "retries": st.integers(0, 3),
            "attempts": st.integers(1, 9),
            "age_days": st.integers(0, 400),
        }
    ),
    max_size=20,
)


@given(_runs, st.randoms(use_true_random=False))
def test_record_does_not_depend_on_the_order_and_adds_up(runs, draw):
    seen = [a_sighting(f"r{n}", **run) for n, run in enumerate(runs)]
    record = record_of(seen, NOW)
    draw.shuffle(seen)
    assert record == record_of(seen, NOW)
    assert record.passed <= record.retried <= record.runs == record.failed + sum(s.passed for s in seen)
