"""The decision: an ordered table of small rules, the first that matches wins and names itself.

Read `RULES` from top to bottom. Every rule sees the same `Case` and returns a verdict or None. They rest on
equalities and counts; the bits of a delta only explain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kos_retry import limits
from kos_retry.engine import actions, guidance, stagnation
from kos_retry.engine.backoff import Schedule
from kos_retry.engine.budget import budget_of, failed_actions_in_a_row
from kos_retry.engine.compare import compare
from kos_retry.engine.conditions import first_match
from kos_retry.engine.memory import Known
from kos_retry.engine.sign import comparable
from kos_retry.model import (
    Budget,
    Category,
    CauseKind,
    Decision,
    FailureEnvelope,
    NextAttempt,
    Policy,
    Reason,
    Recommendation,
    Retryable,
    StagnationAssessment,
    StopReason,
)
from kos_retry.text.durations import format_duration
from kos_retry.text.words import count


class Case(NamedTuple):
    """What a decision rests on: the signed history, oldest first, and what was made of it.

    ``seen`` are the attempts that say something about the approach; ``latest`` is the last attempt, and ``known`` what
    earlier runs of the same command made of its failure.
    """

    history: tuple[FailureEnvelope, ...]
    policy: Policy
    budget: Budget
    assessment: StagnationAssessment
    seen: tuple[FailureEnvelope, ...]
    latest: FailureEnvelope
    known: Known | None


class Verdict(NamedTuple):
    """What one rule says, on which evidence.

    ``evidence`` is in our own words; what an output or a caller said stands in ``quote``, so that it is
    always marked as a quotation.
    """

    recommendation: Recommendation
    stop_reason: StopReason | None
    evidence: str
    quote: str = ""
    fix: str | None = None


Rule = Callable[[Case], Verdict | None]

_HALT, _ESCALATE = Recommendation.HALT, Recommendation.ESCALATE
_PIVOT, _CONTINUE = Recommendation.PIVOT, Recommendation.CONTINUE

# What a human has to do where the cause itself does not say.
_FIXES = {
    CauseKind.AUTH: "check the credential: log in again, renew the token or API key, or ask an administrator for access",
    CauseKind.QUOTA: "wait until the quota resets, or raise the limit",
    CauseKind.BILLING: "add credit or fix the billing of the plan",
    CauseKind.CONFIG: "fix the configuration, or trust the folder that it asks about",
    CauseKind.PERMISSION_DENIED: "grant the permission that was denied",
    CauseKind.COMMAND_NOT_FOUND: "install the command, or correct its name or PATH: it was not found",
    CauseKind.ENVIRONMENT: "repair the machine: look at free disk space and writable paths first",
    CauseKind.BUDGET: "raise the command's own budget, or split the work",
    CauseKind.DETERMINISTIC: "change the code or the call: the same input fails the same way",
}


def succeeded(case: Case) -> Verdict | None:
    """The last attempt passed: there is nothing left to do."""
    if case.latest.category is Category.SUCCESS:
        return Verdict(_HALT, StopReason.SUCCEEDED, f"attempt {case.latest.attempt} passed")
    return None


def cancelled(case: Case) -> Verdict | None:
    """Somebody said stop; nobody wants another attempt."""
    if case.latest.category is Category.CONTEXT_CANCELLED:
        return Verdict(_HALT, StopReason.CANCELLED, "the attempt was cancelled from outside")
    return None


def stop_on(case: Case) -> Verdict | None:
    """The user named this failure as one that is never retried."""
    if condition := first_match(case.policy.stop_on, case.latest):
        return Verdict(_HALT, StopReason.NON_RETRYABLE, "a condition to stop on is met", condition)
    return None


def retry_on(case: Case) -> Verdict | None:
    """The user named this failure as one to retry: neither cause nor stagnation speaks against it."""
    if condition := first_match(case.policy.retry_on, case.latest):
        return Verdict(_CONTINUE, None, "a condition to retry on is met", condition)
    return None


def max_attempts(case: Case) -> Verdict | None:
    """The number of attempts is used up."""
    if case.budget.attempts_left == 0:
        return Verdict(
            _HALT, StopReason.MAX_ATTEMPTS, f"{case.budget.attempts_used} of {case.policy.max_attempts} attempts used"
        )
    return None


def deadline(case: Case) -> Verdict | None:
    """The time is used up: checked before anything more is spent."""
    if case.budget.seconds_left == 0 and case.policy.deadline_seconds is not None:
        used, limit = format_duration(case.budget.seconds_used), format_duration(case.policy.deadline_seconds)
        return Verdict(_HALT, StopReason.DEADLINE, f"{used} of {limit} used")
    return None


def cost_budget(case: Case) -> Verdict | None:
    """The money is spent; an unknown amount is not zero, but only known amounts are counted."""
    if case.budget.cost_usd_left == 0:
        return Verdict(
            _HALT,
            StopReason.COST_BUDGET,
            f"{case.budget.cost_usd_used or 0.0:.2f} of {case.policy.max_cost_usd:.2f} USD spent",
        )
    return None


def token_budget(case: Case) -> Verdict | None:
    """The tokens are spent."""
    if case.budget.tokens_left == 0:
        return Verdict(
            _HALT, StopReason.TOKEN_BUDGET, f"{case.budget.tokens_used or 0} of {case.policy.max_tokens} tokens spent"
        )
    return None


def failure_budget(case: Case) -> Verdict | None:
    """Too many actions failed one after the other, within and across attempts."""
    failed = failed_actions_in_a_row(case.history)
    if case.policy.max_failures is not None and failed >= case.policy.max_failures:
        return Verdict(
            _HALT, StopReason.FAILURE_BUDGET, f"{failed} failed actions in a row, {case.policy.max_failures} allowed"
        )
    return None


def own_budget(case: Case) -> Verdict | None:
    """The command reports that a budget of its own is spent."""
    cause = case.latest.cause
    if cause is not None and cause.kind is CauseKind.BUDGET:
        return Verdict(_HALT, StopReason.COST_BUDGET, "the command's own budget is spent", cause.evidence, _fix(case))
    return None


def non_retryable(case: Case) -> Verdict | None:
    """No retry mends this cause: a human has to."""
    cause = case.latest.cause
    if cause is None or cause.retryable is not Retryable.NO or cause.kind is CauseKind.DETERMINISTIC:
        return None
    return Verdict(
        _HALT, StopReason.NON_RETRYABLE, f"no retry mends this cause ({cause.kind})", _said(case), _fix(case)
    )


def known_flake(case: Case) -> Verdict | None:
    """Earlier runs passed this very failure by trying again: evidence against whatever its words or its repetition say."""
    record = case.known.record if case.known else None
    if record is None or not record.passed or record.estimate.rate < limits.KNOWN_FLAKE_RATE:
        return None
    most = min(record.most_attempts + limits.KNOWN_FLAKE_MARGIN, limits.KNOWN_FLAKE_ATTEMPTS)
    if case.budget.attempts_used >= most:
        return None
    evidence = (
        f"this failure passed on retry in {record.passed} of {count(record.retried, 'run')}, "
        f"within {count(record.most_attempts, 'attempt')} (estimate {record.estimate.rate:.2f})"
    )
    return Verdict(_CONTINUE, None, evidence)


def deterministic(case: Case) -> Verdict | None:
    """The same input fails the same way: stop, unless the next attempt may be another one."""
    cause = case.latest.cause
    if cause is None or cause.kind is not CauseKind.DETERMINISTIC or case.policy.next_attempt is not NextAttempt.SAME:
        return None
    return Verdict(_HALT, StopReason.NON_RETRYABLE, "the same input fails the same way", _said(case), _fix(case))


def transient(case: Case) -> Verdict | None:
    """Waiting mends this cause, up to a number of times in a row; it says nothing about the approach."""
    if not stagnation.is_transient(case.latest):
        return None
    run = 0
    for envelope in reversed(case.history):
        if not stagnation.is_transient(envelope):
            break
        run += 1
    if run > case.policy.max_transient_retries:
        return Verdict(_ESCALATE, StopReason.TRANSIENT_EXHAUSTED, f"{run} transient failures in a row", _said(case))
    return Verdict(_CONTINUE, None, f"waiting can mend this cause ({run} in a row)", _said(case))


def never_passed(case: Case) -> Verdict | None:
    """Many earlier runs tried this failure again and none passed: the next one will not either, unless it is another attempt."""
    record = case.known.record if case.known else None
    if record is None or record.passed or case.policy.next_attempt is not NextAttempt.SAME:
        return None
    if record.estimate.high >= limits.NEVER_PASSED_RATE:
        return None
    evidence = (
        f"this failure was seen in {count(record.runs, 'run')}, tried again in {record.retried} and "
        f"passed on retry in none (estimate at most {record.estimate.high:.2f})"
    )
    return Verdict(_HALT, StopReason.NON_RETRYABLE, evidence, fix=_fix(case))


def escalation_ignored(case: Case) -> Verdict | None:
    """Help was called for, and the same failure is back."""
    for envelope in case.history[:-1]:
        if envelope.emitted_recommendation is _ESCALATE and envelope.signature == case.latest.signature:
            evidence = (
                f"escalated after attempt {envelope.attempt}, and attempt {case.latest.attempt} fails the same way"
            )
            return Verdict(_HALT, StopReason.ESCALATION_IGNORED, evidence)
    return None


def unusable_output(case: Case) -> Verdict | None:
    """What the command says cannot be read: ask another way, then ask a human."""
    run = 0
    for envelope in reversed(case.seen):
        if envelope.cause is None or envelope.cause.kind is not CauseKind.MALFORMED_OUTPUT:
            break
        run += 1
    if run < limits.UNUSABLE_OUTPUTS_PIVOT:
        return None
    how = _ESCALATE if run >= limits.UNUSABLE_OUTPUTS_ESCALATE else _PIVOT
    return Verdict(how, StopReason.UNUSABLE_OUTPUT, f"{run} unreadable outputs in a row")


def repeated_action(case: Case) -> Verdict | None:
    """One attempt did the same thing over and over, with the same result."""
    run, action = actions.longest_repeat(case.latest.executed_actions)
    if action is None or run <= case.policy.max_repeated_actions:
        return None
    return Verdict(
        _PIVOT, StopReason.REPEATED_ACTION, f"one action was done {run} times in a row", actions.label(action)
    )


def progress(case: Case) -> Verdict | None:
    """Fewer constraints fail than before: slow progress is progress."""
    if len(case.seen) < 2:
        return None
    before, after = case.seen[-2], case.seen[-1]
    fixed = set(before.failing_constraints) - set(after.failing_constraints)
    if after.failing_constraints and fixed and len(after.failing_constraints) < len(before.failing_constraints):
        return Verdict(
            _CONTINUE,
            None,
            f"{len(before.failing_constraints)} failing constraints became {len(after.failing_constraints)}",
        )
    return None


def zero_delta(case: Case) -> Verdict | None:
    """Nothing new was learned: change course at once, or call for help after several times."""
    run = case.assessment.consecutive_zero_delta
    if not run or not case.seen or case.seen[-1] is not case.latest:
        return None
    if run >= case.policy.max_stagnant_attempts:
        return Verdict(_ESCALATE, StopReason.ZERO_DELTA, f"{run + 1} attempts in a row fail the same way")
    if case.policy.zero_delta_fail_fast:
        return Verdict(
            _PIVOT, StopReason.ZERO_DELTA, f"attempt {case.latest.attempt} fails exactly like the one before"
        )
    return None


def oscillation(case: Case) -> Verdict | None:
    """The attempts go round in a circle of failures, at least twice."""
    times, _ = stagnation.sightings(case.seen)
    if times >= case.policy.max_identical_signatures:
        return None
    period = stagnation.cycle(case.seen, limits.MAX_CYCLE_PERIOD, limits.MIN_CYCLE_ROUNDS)
    return (
        Verdict(_ESCALATE, StopReason.OSCILLATION, f"the last attempts repeat in a cycle of {period}")
        if period
        else None
    )


def identical_signatures(case: Case) -> Verdict | None:
    """A failure that was left behind came back too often."""
    times, apart = stagnation.sightings(case.seen)
    if not apart or times < case.policy.max_identical_signatures:
        return None
    return Verdict(
        _ESCALATE, StopReason.IDENTICAL_SIGNATURES, f"this failure was seen {times} times, with another in between"
    )


def still_news(case: Case) -> Verdict:
    """Nothing speaks against another attempt."""
    return Verdict(
        _CONTINUE,
        None,
        "the first failure, with nothing to compare it to"
        if len(case.seen) <= 1
        else "the failure or the approach is new",
    )


RULES: tuple[Rule, ...] = (
    succeeded,
    cancelled,
    stop_on,
    max_attempts,
    deadline,
    cost_budget,
    token_budget,
    failure_budget,
    retry_on,
    own_budget,
    non_retryable,
    known_flake,
    deterministic,
    transient,
    never_passed,
    escalation_ignored,
    unusable_output,
    repeated_action,
    progress,
    zero_delta,
    oscillation,
    identical_signatures,
)


def decide(
    history: Sequence[FailureEnvelope],
    policy: Policy,
    *,
    schedule: Schedule | None = None,
    seconds_used: float | None = None,
    known: Known | None = None,
) -> Decision:
    """Return what to do after the last attempt of ``history``, oldest first.

    ``schedule`` gives the delay before the next attempt, none without it; ``seconds_used`` is the time spent
    so far, the sum of the durations without it; ``known`` what earlier runs made of the last failure. An empty history goes on with empty guidance.
    """
    signed = comparable(tuple(history))
    budget = budget_of(signed, policy, seconds_used)
    assessment = stagnation.assess(signed, policy)
    if not signed:
        reason = Reason(rule="no_history", evidence="nothing was tried yet")
        return Decision(recommendation=_CONTINUE, reasons=(reason,), budget=budget, assessment=assessment)
    case = Case(signed, policy, budget, assessment, stagnation.evidential(signed), signed[-1], known)
    rule, verdict = _first(case)
    delay = _delay(case, verdict, schedule)
    if delay is not None and budget.seconds_left is not None and delay >= budget.seconds_left:
        rule, verdict, delay = deadline.__name__, _no_time(delay, budget.seconds_left), None
    delta = compare(signed[-2], signed[-1]) if len(signed) > 1 else None
    return Decision(
        recommendation=verdict.recommendation,
        stop_reason=verdict.stop_reason,
        reasons=(Reason(rule=rule, evidence=": ".join(part for part in (verdict.evidence, verdict.quote) if part)),),
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
        assessment=assessment,
        delta=delta,
    )


def _first(case: Case) -> tuple[str, Verdict]:
    for rule in RULES:
        if verdict := rule(case):
            return rule.__name__, verdict
    return still_news.__name__, still_news(case)


def _no_time(delay: float, left: float) -> Verdict:
    """Return the verdict that a wait would cross the deadline."""
    evidence = f"the wait of {format_duration(delay)} would cross the deadline, {format_duration(left)} are left"
    return Verdict(_HALT, StopReason.DEADLINE, evidence)


def _said(case: Case) -> str:
    """Return the words of the output that the latest cause rests on."""
    cause = case.latest.cause
    return (cause.evidence if cause else "") or case.latest.error_message[:160]


def _fix(case: Case) -> str | None:
    cause = case.latest.cause
    return (cause.fix or _FIXES.get(cause.kind)) if cause else None


def _delay(case: Case, verdict: Verdict, schedule: Schedule | None) -> float | None:
    """Return the wait before the next attempt: what the other side asked for, else the schedule's."""
    if schedule is None or verdict.recommendation in (_HALT, _ESCALATE):
        return None
    asked = case.latest.cause.retry_after_seconds if case.latest.cause else None
    delay = schedule.delay(len(case.history)) if asked is None else min(asked, schedule.max_delay_seconds)
    return round(delay, 3)
