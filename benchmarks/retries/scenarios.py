"""When commands fail: steps whose failures last, pass, come in bursts or depend on the time.

A step is one command of one repository. A run of it is asked attempt by attempt and tells the same whoever asks, so that all
ways to retry meet the same luck.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from random import Random
from typing import NamedTuple

from retries import failures
from retries.failures import Failure

# What an attempt does, from its number and the seconds since the run began: how it fails, None when it passes.
Run = Callable[[int, float], Failure | None]
# Draws a run.
Begin = Callable[[Random], Run]

NAMED = "lasting, cause named"
UNNAMED = "lasting, cause not named"
TRANSIENT = "transient, told by its words"
SERVICE = "service that comes up"
FLAKES = "flakes that fail identically"
BURSTS = "bursts"
BROKEN = "known flake that broke for good"
ORDER = "order dependence"

# How often the attempts of a flake fail: one in seven in the mean.
FLAKE_RATE = (1.0, 6.0)
BROKEN_RATE = 0.3
MOST_ATTEMPTS = 5
HISTORY_RUNS = 20


class Step(NamedTuple):
    """Draws the runs of a step: those that are its history, and those that are measured."""

    past: Begin
    present: Begin


class Scenario(NamedTuple):
    """A kind of step: how long an attempt of it takes, and how to draw one."""

    name: str
    group: str
    seconds: float
    step: Callable[[Random], Step]
    # Whether what happens depends on the time, which passes otherwise in processes.
    timed: bool = False


class Drawn(NamedTuple):
    """One step with all its runs, each beside the number that its waits are drawn from."""

    scenario: Scenario
    past: tuple[tuple[int, Run], ...]
    present: tuple[tuple[int, Run], ...]


def draw(scenario: Scenario, *, runs: int) -> Iterator[Drawn]:
    """Yield steps without end, each with its history and at most so many measured runs; runs that pass at once are left out.

    They leave nothing in a store, and nothing to retry.
    """
    for number in count():
        step = scenario.step(_luck(scenario, number))
        past = [(run, step.past(_luck(scenario, number, "past", run))) for run in range(HISTORY_RUNS)]
        present = [(run, step.present(_luck(scenario, number, "present", run))) for run in range(runs)]
        yield Drawn(scenario, _failing(past), _failing(present))


def _luck(scenario: Scenario, *which: object) -> Random:
    return Random(f"{scenario.name}:{which}")  # noqa: S311 - the same every time, guards nothing


def _failing(runs: list[tuple[int, Run]]) -> tuple[tuple[int, Run], ...]:
    return tuple((number, run) for number, run in runs if run(1, 0.0) is not None)


def _steady(begin: Begin) -> Step:
    return Step(begin, begin)


def _lasting(failure: Failure, _: Random) -> Step:
    return _steady(lambda _luck: lambda _attempt, _elapsed: failure)


def _first(failure: Failure, most: int, _: Random) -> Step:
    """Return a step of whose attempts the first one to ``most`` fail in every run."""
    return _steady(lambda luck: _until(luck.randint(1, most), failure))


def _until(failing: int, failure: Failure) -> Run:
    return lambda attempt, _: failure if attempt <= failing else None


def _flaking(rate: float, failure: Failure) -> Begin:
    def begin(luck: Random) -> Run:
        fails = [luck.random() < rate for _ in range(MOST_ATTEMPTS)]
        return lambda attempt, _: failure if fails[attempt - 1] else None

    return begin


def _flake(rate: float | None, drawn: Random) -> Step:
    """Draw a step that fails with a rate, or with any."""
    rate = drawn.betavariate(*FLAKE_RATE) if rate is None else rate
    return _steady(_flaking(rate, _come_and_go(drawn)))


def _come_and_go(drawn: Random) -> Failure:
    return drawn.choice(list(failures.FLAKES.values()))


def _broken(drawn: Random) -> Step:
    """Draw a step that was a flake, and fails in every attempt now, in the same words."""
    failure = _come_and_go(drawn)
    return Step(_flaking(BROKEN_RATE, failure), lambda _luck: lambda _attempt, _elapsed: failure)


def _burst(drawn: Random) -> Step:
    """Draw a step that in some runs fails one to four times, and then works."""
    chance, failure = drawn.uniform(0.1, 0.5), _come_and_go(drawn)
    return _steady(lambda luck: _until(luck.randint(1, 4) if luck.random() < chance else 0, failure))


def _order(drawn: Random) -> Step:
    """Draw a step that fails in some orders of its tests, with whichever test comes at the wrong moment."""
    rate = drawn.uniform(0.2, 0.6)

    def begin(luck: Random) -> Run:
        fails = [luck.choice(failures.ORDER_DEPENDENT) if luck.random() < rate else None for _ in range(MOST_ATTEMPTS)]
        return lambda attempt, _: fails[attempt - 1]

    return _steady(begin)


def _comes_up(drawn: Random) -> Step:
    """Draw a step that fails until a service is up, which takes some seconds."""
    slowest = drawn.uniform(2.0, 20.0)

    def begin(luck: Random) -> Run:
        up_at = luck.uniform(0.5, slowest)
        return lambda _, elapsed: failures.STARTING if elapsed < up_at else None

    return _steady(begin)


SCENARIOS = (
    *(Scenario(name, NAMED, 20.0, partial(_lasting, f)) for name, f in failures.NAMED.items()),
    *(Scenario(name, UNNAMED, 60.0, partial(_lasting, f)) for name, f in failures.UNNAMED.items()),
    *(Scenario(name, TRANSIENT, 10.0, partial(_first, f, 3)) for name, f in failures.TRANSIENT.items()),
    Scenario("up after some attempts", SERVICE, 2.0, partial(_first, failures.STARTING, 4)),
    Scenario("up after some seconds", SERVICE, 2.0, _comes_up, timed=True),
    Scenario("flake", FLAKES, 60.0, partial(_flake, None)),
    Scenario("burst", BURSTS, 60.0, _burst),
    Scenario("broken flake", BROKEN, 60.0, _broken),
    Scenario("order", ORDER, 60.0, _order),
)
GROUPS = tuple(dict.fromkeys(scenario.group for scenario in SCENARIOS))
FIXED_RATES = tuple(n / 10 for n in range(1, 10))
FIXED = tuple(Scenario(f"{rate:.1f}", FLAKES, 60.0, partial(_flake, rate)) for rate in FIXED_RATES)
