"""The one loop, over ports that do as they are told."""

from __future__ import annotations

import pytest
from builders import a_success, an_envelope

from kos_retry.loop import Loop
from kos_retry.model import Budget, Decision, Reason, Recommendation, StagnationAssessment
from kos_retry.outcome import Broken, NextStep, Outcome, Proposal, Refusal


def _outcome(code: int, **fields) -> Outcome:
    outcome = Outcome(code, 0.0)
    for name, value in fields.items():
        setattr(outcome, name, value)
    return outcome


def _decision(recommendation: str, delay: float | None = 0.0, seconds_left: float | None = None) -> Decision:
    return Decision(
        recommendation=Recommendation(recommendation),
        reasons=(Reason(rule="told", evidence="told"),),
        delay_seconds=delay,
        budget=Budget(attempts_used=1, seconds_left=seconds_left),
        assessment=StagnationAssessment(
            is_stagnant=False, escalate=False, recommendation=Recommendation.CONTINUE, reason="told"
        ),
    )


class _World:
    """All ports of one run, and a log of what the loop asked of them."""

    def __init__(
        self,
        outcomes,
        recommendations=(),
        *,
        can_differ=False,
        interrupted=None,
        broken=(),
        cancelled_in_check=None,
        flaky_fails=False,
        delay=0.0,
        seconds_left=None,
    ):
        self.delay = delay
        self.seconds_left = seconds_left
        self.time = 0.0
        self.step, self.help, self.is_there = None, None, False
        self.step_seconds = 0.0
        self.refusals = []
        self.looks_into_passes = False
        self._outcomes = list(outcomes)
        self._recommendations = list(recommendations)
        self._can_differ = can_differ
        self._interrupted = interrupted
        self._broken = list(broken)
        self._cancelled_in_check = cancelled_in_check
        self._flaky_fails = flaky_fails
        self.log: list[str] = []

    def run(self):
        ports = ("proposer", "runner", "checks", "observer", "judge", "journal", "reporter", "clock", "memory")
        ports += ("gate", "recovery", "supervisor")
        return Loop(**{name: _Port(self, name) for name in ports}, flaky_fails=self._flaky_fails).run()


class _Port:
    def __init__(self, world, name):
        self._world = world
        self._name = name

    def _log(self, text):
        self._world.log.append(f"{self._name}.{text}")

    @property
    def is_there(self):
        return self._world.is_there

    def ask(self, proposal, decision):
        if self._name == "gate":
            return self._world.refusals.pop(0) if self._world.refusals else None
        return self._world.help

    def next_step(self, proposal):
        self._world.time += self._world.step_seconds
        return self._world.step

    def refused(self, refusal):
        self._log(f"refused {refusal.stop_reason}")

    def going_on(self, decision, step):
        self._log("going_on")

    def propose(self, attempt, history, decision, step):
        self._log(f"propose {attempt}")
        return Proposal(attempt, ["x"], {}, guidance="told" if self._world._can_differ and history else "")

    def can_differ(self):
        return self._world._can_differ

    def start(self, proposal):
        self._log(f"start {proposal.attempt}")
        return self

    def wait(self, seconds=None):
        if seconds is None:
            return self._world._outcomes.pop(0)
        self._log(f"wait {seconds:g}")
        return self._world._interrupted

    def check(self, proposal, attempt, outcome):
        self._log(f"check {proposal.attempt}")
        outcome.broken = (
            tuple(Broken(name, "told") for name in self._world._broken.pop(0)) if self._world._broken else ()
        )
        if self._world._cancelled_in_check is not None:
            outcome.cancelled_by, outcome.exit_code = self._world._cancelled_in_check, 130

    def observe(self, proposal, outcome):
        self._log(f"observe {proposal.attempt}")
        return an_envelope(attempt=proposal.attempt, exit_code=outcome.exit_code)

    def passed(self, proposal, outcome):
        return a_success(attempt=proposal.attempt) if self._world.looks_into_passes else None

    def decide(self, history, seconds_used, ledger):
        self._log(f"decide {len(history)}")
        return _decision(self._world._recommendations.pop(0), self._world.delay, self._world.seconds_left)

    def begin(self):
        self._log("begin")

    def attempt(self, envelope, decision, goes_on=None):
        self._log(f"attempt {envelope.attempt}")

    def output_lost(self, outcome):
        self._log(f"output_lost {outcome.sink_error}")

    def left_running(self, outcome):
        self._log("left_running")

    def end(self, result):
        self._log(f"end {result.status}")

    def remember(self, result):
        self._log(f"remember {result.status}")

    def now(self):
        return self._world.time


