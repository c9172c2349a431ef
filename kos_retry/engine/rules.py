"""The rules of a decision: one table, read from top to bottom, the first that matches wins.

Every rule sees the same `Case` and returns a verdict, or in words why it has none. They rest on equalities and counts; the bits of
a delta only explain. Where a threshold comes from stands beside it in `kos_retry.limits`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kos_retry import limits
from kos_retry.engine import actions, stagnation
from kos_retry.engine.budget import failed_actions_in_a_row, mean_cost_usd, mean_tokens
from kos_retry.engine.conditions import first_match
from kos_retry.engine.memory import Known
from kos_retry.model import (
    Budget,
    Category,
    CauseKind,
    FailureEnvelope,
    NextAttempt,
    Policy,
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


# A verdict, or why there is none.
Rule = Callable[[Case], Verdict | str]

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


def succeeded(case: Case) -> Verdict | str:
    """The last attempt passed: there is nothing left to do."""
    if case.latest.category is Category.SUCCESS:
        return Verdict(_HALT, StopReason.SUCCEEDED, f"attempt {case.latest.attempt} passed")
    return f"attempt {case.latest.attempt} did not pass"


def cancelled(case: Case) -> Verdict | str:
    """Somebody said stop; nobody wants another attempt."""
    if case.latest.category is Category.CONTEXT_CANCELLED:
        return Verdict(_HALT, StopReason.CANCELLED, "the attempt was cancelled from outside")
    return "nobody cancelled the attempt"


def stop_on(case: Case) -> Verdict | str:
    """The user named this failure as one that is never retried."""
    if condition := first_match(case.policy.stop_on, case.latest):
        return Verdict(_HALT, StopReason.NON_RETRYABLE, "a condition to stop on is met", condition)
    return _unmet(case.policy.stop_on)


def max_attempts(case: Case) -> Verdict | str:
    """The number of attempts is used up."""
    used = case.budget.attempts_used
    if case.budget.attempts_left is None:
        return "no number of attempts is set"
    if case.budget.attempts_left == 0:
        return Verdict(_HALT, StopReason.MAX_ATTEMPTS, f"{used} of {case.policy.max_attempts} attempts used")
    return f"{count(case.budget.attempts_left, 'attempt')} left"


def deadline(case: Case) -> Verdict | str:
    """The time is used up: checked before anything more is spent."""
    if case.policy.deadline_seconds is None or case.budget.seconds_left is None:
        return "no deadline is set"
    used, limit = format_duration(case.budget.seconds_used), format_duration(case.policy.deadline_seconds)
    if case.budget.seconds_left == 0:
        return Verdict(_HALT, StopReason.DEADLINE, f"{used} of {limit} used")
    return f"{format_duration(case.budget.seconds_left)} left"


def cost_budget(case: Case) -> Verdict | str:
    """The money is spent, or, where the policy reserves, what is left is less than an attempt costs in the mean.

    An unknown amount is not zero: only known amounts are counted, and the mean is that of the attempts that name one.
    """
    left, limit = case.budget.cost_usd_left, case.policy.max_cost_usd
    if left is None or limit is None:
        return "no cost is limited"
    spent, mean = case.budget.cost_usd_used or 0.0, mean_cost_usd(case.history)
    if left == 0:
        return Verdict(_HALT, StopReason.COST_BUDGET, f"{spent:.2f} of {limit:.2f} USD spent")
    if case.policy.reserve_budgets and mean is not None and mean > left:
        evidence = f"{left:.2f} of {limit:.2f} USD left, and an attempt costs {mean:.2f} USD in the mean"
        return Verdict(_HALT, StopReason.COST_BUDGET, evidence)
    return f"{left:.2f} USD left"


def token_budget(case: Case) -> Verdict | str:
    """The tokens are spent, or, where the policy reserves, what is left is less than an attempt needs in the mean."""
    left, limit = case.budget.tokens_left, case.policy.max_tokens
    if left is None or limit is None:
        return "no number of tokens is set"
    mean = mean_tokens(case.history)
    if left == 0:
        return Verdict(_HALT, StopReason.TOKEN_BUDGET, f"{case.budget.tokens_used or 0} of {limit} tokens spent")
    if case.policy.reserve_budgets and mean is not None and mean > left:
        evidence = f"{left} of {limit} tokens left, and an attempt needs {mean:.0f} in the mean"
        return Verdict(_HALT, StopReason.TOKEN_BUDGET, evidence)
    return f"{left} tokens left"


def failure_budget(case: Case) -> Verdict | str:
    """Too many actions failed one after the other, within and across attempts."""
    failed, allowed = failed_actions_in_a_row(case.history), case.policy.max_failures
    if allowed is None:
        return "no number of failed actions is set"
    if failed >= allowed:
        return Verdict(_HALT, StopReason.FAILURE_BUDGET, f"{failed} failed actions in a row, {allowed} allowed")
    return f"{failed} failed actions in a row, {allowed} allowed"


def retry_on(case: Case) -> Verdict | str:
    """The user named this failure as one to retry: neither cause nor stagnation speaks against it."""
    if condition := first_match(case.policy.retry_on, case.latest):
        return Verdict(_CONTINUE, None, "a condition to retry on is met", condition)
    return _unmet(case.policy.retry_on)


def own_budget(case: Case) -> Verdict | str:
    """The command reports that a budget of its own is spent."""
    cause = case.latest.cause
    if cause is not None and cause.kind is CauseKind.BUDGET:
        return Verdict(_HALT, StopReason.COST_BUDGET, "the command's own budget is spent", cause.evidence, _fix(case))
    return _other_cause(case)


def non_retryable(case: Case) -> Verdict | str:
    """No retry mends this cause: a human has to."""
    cause = case.latest.cause
    if cause is None or cause.retryable is not Retryable.NO or cause.kind is CauseKind.DETERMINISTIC:
        return _other_cause(case)
    return Verdict(
        _HALT, StopReason.NON_RETRYABLE, f"no retry mends this cause ({cause.kind})", _said(case), _fix(case)
    )


def known_flake(case: Case) -> Verdict | str:
    """Earlier runs passed this very failure by trying again: evidence against whatever its words or its repetition say."""
    record = case.known.record if case.known else None
    if record is None or not record.passed:
        return "no earlier run is known to have passed it on retry"
    told = (
        f"this failure passed on retry in {record.passed} of {count(record.retried, 'run')}, "
        f"within {count(record.most_attempts, 'attempt')} (estimate {record.estimate.rate:.2f})"
    )
    most = min(record.most_attempts + limits.KNOWN_FLAKE_MARGIN, limits.KNOWN_FLAKE_ATTEMPTS)
    if record.estimate.rate < limits.KNOWN_FLAKE_RATE or case.budget.attempts_used >= most:
        return f"{told}: that is worth {count(most, 'attempt')} from a rate of {limits.KNOWN_FLAKE_RATE:.2f} on"
    return Verdict(_CONTINUE, None, told)


def deterministic(case: Case) -> Verdict | str:
    """The same input fails the same way: stop, unless the next attempt may be another one."""
    cause = case.latest.cause
    if cause is None or cause.kind is not CauseKind.DETERMINISTIC:
        return _other_cause(case)
    if case.policy.next_attempt is not NextAttempt.SAME:
        return "the next attempt may be another one"
    return Verdict(_HALT, StopReason.NON_RETRYABLE, "the same input fails the same way", _said(case), _fix(case))


def transient(case: Case) -> Verdict | str:
    """Waiting mends this cause, up to a number of times in a row; it says nothing about the approach."""
    if not stagnation.is_transient(case.latest):
        return _other_cause(case)
    run = _run(case.history, stagnation.is_transient)
    if run > case.policy.max_transient_retries:
        return Verdict(_ESCALATE, StopReason.TRANSIENT_EXHAUSTED, f"{run} transient failures in a row", _said(case))
    return Verdict(_CONTINUE, None, f"waiting can mend this cause ({run} in a row)", _said(case))


def never_passed(case: Case) -> Verdict | str:
    """Many earlier runs tried this failure again and none passed: the next one will not either, unless it is another attempt."""
    record = case.known.record if case.known else None
    if record is None or record.passed:
        return "nothing is known that speaks against it"
    if case.policy.next_attempt is not NextAttempt.SAME:
        return "the next attempt may be another one"
    evidence = (
        f"this failure was seen in {count(record.runs, 'run')}, tried again in {record.retried} and "
        f"passed on retry in none (estimate at most {record.estimate.high:.2f})"
    )
    if record.estimate.high >= limits.NEVER_PASSED_RATE:
        return f"{evidence}: too few to be sure"
    return Verdict(_HALT, StopReason.NON_RETRYABLE, evidence, fix=_fix(case))


def escalation_ignored(case: Case) -> Verdict | str:
    """Help was called for, and the same failure is back."""
    for envelope in case.history[:-1]:
        if envelope.emitted_recommendation is _ESCALATE and envelope.signature == case.latest.signature:
            evidence = (
                f"escalated after attempt {envelope.attempt}, and attempt {case.latest.attempt} fails the same way"
            )
            return Verdict(_HALT, StopReason.ESCALATION_IGNORED, evidence)
    return "no earlier attempt was escalated for this failure"


def unusable_output(case: Case) -> Verdict | str:
    """What the command says cannot be read: ask another way, then ask a human."""
    run = _run(case.seen, lambda e: e.cause is not None and e.cause.kind is CauseKind.MALFORMED_OUTPUT)
    if run < limits.UNUSABLE_OUTPUTS_PIVOT:
        return f"{run} unreadable outputs in a row, {limits.UNUSABLE_OUTPUTS_PIVOT} are too many"
    how = _ESCALATE if run >= limits.UNUSABLE_OUTPUTS_ESCALATE else _PIVOT
    return Verdict(how, StopReason.UNUSABLE_OUTPUT, f"{run} unreadable outputs in a row")


def repeated_action(case: Case) -> Verdict | str:
    """One attempt did the same thing over and over, with the same result."""
    run, action = actions.longest_repeat(case.latest.executed_actions)
    if action is None:
        return "no actions are known"
    if run <= case.policy.max_repeated_actions:
        return f"no action was done more than {count(run, 'time')} in a row, {case.policy.max_repeated_actions} are allowed"
    return Verdict(
        _PIVOT, StopReason.REPEATED_ACTION, f"one action was done {run} times in a row", actions.label(action)
    )


def progress(case: Case) -> Verdict | str:
    """Fewer constraints fail than before: slow progress is progress."""
    if len(case.seen) < 2:
        return "there is no earlier failure to compare with"
    before, after = case.seen[-2].failing_constraints, case.seen[-1].failing_constraints
    told = f"{count(len(before), 'failing constraint')} became {len(after)}"
    if after and set(before) - set(after) and len(after) < len(before):
        return Verdict(_CONTINUE, None, told)
    return told


def zero_delta(case: Case) -> Verdict | str:
    """Nothing new was learned: change course at once, or call for help after several times."""
    run = case.assessment.consecutive_zero_delta
    if not run or not case.seen or case.seen[-1] is not case.latest:
        return "the last failure or its approach is another one than before"
    if run >= case.policy.max_stagnant_attempts:
        return Verdict(_ESCALATE, StopReason.ZERO_DELTA, f"{run + 1} attempts in a row fail the same way")
    if case.policy.zero_delta_fail_fast:
        return Verdict(
            _PIVOT, StopReason.ZERO_DELTA, f"attempt {case.latest.attempt} fails exactly like the one before"
        )
    return f"{count(run, 'repetition')}, {case.policy.max_stagnant_attempts} are too many"


def oscillation(case: Case) -> Verdict | str:
    """The attempts go round in a circle of failures, at least twice."""
    times, _ = stagnation.sightings(case.seen)
    if times >= case.policy.max_identical_signatures:
        return "this failure came back often enough for the rule below"
    period = stagnation.cycle(case.seen, limits.MAX_CYCLE_PERIOD, limits.MIN_CYCLE_ROUNDS)
    if not period:
        return f"the failures do not go round {limits.MIN_CYCLE_ROUNDS} times"
    return Verdict(_ESCALATE, StopReason.OSCILLATION, f"the last attempts repeat in a cycle of {period}")


def identical_signatures(case: Case) -> Verdict | str:
    """A failure that was left behind came back too often."""
    times, apart = stagnation.sightings(case.seen)
    if not apart or times < case.policy.max_identical_signatures:
        return f"this failure was seen {count(times, 'time')}" + ("" if apart else ", with no other in between")
    return Verdict(
        _ESCALATE, StopReason.IDENTICAL_SIGNATURES, f"this failure was seen {times} times, with another in between"
    )


def no_novelty(case: Case) -> Verdict | str:
    """The failures differ in numbers alone, again and again, and the numbers lead nowhere."""
    run = stagnation.monotony(case.seen)
    if run < limits.MIN_MONOTONY:
        return f"{count(run, 'failure')} in a row differ in numbers alone, {limits.MIN_MONOTONY} are too many"
    return Verdict(
        _ESCALATE, StopReason.NO_NOVELTY, f"the last {run} failures differ in numbers alone, which go up and down"
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
    no_novelty,
    still_news,
)


def _unmet(conditions: tuple[str, ...]) -> str:
    return f"none of {count(len(conditions), 'condition')} is met" if conditions else "no condition is set"


def _other_cause(case: Case) -> str:
    cause = case.latest.cause
    return f"the cause is {cause.kind}, retryable: {cause.retryable}" if cause else "no cause is known"


def _run(envelopes: tuple[FailureEnvelope, ...], holds: Callable[[FailureEnvelope], bool]) -> int:
    """Return for how many envelopes at the end something holds."""
    run = 0
    for envelope in reversed(envelopes):
        if not holds(envelope):
            break
        run += 1
    return run


def _said(case: Case) -> str:
    """Return the words of the output that the latest cause rests on."""
    cause = case.latest.cause
    return (cause.evidence if cause else "") or case.latest.error_message[:160]


def _fix(case: Case) -> str | None:
    cause = case.latest.cause
    return (cause.fix or _FIXES.get(cause.kind)) if cause else None
