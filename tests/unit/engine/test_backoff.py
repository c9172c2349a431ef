"""How long to wait."""

from __future__ import annotations

import pytest

from kos_retry.engine.backoff import JITTERS, Schedule


def _delays(schedule: Schedule, count: int = 8) -> list[float]:
    return [schedule.delay(n) for n in range(1, count + 1)]


def test_delay_grows_by_the_factor_up_to_the_cap():
    assert [1, 2, 4, 8, 10, 10] == _delays(Schedule(1, 2, 10, "none"), 6)


def test_factor_of_one_keeps_the_delay():
    assert [3, 3, 3] == _delays(Schedule(3, 1, 10, "none"), 3)


@pytest.mark.parametrize("jitter", JITTERS)
def test_same_seed_gives_the_same_schedule(jitter):
    assert _delays(Schedule(jitter=jitter, seed=7)) == _delays(Schedule(jitter=jitter, seed=7))


def test_delay_does_not_depend_on_what_was_drawn_before():
    fresh, used = Schedule(seed=7), Schedule(seed=7)
    _delays(used)
    assert fresh.delay(3) == used.delay(3)


def test_another_seed_gives_another_schedule():
    assert _delays(Schedule(seed=1)) != _delays(Schedule(seed=2))


_RANGES = {"full": (0.0, 1.0), "equal": (0.5, 1.0), "none": (1.0, 1.0)}


@pytest.mark.parametrize(("jitter", "share"), _RANGES.items(), ids=_RANGES)
def test_jitter_stays_in_its_range(jitter, share):
    draws = [Schedule(4, 1, 60, jitter, seed).delay(1) / 4 for seed in range(200)]
    assert share[0] <= min(draws) <= max(draws) <= share[1]


@pytest.mark.parametrize(("jitter", "share"), [("full", (0.05, 0.95)), ("equal", (0.55, 0.95))])
def test_jitter_uses_its_range(jitter, share):
    draws = [Schedule(4, 1, 60, jitter, seed).delay(1) / 4 for seed in range(200)]
    assert min(draws) < share[0] < share[1] < max(draws)


@pytest.mark.parametrize("failures", [1, 1_000, 10_000, 10**9])
def test_delay_never_passes_the_cap(failures):
    assert Schedule(1.0, 2.0, 30.0, "none").delay(failures) <= 30


@pytest.mark.parametrize("failures", [1, 1_000, 10_000])
def test_delay_of_nothing_stays_nothing(failures):
    assert 0.0 == Schedule(0.0, 2.0, 30.0, "none").delay(failures)


def test_first_delay_is_capped_too():
    assert 5 == Schedule(10, 2, 5, "none").delay(1)