_RUNS = {
    "pass": (_World([_outcome(0)]), ("passed", 0, 1)),
    "flake": (_World([_outcome(1), _outcome(0)], ["continue"]), ("flaky", 0, 2)),
    "repair": (_World([_outcome(1), _outcome(0)], ["continue"], can_differ=True), ("repaired", 0, 2)),
    "halt": (_World([_outcome(3)], ["halt_loop"]), ("failed", 3, 1)),
    "escalation": (_World([_outcome(3)], ["escalate_to_supervisor"]), ("failed", 3, 1)),
    "pivot-without-guidance": (_World([_outcome(3)], ["pivot_strategy"]), ("failed", 3, 1)),
    "pivot-with-guidance": (
        _World([_outcome(3), _outcome(0)], ["pivot_strategy"], can_differ=True),
        ("repaired", 0, 2),
    ),
    "last-code-counts": (_World([_outcome(1), _outcome(2)], ["continue", "halt_loop"]), ("failed", 2, 2)),
    "cancelled-attempt": (_World([_outcome(130, cancelled_by=2)], ["continue"]), ("cancelled", 130, 1)),
    "cancelled-wait": (_World([_outcome(1)], ["continue"], interrupted=15), ("cancelled", 143, 1)),
    "reader-gone": (_World([_outcome(141, sink_closed=True)], ["continue"]), ("failed", 141, 1)),
    "broken-check": (_World([_outcome(0)], ["halt_loop"], broken=[["lint"]]), ("failed", 1, 1)),
    "broken-check-mended": (
        _World([_outcome(0), _outcome(0)], ["continue"], broken=[["lint"], []]),
        ("flaky", 0, 2),
    ),
    "cancelled-check": (_World([_outcome(0)], ["continue"], cancelled_in_check=2), ("cancelled", 130, 1)),
    "flake-that-fails": (_World([_outcome(3), _outcome(0)], ["continue"], flaky_fails=True), ("flaky", 3, 2)),
    "flake-that-fails-by-its-first-code": (
        _World([_outcome(4), _outcome(3), _outcome(0)], ["continue"] * 2, flaky_fails=True),
        ("flaky", 4, 3),
    ),
    "broken-check-that-flakes-and-fails": (
        _World([_outcome(0), _outcome(0)], ["continue"], broken=[["lint"], []], flaky_fails=True),
        ("flaky", 1, 2),
    ),
    "repair-is-no-flake": (
        _World([_outcome(3), _outcome(0)], ["continue"], can_differ=True, flaky_fails=True),
        ("repaired", 0, 2),
    ),
    "first-pass-is-no-flake": (_World([_outcome(0)], flaky_fails=True), ("passed", 0, 1)),
    "time-limit": (_World([_outcome(124, timed_out=True)], ["halt_loop"]), ("failed", 124, 1)),
}


@pytest.mark.parametrize(("world", "expected"), _RUNS.values(), ids=_RUNS)
def test_run_ends(world, expected):
    result = world.run()
    assert expected == (result.status, result.exit_code, result.attempts)


def test_pass_asks_neither_observer_nor_judge():
    world = _World([_outcome(0)])
    world.run()
    assert [
        "proposer.propose 1",
        "runner.start 1",
        "journal.begin",
        "checks.check 1",
        "journal.end passed",
        "reporter.end passed",
    ] == world.log


def test_failed_command_is_not_checked():
    world = _World([_outcome(1)], ["halt_loop"])
    world.run()
    assert [] == [entry for entry in world.log if entry.startswith("checks.")]


def test_output_that_was_lost_is_told():
    world = _World([_outcome(0, sink_error="No space left on device")])
    world.run()
    assert "reporter.output_lost No space left on device" in world.log


def test_reader_that_left_is_no_lost_output():
    world = _World([_outcome(141, sink_closed=True)], ["halt_loop"])
    world.run()
    assert [] == [entry for entry in world.log if entry.startswith("reporter.output_lost")]


def test_what_is_decided_is_written_before_it_is_told_and_acted_on():
    world = _World([_outcome(1), _outcome(0)], ["continue"])
    world.run()
    assert [
        "observer.observe 1",
        "judge.decide 1",
        "journal.attempt 1",
        "reporter.attempt 1",
        "reporter.going_on",
        "clock.wait 0",
        "proposer.propose 2",
    ] == world.log[3:10]


def test_history_remembers_what_was_decided():
    result = _World([_outcome(1)], ["halt_loop"]).run()
    assert [Recommendation.HALT] == [e.emitted_recommendation for e in result.history]


def test_processes_that_a_passed_command_left_are_told():
    world = _World([_outcome(0, survivors=(7,))])
    world.run()
    assert "reporter.left_running" in world.log


_REMEMBERED = {
    "flake": (_World([_outcome(1), _outcome(0)], ["continue"]), ["flaky"]),
    "repair": (_World([_outcome(1), _outcome(0)], ["continue"], can_differ=True), ["repaired"]),
    "failure": (_World([_outcome(1)], ["halt_loop"]), ["failed"]),
    "pass": (_World([_outcome(0)]), []),
    "cancelled-attempt": (_World([_outcome(130, cancelled_by=2)], ["continue"]), []),
    "cancelled-wait": (_World([_outcome(1)], ["continue"], interrupted=15), []),
    "reader-gone": (_World([_outcome(141, sink_closed=True)], ["continue"]), []),
}


