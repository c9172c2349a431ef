"""A session as people read it."""

from __future__ import annotations

import json
import re

import pytest
from builders import an_envelope

from kos_retry.engine.decide import decide
from kos_retry.model import Policy
from kos_retry.report.render import FORMATS, headline
from kos_retry.report.session import Entry, SessionReport, from_records


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
    assert SessionReport("s1", ("make",), "t", "failed", 1, 1, (Entry(envelope, None),)) == from_records("s1", records)
