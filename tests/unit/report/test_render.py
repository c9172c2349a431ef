"""A session as people read it."""

from __future__ import annotations

import json
import re

import pytest
from builders import a_history, an_envelope

from kos_retry.engine.decide import decide
from kos_retry.model import Policy
from kos_retry.report.render import FORMATS, headline
from kos_retry.report.session import Entry, SessionReport, from_records
from kos_retry.report.spending import spending


def _report(*envelopes, status="failed", exit_code=1) -> SessionReport:
    history = [e.replace(attempt=n) for n, e in enumerate(envelopes, 1)]
    entries = tuple(Entry(e, decide(history[:n], Policy())) for n, e in enumerate(history, 1))
    argv = ("make", "all tests")
    return SessionReport("s1", argv, "2026-03-01T08:15:42.000Z", status, exit_code, len(entries), entries)


_REPORTS = {
    "stopped": _report(
        an_envelope("CartError: total is 40", failing_constraints=["cart::total"]),
        an_envelope("CartError: total is 40", failing_constraints=["cart::total"]),
    ),
    "auth": _report(an_envelope("401 unauthorized", cause="auth", extractors={"tail": "no answer within 5s"})),
    "flaky": _report(an_envelope("connection reset", cause="transient"), status="flaky", exit_code=0),
    "passed": SessionReport("s1", ("make",), "2026-03-01T08:15:42.000Z", "passed", 0, 1, ()),
    "running": SessionReport("s1", (), "", "running", None, 0, ()),
}


@pytest.mark.parametrize("form", ["text", "markdown"])
@pytest.mark.parametrize("report", _REPORTS.values(), ids=_REPORTS)
def test_report_for_people(report, form, snapshot):
    """The digits of a signature belong to its algorithm's version, not to the report."""
    assert snapshot == re.sub(r"k\d:[0-9a-f]{12}", "k1:0123456789ab", FORMATS[form](report))


def test_report_for_programs_holds_history_and_decisions():
    whole = json.loads(FORMATS["json"](_REPORTS["stopped"]))
    assert (2, 2, "zero_delta") == (len(whole["history"]), len(whole["decisions"]), whole["stop_reason"])


_HOSTILE = ["# Heading", "```\nend", "a | b", "\x1b[31mred", "::error::no", "<img src=x>", "a`b"]


@pytest.mark.parametrize("said", _HOSTILE)
def test_markdown_keeps_the_row_of_an_attempt_whole(said):
    text = FORMATS["markdown"](_report(an_envelope("x", failing_constraints=[said])))
    (row,) = [line for line in text.splitlines() if line.startswith("| 1 ")]
    assert 6 == row.count("|")


@pytest.mark.parametrize("said", _HOSTILE)
def test_markdown_keeps_what_was_printed_in_code(said):
    text = FORMATS["markdown"](_report(an_envelope(said)))
    quoted = text.split("Attempt 1 printed:\n\n")[1].splitlines()
    assert all(line.startswith("    ") for line in quoted)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("said", _HOSTILE)
def test_report_holds_no_control_characters(form, said):
    text = FORMATS[form](_report(an_envelope(said, failing_constraints=[said])))
    assert [] == re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)


def test_headline_is_the_first_line_with_words():
    assert "no total" == headline(an_envelope("\n \n no total\nmore"))


def test_records_become_the_report_again():
    envelope = an_envelope("A")
    records = [
        {"type": "begin", "argv": ["make"], "time": "t"},
        {"type": "attempt", "envelope": envelope.as_json(), "decision": None},
        {"type": "attempt", "envelope": {"attempt": "from the future"}},
        {"type": "end", "status": "failed", "exit_code": 1, "attempts": 1},
    ]
    told = SessionReport("s1", ("make",), "t", "failed", 1, 1, (Entry(envelope, None),), (envelope,))
    assert told == from_records("s1", records)


def _costing(attempt, **usage):
    return {"type": "attempt", "envelope": {"attempt": attempt, "exit_code": 1, "usage": usage}}


_BEGIN, _RESUME = {"type": "begin", "argv": []}, {"type": "resume"}
_FAILED, _HALT = {"type": "end", "status": "failed"}, {"type": "end", "status": "passed", "attempts": 2}
_PAID = {"cost_usd": 0.5, "tokens": 7}
_CANCELLED = {"type": "attempt", "envelope": {"attempt": 1, "category": "context_cancelled", "usage": _PAID}}
# The records of a run, and what it has cost: the amounts, and the attempts that do not say.
_LEDGERS = {
    "failures": ((_BEGIN, _costing(1, **_PAID), _costing(2, **_PAID), _FAILED), (1.0, 14, [])),
    "the one that passed": ((_BEGIN, _costing(1, **_PAID), {**_HALT, "usage": _PAID}), (1.0, 14, [])),
    "passed at once": ((_BEGIN, {**_HALT, "attempts": 1, "usage": _PAID}), (0.5, 7, [])),
    "passed without a word": (
        (_BEGIN, _costing(1, **_PAID), {**_HALT, "usage": {"cost_usd": None, "tokens": None}}),
        (0.5, 7, [2]),
    ),
    "nothing known": ((_BEGIN, _costing(1), _HALT), (None, None, [])),
    "cut short and made anew": ((_BEGIN, _CANCELLED, _RESUME, _costing(1, **_PAID), _FAILED), (1.0, 14, [])),
    "killed": ((_BEGIN, _RESUME, _costing(1, **_PAID)), (0.5, 7, [1])),
    "killed in a retry": (
        (_BEGIN, {**_costing(1, **_PAID), "decision": None}, _FAILED, _RESUME, _RESUME, _costing(2, **_PAID)),
        (1.0, 14, [2]),
    ),
    "resumed after its end": ((_BEGIN, _costing(1, **_PAID), _FAILED, _RESUME, _costing(2, **_PAID)), (1.0, 14, [])),
}


@pytest.mark.parametrize(("records", "told"), _LEDGERS.values(), ids=_LEDGERS)
def test_everything_that_was_paid_for_is_counted(records, told):
    spent = from_records("s1", records).as_json()["spent"]
    assert told == (spent["cost_usd"], spent["tokens"], spent["unknown"])


def test_end_that_cannot_be_read_leaves_the_rest():
    records = (_BEGIN, _costing(1, **_PAID), {**_HALT, "attempts": "two", "usage": {"tokens": -1}})
    assert 0.5 == from_records("s1", records).as_json()["spent"]["cost_usd"]


def test_spending_is_told_with_what_is_unknown():
    records = (_BEGIN, _costing(1, cost_usd=0.5), _costing(2), _RESUME, _RESUME, _costing(3, cost_usd=1, tokens=5))
    told = spending(from_records("s1", records).ledger)
    assert "spent by 4 attempts: 1.50 USD, 5 tokens; what attempt 1, 2, 3 (cut off) cost is not known" == told


@pytest.mark.parametrize(("status", "stop"), [("repaired", "done_signal"), ("failed", "escalated"), ("failed", None)])
def test_reason_of_the_end_is_the_one_that_is_recorded_there(status, stop):
    history = a_history("A")
    told = from_records("s1", [_BEGIN, {"type": "end", "status": status, "exit_code": 1, "stop_reason": stop}])
    report = told._replace(entries=(Entry(history[0], decide(history, Policy(max_attempts=1))),))
    assert report.as_json()["stop_reason"] == (stop or "max_attempts")
    assert f"stopped: {stop or 'max_attempts'}\n" in FORMATS["text"](report) or status == "repaired"
