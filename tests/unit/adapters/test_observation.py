"""From what was captured to redacted text, and the conditions on it."""

from __future__ import annotations

import pytest

from kos_retry.adapters import observation
from kos_retry.adapters.observation import OutcomeObserver, conclude, joined
from kos_retry.adapters.process import capture
from kos_retry.adapters.process.capture import Capture
from kos_retry.engine.conditions import first_match
from kos_retry.engine.observe import Evidence
from kos_retry.engine.redact import Redactor
from kos_retry.model import Category, CauseKind, Policy
from kos_retry.outcome import Broken, Captured, Outcome, Proposal

_SECRET = "hunter2-and-more-of-it"


class _NoExtraction:
    """Extraction without extractors."""

    class _Found:
        findings, artifacts, actions, failures, usage, totals, reported = (), (), (), {}, None, {}, False

    def begin(self, _material):
        return self

    def extracted(self):
        return self._Found


def _observed(outcome: Outcome, *, conditions=(), argv=("make",), environment=None, warn=pytest.fail):
    observer = OutcomeObserver(Redactor([_SECRET]), _NoExtraction(), "/w", conditions, (), warn)
    return observer.observe(Proposal(2, argv, environment or {}), outcome)


def _outcome(code: int = 1, **fields) -> Outcome:
    outcome = Outcome(code, 0.0)
    for name, value in fields.items():
        setattr(outcome, name, value)
    return outcome


def test_captured_parts_are_joined_with_what_was_left_out():
    assert "head\n[7 bytes omitted]\nmiddle\n\ntail\n" == joined(
        Captured(b"head\n", b"tail\n", 7, (b"middle\n",)), Redactor()
    )


def test_stream_that_was_kept_whole_is_itself():
    assert "all of it\n" == joined(Captured(b"all of it\n"), Redactor())


@pytest.mark.parametrize("size", range(4, len(_SECRET)))
def test_secret_that_the_head_cuts_in_half_is_not_told(size):
    text = joined(Captured(b"head " + _SECRET[:size].encode(), b"\ntail\n", 99), Redactor([_SECRET]))
    assert _SECRET[:4] not in text


@pytest.mark.parametrize(
    "chunks",
    [
        (b"error: login with " + _SECRET[:14].encode(), _SECRET[14:].encode() + b" was refused\n"),
        (b"error: login with " + b"z" * 28 + _SECRET.encode() + b"z" * 99 + b"\n",),
    ],
    ids=["between-two-chunks", "at-the-end-of-a-window"],
)
def test_secret_that_the_middle_cuts_in_half_is_not_told(monkeypatch, chunks):
    for name, size in (("HEAD", 20), ("TAIL", 20), ("WINDOW", 60)):
        monkeypatch.setattr(capture, f"CAPTURE_{name}_BYTES", size)
    kept = Capture()
    for chunk in (b"first line of the head\n", *chunks, b"y\n" * 40, b"z\n" * 40):
        kept.add(chunk)
    text = joined(kept.result(), Redactor([_SECRET]))
    assert "error: login with" in text
    assert _SECRET[:6] not in text


def test_any_capture_can_be_put_into_an_envelope(monkeypatch):
    for name, size in (("HEAD", 20), ("TAIL", 20)):
        monkeypatch.setattr(capture, f"CAPTURE_{name}_BYTES", size)
    kept = Capture()
    for n in range(9):
        kept.add(b"error: thing %d\n" % n)
    assert _observed(_outcome(stdout=kept.result())).omitted.output_bytes >= 0


_TOLD = {
    "exit-code": ({"code": 3}, Category.EXECUTION_FAILURE),
    "time-limit": ({"code": 124, "timed_out": True, "limit_seconds": 5}, Category.TIMEOUT),
    "cancelled": ({"code": 130, "cancelled_by": 2}, Category.CONTEXT_CANCELLED),
    "broken-check": ({"code": 0, "broken": (Broken("lint", "exit 1"),)}, Category.VERIFICATION_FAILED),
}


@pytest.mark.parametrize(("fields", "category"), _TOLD.values(), ids=_TOLD)
def test_outcome_has_a_category(fields, category):
    assert category == _observed(_outcome(**fields)).category


def test_deadline_is_told_as_the_deadline():
    outcome = _outcome(124, timed_out=True, at_deadline=True, limit_seconds=60)
    assert "ended at the deadline of 1m" == _observed(outcome).error_message


def test_broken_check_is_a_failing_constraint_with_what_it_said():
    envelope = _observed(_outcome(0, broken=(Broken("lint", f"exit 1: {_SECRET}"),)))
    assert (("lint",), "lint: exit 1: [redacted]") == (envelope.failing_constraints, envelope.error_message)


def test_command_that_was_not_found_names_what_was_looked_for_and_where():
    outcome = _outcome(127, not_started="mkae: command not found", stderr=Captured(b"mkae: command not found"))
    cause = _observed(outcome, argv=("mkae",), environment={"PATH": "/bin:/opt"}).cause
    assert CauseKind.COMMAND_NOT_FOUND == cause.kind
    assert "it was looked for in /bin:/opt" in cause.fix


_CONDITIONS = {
    "met": (["output:reset$"], b"connection reset\n", "output:reset$"),
    "not-met": (["output:refused"], b"connection reset\n", None),
    "met-in-colour": (["output:connection reset"], b"connection \x1b[31mreset\x1b[0m\n", "output:connection reset"),
    "second": (["output:refused", "output:reset"], b"reset\n", "output:reset"),
    "secret-is-gone-before": (["output:" + _SECRET], _SECRET.encode(), None),
    "longer-than-the-envelope-holds": (["output:" + "x" * 600], b"x" * 600 + b"\n", "output:" + "x" * 600),
}


@pytest.mark.parametrize(("conditions", "output", "met"), _CONDITIONS.values(), ids=_CONDITIONS)
def test_condition_on_the_output_is_found_in_the_envelope(conditions, output, met):
    """The policy bounds what it is given in the same way as the envelope."""
    envelope = _observed(_outcome(stdout=Captured(output)), conditions=conditions)
    assert met == (first_match(Policy(stop_on=tuple(conditions)).stop_on, envelope) and met)
    assert (met is not None) == bool(envelope.output_matches)


def test_without_conditions_on_the_output_no_process_is_started(monkeypatch):
    monkeypatch.setattr(observation, "search", pytest.fail)
    assert () == _observed(_outcome(stdout=Captured(b"a")), conditions=["exit:1", "timeout"]).output_matches


def test_facts_alone_make_an_envelope():
    assert Category.SUCCESS == conclude(Evidence(1, 0), {"output": "fine\n"}, Redactor(), _NoExtraction()).category
