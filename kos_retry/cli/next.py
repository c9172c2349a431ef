"""`kos-retry next`: a history of envelopes in, a decision with guidance out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from kos_retry.adapters import journal, state
from kos_retry.adapters.clock import timestamp
from kos_retry.adapters.completion import complete
from kos_retry.adapters.extraction.extract import Extraction
from kos_retry.adapters.own_rules import OwnRules
from kos_retry.cli.inputs import lines, own_rules, parse_json, parse_model, read_bytes, state_root
from kos_retry.cli.output import complain, write_json, write_text
from kos_retry.engine.backoff import Schedule
from kos_retry.engine.decide import consider, decide
from kos_retry.engine.redact import Redactor, secret_values
from kos_retry.errors import InputError
from kos_retry.model import ConsideredRule, Decision, FailureEnvelope, Policy, Recommendation
from kos_retry.report.session import from_records
from kos_retry.text.escapes import inert, printable

# What `--exit-code` turns a recommendation into.
EXIT_CODES = {
    Recommendation.CONTINUE: 0,
    Recommendation.PIVOT: 10,
    Recommendation.ESCALATE: 20,
    Recommendation.HALT: 30,
}
_FAULT = 2


class Question(NamedTuple):
    """What is asked: a history, the policy that came with it, and the caller's id."""

    history: tuple[FailureEnvelope, ...]
    policy: dict[str, Any]
    id: Any = None


def decide_next(
    source: str, overrides: dict[str, Any], *, session: str | None, state_dir: str | None, exit_code: bool, text: bool
) -> int:
    """Write the decision over one history and return the exit status."""
    envelopes, policy = _asked(source, overrides)
    decision = (
        _in_session(envelopes, policy, session, state_dir)
        if session
        else decide(envelopes, policy, schedule=Schedule())
    )
    if not (envelopes or session):
        raise InputError(f"{_name(source)}: no envelope in it")
    if text:
        write_text(as_text(decision))
    else:
        write_json(decision)
    return EXIT_CODES[decision.recommendation] if exit_code else 0


def explain_next(
    source: str, overrides: dict[str, Any], *, session: str | None, state_dir: str | None, text: bool
) -> None:
    """Write every rule that is considered over one history, in order, and record nothing."""
    envelopes, policy = _asked(source, overrides)
    history = _continued(_recorded(session, state_dir)[1] if session else [], envelopes)
    if not history:
        raise InputError(f"{_name(source)}: no envelope in it")
    rules = consider(history, policy)
    if text:
        write_text(inert("".join(_rule_line(rule) for rule in rules)))
    else:
        write_json({"rules": [rule.as_json() for rule in rules]})


def _rule_line(rule: ConsideredRule) -> str:
    mark = "=>" if rule.decides else " +" if rule.matches else "  "
    return f"{mark} {rule.rule}: {printable(rule.evidence)}\n"


def _asked(source: str, overrides: dict[str, Any]) -> tuple[tuple[FailureEnvelope, ...], Policy]:
    question = read_question(read_bytes(source), _name(source))
    policy = parse_model(Policy, {**question.policy, **overrides}, "policy")
    with Extraction(Redactor(secret_values(os.environ))) as extraction:
        return own_rules().signed(complete(question.history, extraction)), policy


def _name(source: str) -> str:
    return "standard input" if source == "-" else source


def decide_rows(source: str, overrides: dict[str, Any]) -> None:
    """Write one line `{"id", "decision"}` for every line of ``source``; a bad one gives `{"id", "error"}`."""
    redactor, rules = Redactor(secret_values(os.environ)), own_rules()
    with Extraction(redactor) as extraction:
        for number, line in lines(source):
            write_json(_answer(number, line, overrides, extraction, rules))


def read_question(data: bytes, where: str) -> Question:
    """Return the question in any of the accepted forms.

    One envelope, an array of them, JSON Lines of them, or ``{"history": […], "policy": {…}}``.
    """
    if not data.strip():
        return Question((), {})
    try:
        return _question(parse_json(data, where), where)
    except InputError:
        rows = [(n, row) for n, row in enumerate(data.splitlines(), 1) if row.strip()]
        # One line that is not JSON is a fault in that line; several may be JSON Lines.
        if len(rows) < 2 or not rows[0][1].rstrip().endswith(b"}"):
            raise
    values = [(n, parse_json(row, f"{where}, line {n}")) for n, row in rows]
    return Question(tuple(_envelope(v, f"{where}, line {n}", i) for i, (n, v) in enumerate(values, 1)), {})


