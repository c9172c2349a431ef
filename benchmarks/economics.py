"""Retry economics: passes rescued, attempts wasted and time spent, of blind retries and of kos-retry, on generated failures.

Hundreds of runs are played through the engine in one process; some of them again as real processes, which have to end alike.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from measure import machine
from retries import processes
from retries.scenarios import (
    BROKEN,
    BURSTS,
    FIXED,
    FLAKES,
    GROUPS,
    NAMED,
    ORDER,
    SCENARIOS,
    SERVICE,
    TRANSIENT,
    UNNAMED,
    Scenario,
    draw,
)
from retries.simulation import Simulation
from retries.ways import ALONE, FIVE, KNOWING, WAYS, End, Played, Way

from kos_retry.adapters.extraction.extract import Extraction
from kos_retry.engine.redact import Redactor

# Runs that failed at first, of each scenario; what lasts ends alike every time.
FAILING_RUNS = 400
LASTING_RUNS = 5
RUNS_A_STEP = 5
# As processes, one scenario of each kind; only where something can be learned also with a history.
IN_PROCESSES = ("lint", "own check", "lock held", "up after some attempts", "flake", "burst", "broken flake", "order")
LEARNING = (FLAKES, BURSTS, BROKEN, ORDER)
REAL_STEPS = 2
REAL_RUNS = 3

# Of a flake whose attempts fail so often: passes, what the second identical failure costs and saves, and what a history mends.
BY_RATE = (
    "attempts fail at",
    "five blind",
    "kos-retry",
    "passes given up",
    "attempts saved",
    "saved for a pass",
    "20 runs known",
    "known as a flake",
    "kept of known",
)

Runs = Sequence[Played]
Measure = Callable[[End], float]


class Bound(NamedTuple):
    """What a figure has to keep, at least or at most."""

    what: str
    figure: float
    sign: str
    bound: float

    def cells(self) -> tuple[str, ...]:
        """Return the bound as a row that says whether it is met."""
        met = self.figure >= self.bound if self.sign == "≥" else self.figure <= self.bound
        return self.what, f"{self.figure:.3f}", f"{self.sign} {self.bound}", "met" if met else "not met"


def passed(end: End) -> float:
    """Count passes."""
    return float(end.passed)


def wasted(end: End) -> float:
    """Count attempts after the first of runs that failed in the end."""
    return float(end.wasted)


def attempts(end: End) -> float:
    """Count all attempts."""
    return float(end.attempts)


def seconds(end: End) -> float:
    """Count the time of attempts and of waits between them."""
    return end.seconds


def mean(runs: Runs, way: Way, measure: Measure) -> float:
    """Return what a failing run comes to in the mean."""
    return fmean(measure(run.ends[way]) for run in runs)


def mean_of_kinds(groups: Iterable[Runs], way: Way, measure: Measure) -> float:
    """Return the mean over scenarios, each of which counts the same however many runs of it were played."""
    return fmean(mean(runs, way, measure) for runs in groups)


def kept(runs: Runs, way: Way) -> float:
    """Return the share of what five blind attempts rescue that a way rescues, too."""
    return mean(runs, way, passed) / mean(runs, FIVE, passed)


def known(runs: Runs) -> Runs:
    """Return the runs whose failure the history shows to be a flake."""
    return [run for run in runs if run.known]


def play(simulation: Simulation, scenario: Scenario) -> Runs:
    """Return so many failing runs of a scenario as its table needs."""
    wanted = LASTING_RUNS if scenario.group in (NAMED, UNNAMED) else FAILING_RUNS
    played = (run for drawn in draw(scenario, runs=RUNS_A_STEP) for run in simulation.play(drawn))
    return list(islice(played, wanted))


def tabulate(title: str, header: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table as it stands in the documentation."""
    head = list(header)
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def by_group(played: dict[Scenario, Runs], measure: Measure, digits: int) -> Iterator[list[str]]:
    """Yield a row for each group and two for all of them, with a figure for each way."""
    figures = {group: [mean_of_kinds(of_group(played, group), way, measure) for way in WAYS] for group in GROUPS}
    figures["every scenario the same weight"] = [mean_of_kinds(played.values(), way, measure) for way in WAYS]
    figures["every row above the same weight"] = [
        fmean(column) for column in zip(*(figures[group] for group in GROUPS), strict=True)
    ]
    for name, row in figures.items():
        yield [name, *(f"{figure:.{digits}f}" for figure in row)]


def of_group(played: dict[Scenario, Runs], group: str) -> list[Runs]:
    """Return the runs of each scenario of a group."""
    return [runs for scenario, runs in played.items() if scenario.group == group]


