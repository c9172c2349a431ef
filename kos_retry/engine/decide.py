"""The decision: what the first rule that matches says, with the delay, the guidance and what is left of the budgets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kos_retry.engine import guidance, stagnation
from kos_retry.engine.backoff import Schedule
from kos_retry.engine.budget import budget_of
from kos_retry.engine.compare import compare
from kos_retry.engine.memory import Known
from kos_retry.engine.rules import RULES, Case, Rule, Verdict, cost_budget, deadline, token_budget
from kos_retry.engine.sign import comparable
from kos_retry.model import ConsideredRule, Decision, FailureEnvelope, Policy, Reason, Recommendation, StopReason
from kos_retry.text.durations import format_duration


def decide(
    history: Sequence[FailureEnvelope],
    policy: Policy,
    *,
    schedule: Schedule | None = None,
    seconds_used: float | None = None,
    known: Known | None = None,
    ledger: Sequence[FailureEnvelope] | None = None,
) -> Decision:
    """Return what to do after the last attempt of ``history``, oldest first.

    ``schedule`` gives the delay before the next attempt, none without it; ``seconds_used`` is the time spent
    so far, the sum of the durations without it; ``known`` what earlier runs made of the last failure; ``ledger`` has all attempts that
    were paid for, where these are more than the history. An empty history goes on with empty guidance, unless a budget is spent already.
    """
    signed = comparable(tuple(history))
    if not signed:
        return _without_history(policy, seconds_used, ledger or ())
    case = _case(signed, policy, seconds_used, known, ledger)
    budget = case.budget
    rule, verdict = next(_matching(case, RULES))
    delay = _delay(case, verdict, schedule)
    if delay is not None and budget.seconds_left is not None and delay >= budget.seconds_left:
        rule, verdict, delay = deadline.__name__, _no_time(delay, budget.seconds_left), None
    delta = compare(signed[-2], signed[-1]) if len(signed) > 1 else None
    return Decision(
        recommendation=verdict.recommendation,
        stop_reason=verdict.stop_reason,
        reasons=(Reason(rule=rule, evidence=_told(verdict)),),
        fix=verdict.fix,
        delay_seconds=delay,
        guidance=guidance.write(
            signed,
            policy,
            verdict.recommendation,
            (verdict.evidence, verdict.quote),
            budget,
            known.lessons if known else (),
        ),
        budget=budget,
        assessment=case.assessment,
        delta=delta,
    )


def _without_history(policy: Policy, seconds_used: float | None, ledger: Sequence[FailureEnvelope]) -> Decision:
    """Return the decision where no attempt counts; what was cut short is made anew, as long as the budgets allow."""
    budget, assessment = budget_of((), policy, seconds_used, ledger), stagnation.assess((), policy)
    rule, verdict = "no_history", Verdict(Recommendation.CONTINUE, None, "nothing was tried yet")
    if ledger:
        case = Case((), policy, budget, assessment, (), ledger[-1], None)
        rule, verdict = next(_matching(case, (deadline, cost_budget, token_budget)), (rule, verdict))
    return Decision(
        recommendation=verdict.recommendation,
        stop_reason=verdict.stop_reason,
        reasons=(Reason(rule=rule, evidence=verdict.evidence),),
        budget=budget,
        assessment=assessment,
    )


def consider(
    history: Sequence[FailureEnvelope],
    policy: Policy,
    *,
    seconds_used: float | None = None,
    known: Known | None = None,
) -> tuple[ConsideredRule, ...]:
    """Return every rule in order with whether it matches and why; the first that does decides. Empty for an empty history."""
    signed = comparable(tuple(history))
    if not signed:
        return ()
    return tuple(_considered(_case(signed, policy, seconds_used, known)))


def _considered(case: Case) -> Iterator[ConsideredRule]:
    decided = False
    for rule in RULES:
        said = rule(case)
        matches = isinstance(said, Verdict)
        evidence = _told(said) if isinstance(said, Verdict) else said
        yield ConsideredRule(rule=rule.__name__, matches=matches, decides=matches and not decided, evidence=evidence)
        decided = decided or matches


def _case(
    signed: tuple[FailureEnvelope, ...],
    policy: Policy,
    seconds_used: float | None,
    known: Known | None,
    ledger: Sequence[FailureEnvelope] | None = None,
) -> Case:
    return Case(
        signed,
        policy,
        budget_of(signed, policy, seconds_used, ledger),
        stagnation.assess(signed, policy),
        stagnation.evidential(signed),
        signed[-1],
        known,
    )


def _matching(case: Case, rules: Sequence[Rule]) -> Iterator[tuple[str, Verdict]]:
    """Yield the rules that match with what they say, in their order; the last one of all always does."""
    return ((rule.__name__, said) for rule in rules if isinstance(said := rule(case), Verdict))


def _told(verdict: Verdict) -> str:
    return ": ".join(part for part in (verdict.evidence, verdict.quote) if part)


def _no_time(delay: float, left: float) -> Verdict:
    """Return the verdict that a wait would cross the deadline."""
    evidence = f"the wait of {format_duration(delay)} would cross the deadline, {format_duration(left)} are left"
    return Verdict(Recommendation.HALT, StopReason.DEADLINE, evidence)


def _delay(case: Case, verdict: Verdict, schedule: Schedule | None) -> float | None:
    """Return the wait before the next attempt: what the other side asked for, else the schedule's."""
    if schedule is None or verdict.recommendation in (Recommendation.HALT, Recommendation.ESCALATE):
        return None
    asked = case.latest.cause.retry_after_seconds if case.latest.cause else None
    delay = schedule.delay(len(case.history)) if asked is None else min(asked, schedule.max_delay_seconds)
    return round(delay, 3)