def _question(value: Any, where: str) -> Question:
    if isinstance(value, dict) and "history" in value:
        history = value["history"]
        policy = value.get("policy") or {}
        if not isinstance(history, list):
            raise InputError(f"{where}: history: should be an array of envelopes")
        if not isinstance(policy, dict):
            raise InputError(f"{where}: policy: should be an object")
        return Question(_envelopes(history, f"{where}: history"), policy, value.get("id"))
    if isinstance(value, list):
        return Question(_envelopes(value, where), {})
    return Question((_envelope(value, where, 1),), {})


def _envelopes(values: Sequence[Any], where: str) -> tuple[FailureEnvelope, ...]:
    return tuple(_envelope(v, f"{where}[{i}]", i + 1) for i, v in enumerate(values))


def _envelope(value: Any, where: str, attempt: int) -> FailureEnvelope:
    """Return one envelope; `observe --jsonl` wraps them in rows, and those are accepted as they come."""
    if isinstance(value, dict) and isinstance(value.get("envelope"), dict):
        value = value["envelope"]
    if isinstance(value, dict) and not ({"attempt", "Attempt"} & set(value)):
        value = {**value, "attempt": attempt}
    return parse_model(FailureEnvelope, value, where)


def _in_session(envelopes: Sequence[FailureEnvelope], policy: Policy, session: str, state_dir: str | None) -> Decision:
    """Append to a session, decide over the whole of its last run, and record what was decided."""
    directory, before = _recorded(session, state_dir)
    history = _continued(before, envelopes)
    if not history:
        raise InputError(f"session '{session}' has no envelope, and none was handed in")
    decision = decide(history, policy, schedule=Schedule())
    if envelopes:
        history[-1] = history[-1].replace(emitted_recommendation=decision.recommendation)
    redactor = Redactor(secret_values(os.environ))
    records = journal.SessionJournal(directory, session, redactor, complain, timestamp)
    new = history[len(before) :]
    for envelope in new:
        records.envelope(envelope, decision if envelope is new[-1] else None)
    return decision


def _recorded(session: str, state_dir: str | None) -> tuple[str, list[FailureEnvelope]]:
    """Return the directory of a session and the envelopes of its last run."""
    directory = state.session_directory(state_root(state_dir), state.check_session_id(session))
    known = os.path.exists(os.path.join(directory, state.JOURNAL))
    before = from_records(session, journal.last_run(journal.read(directory))).entries if known else ()
    return directory, [entry.envelope for entry in before]


def _continued(before: Sequence[FailureEnvelope], envelopes: Sequence[FailureEnvelope]) -> list[FailureEnvelope]:
    """Return a history with envelopes added, numbered on where they have no later number of their own."""
    history = list(before)
    for envelope in envelopes:
        after = history[-1].attempt if history else 0
        later = not before or envelope.attempt > after
        history.append(envelope if later else envelope.replace(attempt=after + 1))
    return history


def _answer(
    number: int, line: bytes, overrides: dict[str, Any], extraction: Extraction, rules: OwnRules
) -> dict[str, Any]:
    where, row_id = f"line {number}", None
    try:
        value = parse_json(line, where)
        if isinstance(value, dict):
            row_id = value.get("id")
        question = _question(value, where)
        policy = parse_model(Policy, {**question.policy, **overrides}, f"{where}: policy")
        history = rules.signed(complete(question.history, extraction))
        decision = decide(history, policy, schedule=Schedule())
        return {"id": row_id, "decision": decision.as_json()}
    except InputError as error:
        complain(str(error))
        return {"id": row_id if isinstance(row_id, (str, int, type(None))) else None, "error": str(error)}


def as_text(decision: Decision) -> str:
    """Return a decision for people: what to do, why, and the guidance."""
    lines = [f"{decision.recommendation}" + (f" ({decision.stop_reason})" if decision.stop_reason else "")]
    lines += [f"  {reason.rule}: {reason.evidence}" for reason in decision.reasons]
    lines += [f"  fix: {decision.fix}"] if decision.fix else []
    return inert("\n".join(lines) + "\n" + (f"\n{decision.guidance}" if decision.guidance else ""))
