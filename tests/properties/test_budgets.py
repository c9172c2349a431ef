"""No budget is ever exceeded: the real loop and the real rules over attempts of any kind, with everything else in memory.

A budget is exceeded when an attempt is started that may not be, by what is known when it would start:

- as many attempts were made as are allowed;
- the time since the run began is as long as the deadline, or longer;
- the known costs (or tokens) have reached the limit, or, where the policy reserves, what is left of it is less than the mean of the attempts
  that name a cost;
- as many actions as are allowed have failed in a row at the end of what is known, across attempts.

The first attempt is always started: nothing is known before it. What one attempt takes of time, money or tokens is not the loop's to bound; the
runner ends it at the deadline.
"""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import example, given, settings
from hypothesis import strategies as st

from kos_retry.engine.backoff import Schedule
from kos_retry.engine.decide import decide
from kos_retry.loop import Loop
from kos_retry.model import Action, Category, FailureEnvelope, Policy, Usage
from kos_retry.outcome import NextStep, Outcome, Proposal


class Made(NamedTuple):
    """What one attempt takes and does, and how long whoever has a say takes before it."""

    cost_usd: float | None = None
    tokens: int | None = None
    seconds: int = 0
    actions: tuple[bool | None, ...] = ()
    says: str = "plan"
    passes: bool = False
    step_seconds: int = 0
    gate_seconds: int = 0


# Quarters of a dollar and whole seconds add up exactly; of few values some fit exactly.
_dollars = st.integers(0, 3).map(lambda quarters: quarters / 4)
_made = st.builds(
    Made,
    cost_usd=st.none() | _dollars,
    tokens=st.none() | st.integers(0, 3).map(lambda tens: 10 * tens),
    seconds=st.integers(0, 9),
    actions=st.lists(st.sampled_from([True, False, False, None]), max_size=3).map(tuple),
    says=st.sampled_from(["plan", "way", "end"]),
    passes=st.sampled_from([False] * 19 + [True]),
    step_seconds=st.integers(0, 5),
    gate_seconds=st.integers(0, 3),
)
_attempts = st.lists(_made, min_size=1, max_size=9)
_budgets = st.fixed_dictionaries(
    {},
    optional={
        "max_attempts": st.integers(0, 7),
        "deadline_seconds": st.integers(1, 30).map(float),
        "max_cost_usd": st.integers(1, 9).map(lambda quarters: quarters / 4),
        "max_tokens": st.integers(1, 9).map(lambda tens: 10 * tens),
        "max_failures": st.integers(1, 5),
        "reserve_budgets": st.booleans(),
    },
)
_delays = st.integers(0, 6).map(float)


class World:
    """All ports of a run in memory: a clock that only moves when somebody takes time, and attempts that do as they were made.

    When an attempt starts, ``started`` gets the time and how many attempts have failed before it. A run has no more attempts than were made
    for it: the next one passes.
    """

    def __init__(self, made: list[Made], policy: Policy, delay: float) -> None:
        self.made = made
        self.policy = policy
        self.history: list[FailureEnvelope] = []
        self.started: list[tuple[float, int]] = []
        self.waited_until: list[float] = []
        self.is_there = True
        self._schedule = Schedule(delay, 1.0, delay, "none")
        self._now = 0.0

    def run(self):
        names = ("proposer", "runner", "checks", "observer", "judge", "journal", "reporter", "clock", "memory")
        return Loop(**dict.fromkeys((*names, "recovery", "supervisor"), self), gate=_Gate(self)).run()

    def now(self):
        return self._now

    def take(self, seconds):
        self._now += seconds

    def of(self, attempt):
        """Return what the attempt with this number does."""
        return self.made[attempt - 1] if attempt <= len(self.made) else Made(passes=True)

    def propose(self, attempt, history, decision, step):
        return Proposal(attempt, ["x"], {})

    def can_differ(self):
        return False

    def start(self, proposal):
        self.started.append((self._now, len(self.history)))
        self._running = self.of(proposal.attempt)
        return self

    def wait(self, seconds=None):
        if seconds is not None:
            self.take(seconds)
            self.waited_until += [self._now] if seconds else []
            return None
        self.take(self._running.seconds)
        return Outcome(0 if self._running.passes else 1, 0.0)

    def observe(self, proposal, outcome):
        made = self.of(proposal.attempt)
        envelope = FailureEnvelope(
            attempt=proposal.attempt,
            exit_code=1,
            category=Category.EXECUTION_FAILURE,
            error_message=f"error: no {made.says}",
            usage=Usage(cost_usd=made.cost_usd, tokens=made.tokens),
            executed_actions=tuple(Action(name=f"edit {n}", ok=ok) for n, ok in enumerate(made.actions)),
        )
        self.history.append(envelope)
        return envelope

    def passed(self, proposal, outcome):
        return None

    def decide(self, history, seconds_used, ledger):
        return decide(history, self.policy, schedule=self._schedule, seconds_used=seconds_used, ledger=ledger)

    def next_step(self, proposal):
        self.take(self.of(proposal.attempt).step_seconds)
        return NextStep(ran="clean")

    def ask(self, proposal, decision):
        self.take(self.of(proposal.attempt).step_seconds)
        return NextStep(guidance="go on", helped=True)

    def _nothing(self, *_):
        return None

    check = begin = attempt = end = remember = refused = going_on = _nothing