@pytest.mark.parametrize(("world", "statuses"), _REMEMBERED.values(), ids=_REMEMBERED)
def test_what_counts_is_remembered_after_all_is_told(world, statuses):
    world.run()
    assert statuses == [entry.split()[-1] for entry in world.log if entry.startswith("memory.")]
    assert [] == statuses or world.log[-1].startswith("memory.")


@pytest.mark.parametrize("can_differ", [True, False])
def test_result_says_whether_the_attempts_differed(can_differ):
    world = _World([_outcome(1), _outcome(2)], ["continue", "halt_loop"], can_differ=can_differ)
    assert can_differ == world.run().differed


def _stepping(recommendation, *, step=None, help_=None, is_there=False, outcomes=2):
    """Return a run's result and log where recovery and supervisor say how it goes on after a failure."""
    world = _World([_outcome(3)] + [_outcome(0)] * (outcomes - 1), [recommendation])
    world.step, world.help, world.is_there = step, help_, is_there
    return world.run(), world.log


_STEPS = {
    "step-ran": (("pivot_strategy", NextStep(ran="clean"), None, False), ("repaired", 0, None)),
    "no-step": (("pivot_strategy", None, None, False), ("failed", 3, None)),
    "help-instead-of-a-step": (("pivot_strategy", None, NextStep(helped=True), True), ("repaired", 0, None)),
    "no-help-instead-of-a-step": (("pivot_strategy", None, None, True), ("failed", 3, "escalated")),
    "signal-during-a-step": (
        ("pivot_strategy", NextStep(cancelled_by=2), None, False),
        ("cancelled", 130, "cancelled"),
    ),
    "help": (("escalate_to_supervisor", None, NextStep(helped=True), True), ("repaired", 0, None)),
    "no-help": (("escalate_to_supervisor", None, None, True), ("failed", 3, "escalated")),
    "nobody-there": (("escalate_to_supervisor", None, None, False), ("failed", 3, None)),
    "signal-during-help": (
        ("escalate_to_supervisor", None, NextStep(cancelled_by=15), True),
        ("cancelled", 143, "cancelled"),
    ),
    "halt-asks-nobody": (("halt_loop", NextStep(ran="clean"), NextStep(), True), ("failed", 3, None)),
}


@pytest.mark.parametrize(("given", "expected"), _STEPS.values(), ids=_STEPS)
def test_recovery_and_supervisor_say_how_it_goes_on(given, expected):
    recommendation, step, help_, is_there = given
    result, _ = _stepping(recommendation, step=step, help_=help_, is_there=is_there)
    assert expected == (result.status, result.exit_code, result.stop_reason)


_REFUSALS = {
    "first": ([_outcome(0)], [Refusal("gate_denied", "no")], ("failed", 125, 0, "gate_denied")),
    "second": ([_outcome(3)], [None, Refusal("verdict_void", "no")], ("failed", 3, 1, "verdict_void")),
    "signal": ([_outcome(3)], [None, Refusal("cancelled", "no", 15)], ("cancelled", 143, 1, "cancelled")),
}


@pytest.mark.parametrize(("outcomes", "refusals", "expected"), _REFUSALS.values(), ids=_REFUSALS)
def test_refused_attempt_is_not_started(outcomes, refusals, expected):
    world = _World(outcomes, ["continue"])
    world.refusals = list(refusals)
    result = world.run()
    assert expected == (result.status, result.exit_code, result.attempts, result.stop_reason)
    assert len(refusals) - 1 == len([entry for entry in world.log if entry.startswith("runner.start")])


def test_time_of_a_step_is_taken_off_the_wait():
    world = _World([_outcome(3), _outcome(0)], ["pivot_strategy"], delay=5.0)
    world.step, world.step_seconds = NextStep(ran="clean"), 3.0
    world.run()
    assert ["clock.wait 2"] == [entry for entry in world.log if entry.startswith("clock.wait")]


@pytest.mark.parametrize(("seconds", "started"), [(4.9, 2), (5.0, 1), (99.0, 1)])
def test_attempt_that_a_step_left_no_time_for_is_not_started(seconds, started):
    world = _World([_outcome(3), _outcome(0)], ["pivot_strategy"], seconds_left=5.0)
    world.step, world.step_seconds = NextStep(ran="clean"), seconds
    result = world.run()
    expected = ("repaired", 0, None) if started == 2 else ("failed", 3, "deadline")
    assert expected == (result.status, result.exit_code, result.stop_reason)
    assert started == len([entry for entry in world.log if entry.startswith("runner.start")])
    assert (started == 1) == ("reporter.refused deadline" in world.log)


def test_signal_that_the_work_is_done_is_why_the_run_ended():
    assert "done_signal" == _World([_outcome(0, done=True)]).run().stop_reason


@pytest.mark.parametrize(("looks", "paid"), [(True, [1, 2]), (False, [1])])
def test_ledger_has_the_attempt_that_passed_where_anything_is_known_of_it(looks, paid):
    world = _World([_outcome(1), _outcome(0)], ["continue"])
    world.looks_into_passes = looks
    assert paid == [envelope.attempt for envelope in world.run().ledger]
