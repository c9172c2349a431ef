"""What every journal promises to the loop, on the file and on one in memory."""

from __future__ import annotations

import pytest
from builders import an_envelope

from kos_retry.adapters import journal
from kos_retry.engine.decide import decide
from kos_retry.engine.redact import Redactor
from kos_retry.model import FailureEnvelope, Policy
from kos_retry.outcome import FAILED, Result


class InMemory:
    """A journal that keeps its records in a list."""

    def __init__(self):
        self._records = []

    def begin(self):
        self._records.append({"type": "begin", "argv": ["make"]})

    def attempt(self, envelope, decision):
        record = {"envelope": envelope.as_json(), "decision": decision.as_json()}
        self._records.append({"type": "attempt", **record})

    def end(self, result):
        self._records.append({"type": "end", "status": result.status, "exit_code": result.exit_code})

    def records(self):
        return iter(self._records)


class OnDisk(journal.SessionJournal):
    """The journal of a session, with the records that it wrote."""

    def __init__(self, directory):
        super().__init__(str(directory), "s1", Redactor(), pytest.fail, lambda: "2026-03-01T08:15:42.000Z", ["make"])
        self._where = str(directory)

    def records(self):
        return journal.read(self._where)


@pytest.fixture(params=["in-memory", "on-disk"])
def subject(request, tmp_path):
    return InMemory() if request.param == "in-memory" else OnDisk(tmp_path)


def _attempted(subject, number: int) -> FailureEnvelope:
    envelope = an_envelope("error: ä😀\u2028", attempt=number, failing_constraints=["a"])
    subject.attempt(envelope, decide([envelope], Policy()))
    return envelope


def _ended(subject) -> None:
    subject.end(Result(FAILED, 3, 1, (), None))


def test_events_are_kept_in_their_order(subject):
    subject.begin()
    _attempted(subject, 1)
    _attempted(subject, 2)
    _ended(subject)
    assert ["begin", "attempt", "attempt", "end"] == [r["type"] for r in subject.records()]


def test_attempt_is_there_as_soon_as_it_is_recorded(subject):
    _attempted(subject, 1)
    assert 1 == len(list(subject.records()))


def test_envelope_comes_back_as_it_was(subject):
    envelope = _attempted(subject, 1)
    (record,) = subject.records()
    assert envelope == FailureEnvelope.from_json(record["envelope"])


def test_decision_stands_beside_its_envelope(subject):
    _attempted(subject, 1)
    (record,) = subject.records()
    assert "continue" == record["decision"]["recommendation"]


def test_end_says_how(subject):
    _ended(subject)
    (record,) = subject.records()
    assert (FAILED, 3) == (record["status"], record["exit_code"])


def test_command_is_recorded_as_it_is_shown(subject):
    subject.begin()
    assert [["make"]] == [r["argv"] for r in subject.records()]


def test_second_run_starts_a_history_of_its_own(subject):
    for number in (1, 2):
        subject.begin()
        _attempted(subject, number)
    assert [2] == [r["envelope"]["attempt"] for r in journal.last_run(subject.records()) if r["type"] == "attempt"]