class _Gate:
    """A gate that lets everything pass and takes its time."""

    def __init__(self, world: World) -> None:
        self._world = world

    def ask(self, proposal, decision):
        self._world.take(self._world.of(proposal.attempt).gate_seconds)


def forbidden(policy: Policy, made: list[Made], now: float) -> str | None:
    """Return the budget that does not let another attempt start after those that were made, None where all do."""
    costs = [m.cost_usd for m in made if m.cost_usd is not None]
    tokens = [m.tokens for m in made if m.tokens is not None]
    failed = 0
    for ok in reversed([ok for m in made for ok in m.actions]):
        if ok is not False:
            break
        failed += 1
    if policy.max_attempts and len(made) >= policy.max_attempts:
        return "max_attempts"
    if policy.deadline_seconds is not None and now >= policy.deadline_seconds:
        return "deadline"
    if policy.max_cost_usd is not None and _used_up(policy, policy.max_cost_usd, costs):
        return "cost_budget"
    if policy.max_tokens is not None and _used_up(policy, policy.max_tokens, tokens):
        return "token_budget"
    if policy.max_failures is not None and failed >= policy.max_failures:
        return "failure_budget"
    return None


def _used_up(policy: Policy, limit: float, spent: list[float]) -> bool:
    left = limit - sum(spent)
    return left <= 0 or (policy.reserve_budgets and bool(spent) and sum(spent) / len(spent) > left)


_many = settings(max_examples=200)


@_many
@given(_attempts, _budgets, _delays, st.booleans())
@example(
    [Made(), Made(says="way"), Made(says="end", cost_usd=0.75)],
    {"max_cost_usd": 1.0, "reserve_budgets": True},
    0.0,
    True,
)
@example(
    [Made(), Made(says="way"), Made(says="end", tokens=30)], {"max_tokens": 40, "reserve_budgets": True}, 0.0, True
)
def test_no_attempt_is_started_that_a_budget_forbids(made, budgets, delay, fail_fast):
    policy = Policy(**budgets, zero_delta_fail_fast=fail_fast)
    world = World(made, policy, delay)
    world.run()
    for now, failures in world.started[1:]:
        assert None is forbidden(policy, made[:failures], now)
    assert 0 == world.started[0][1]


@_many
@given(_attempts, _budgets, _delays)
@example([Made(), Made(step_seconds=4), Made()], {"deadline_seconds": 8.0}, 3.0)
def test_no_wait_ends_at_the_deadline_or_later(made, budgets, delay):
    policy = Policy(**budgets)
    world = World(made, policy, delay)
    world.run()
    assert [] == [now for now in world.waited_until if now >= (policy.deadline_seconds or float("inf"))]


@_many
@given(_attempts, _budgets, _delays)
def test_run_goes_on_until_an_attempt_passes_or_a_budget_forbids_the_next_one(made, budgets, delay):
    policy = Policy(**budgets, retry_on=("exit:1",))
    world = World([m._replace(gate_seconds=0) for m in made], policy, delay)
    result = world.run()
    failed = made[: len(world.history)]
    by = forbidden(policy, failed, world.now())
    if by is None and policy.deadline_seconds is not None and world.now() + delay >= policy.deadline_seconds:
        by = "deadline"
    assert (result.passed, result.ended_by) == ((True, None) if len(world.started) > len(failed) else (False, by))
    assert result.passed or by is not None


@_many
@given(_attempts, _budgets, _delays)
def test_what_is_not_known_is_not_counted(made, budgets, delay):
    """Attempts that name no cost and no tokens are limited by neither."""
    policy = Policy(**budgets, retry_on=("exit:1",))
    silent = [m._replace(cost_usd=None, tokens=None) for m in made]
    unlimited = Policy(**{**budgets, "max_cost_usd": None, "max_tokens": None}, retry_on=("exit:1",))
    worlds = [World(silent, p, delay) for p in (policy, unlimited)]
    ends = [world.run().ended_by for world in worlds]
    assert (ends[0], worlds[0].started) == (ends[1], worlds[1].started)