def by_rate(fixed: dict[Scenario, Runs]) -> Iterator[list[str]]:
    """Yield for each rate at which attempts fail what stopping early costs and saves, without and with a history."""
    for scenario, runs in fixed.items():
        five, alone = mean(runs, FIVE, passed), mean(runs, ALONE, passed)
        saved = mean(runs, FIVE, attempts) - mean(runs, ALONE, attempts)
        known_runs = known(runs)
        ratio = f"{kept(known_runs, KNOWING):.2f}" if known_runs else "-"
        figures = (five, alone, five - alone, saved, saved / (five - alone), mean(runs, KNOWING, passed))
        yield [scenario.name, *(f"{x:.2f}" for x in figures), f"{len(known_runs) / len(runs):.2f}", ratio]


def bounds(played: dict[Scenario, Runs], fixed: dict[Scenario, Runs]) -> Iterator[Bound]:
    """Yield every bound with the figure that has to keep it."""
    groups = {group: of_group(played, group) for group in GROUPS}
    told = [run for group in (TRANSIENT, SERVICE) for runs in groups[group] for run in runs]
    for way in (ALONE, KNOWING):
        yield Bound(f"transient, told by its words: passes of five blind kept, {way.name}", kept(told, way), "≥", 0.95)
    flakes = known([run for group in (FLAKES, BURSTS) for runs in groups[group] for run in runs])
    yield Bound("known flakes and bursts: passes of five blind kept", kept(flakes, KNOWING), "≥", 0.95)
    for scenario, runs in fixed.items():
        kept_of_known = kept(known(runs), KNOWING)
        yield Bound(f"known flakes that fail at {scenario.name}: passes kept", kept_of_known, "≥", 0.95)
    for way in (ALONE, KNOWING):
        named = mean_of_kinds(groups[NAMED], way, attempts)
        unnamed = mean_of_kinds(groups[UNNAMED], way, attempts)
        yield Bound(f"lasting, cause named: attempts, {way.name}", named, "≤", 1.3)
        yield Bound(f"lasting, cause not named: attempts, {way.name}", unnamed, "≤", 2.0)
        share = mean_of_kinds(played.values(), way, wasted) / mean_of_kinds(played.values(), FIVE, wasted)
        yield Bound(
            f"every scenario the same weight: attempts wasted, share of five blind, {way.name}", share, "≤", 0.35
        )


def in_processes(simulation: Simulation) -> None:
    """Play some of the runs as real processes as well, and print whether they end alike and how long they take."""
    ends: dict[Way, list[End]] = {way: [] for way in WAYS}
    differing = []
    with tempfile.TemporaryDirectory() as directory:
        for scenario in (s for s in SCENARIOS if s.name in IN_PROCESSES):
            ways = WAYS if scenario.group in LEARNING else WAYS[: WAYS.index(KNOWING)]
            for number, drawn in enumerate(islice(draw(scenario, runs=REAL_RUNS), REAL_STEPS)):
                real = processes.play(drawn, ways, Path(directory, f"{scenario.name}.{number}"))
                for simulated, run in zip(simulation.play(drawn), real, strict=True):
                    for way, end in run.items():
                        ends[way].append(end)
                        if end[:2] != simulated.ends[way][:2]:
                            differing.append(f"{scenario.name}, {way.name}: {end} for {simulated.ends[way]}")
    rows = [
        [w.name, str(len(e)), f"{fmean(map(passed, e)):.2f}", f"{fmean(map(seconds, e)):.2f}"] for w, e in ends.items()
    ]
    tabulate("Real processes, no waits", ("", "failing runs", "rescued", "seconds a run"), rows)
    total = sum(map(len, ends.values()))
    print(f"\n{total - len(differing)} of {total} runs end as in the simulation", *differing, sep="\n")


def main() -> None:
    """Print all tables."""
    print(machine())
    with Extraction(Redactor()) as extraction:
        simulation = Simulation(extraction)
        played = {scenario: play(simulation, scenario) for scenario in SCENARIOS}
        fixed = {scenario: play(simulation, scenario) for scenario in FIXED}
        ways = ["", *(way.name for way in WAYS)]
        tabulate("Passes rescued, of runs that failed at first", ways, by_group(played, passed, 2))
        tabulate("Attempts wasted a failing run", ways, by_group(played, wasted, 2))
        tabulate("Attempts a failing run", ways, by_group(played, attempts, 2))
        tabulate("Seconds a failing run, waits included", ways, by_group(played, seconds, 0))
        tabulate("Flakes by rate", BY_RATE, by_rate(fixed))
        tabulate("Bounds", ("", "figure", "bound", ""), (bound.cells() for bound in bounds(played, fixed)))
        in_processes(simulation)


if __name__ == "__main__":
    main()
