"""The journal's file: what a crash can do to it, and what readers make of that."""

from __future__ import annotations

import json
import os
import stat

import pytest
from builders import an_envelope

from kos_retry.adapters import journal, state
from kos_retry.engine.decide import decide
from kos_retry.engine.redact import Redactor
from kos_retry.errors import StateError
from kos_retry.model import Policy


def _path(directory) -> str:
    return os.path.join(directory, state.JOURNAL)


def _types(directory) -> list[str]:
    return [record["type"] for record in journal.read(str(directory))]


def test_record_is_one_line_of_json(tmp_path):
    journal.append(str(tmp_path), {"type": "begin", "text": "a\nb"})
    (line,) = (tmp_path / state.JOURNAL).read_text().splitlines()
    assert {"type": "begin", "text": "a\nb"} == json.loads(line)


def test_records_are_read_in_the_order_of_their_writing(tmp_path):
    for kind in ("begin", "attempt", "end"):
        journal.append(str(tmp_path), {"type": kind})
    assert ["begin", "attempt", "end"] == _types(tmp_path)


@pytest.mark.parametrize("kept", range(1, 16))
def test_record_that_a_crash_tore_is_skipped(tmp_path, kept):
    journal.append(str(tmp_path), {"type": "begin"})
    with open(_path(tmp_path), "ab") as file:
        file.write(b'{"type":"attempt"}\n'[:kept])
    assert ["begin"] == _types(tmp_path)


def test_record_after_a_torn_one_starts_on_a_line_of_its_own(tmp_path):
    journal.append(str(tmp_path), {"type": "begin"})
    with open(_path(tmp_path), "ab") as file:
        file.write(b'{"type":"atte')
    journal.append(str(tmp_path), {"type": "end"})
    assert ["begin", "end"] == _types(tmp_path)


@pytest.mark.parametrize("line", [b"[]", b"3", b"{}", b'{"type":3}', b"\xff\xfe", b"", b'{"a":NaN}'])
def test_what_is_no_record_is_skipped(tmp_path, line):
    (tmp_path / state.JOURNAL).write_bytes(line + b'\n{"type":"end"}\n')
    assert ["end"] == _types(tmp_path)


def test_missing_journal_is_an_error_that_names_the_place(tmp_path):
    with pytest.raises(StateError, match=str(tmp_path)):
        list(journal.read(str(tmp_path)))


def test_last_begin_starts_the_history_that_counts():
    records = [{"type": t, "n": n} for n, t in enumerate(("begin", "attempt", "end", "begin", "attempt"))]
    assert [3, 4] == [r["n"] for r in journal.last_run(iter(records))]


def test_journal_without_a_begin_counts_whole():
    records = [{"type": "attempt"}, {"type": "attempt"}]
    assert records == journal.last_run(iter(records))


def test_journal_is_private(tmp_path):
    directory = tmp_path / "s"
    journal.append(str(directory), {"type": "begin"})
    modes = [stat.S_IMODE(os.stat(p).st_mode) for p in (directory, _path(directory))]
    assert [0o700, 0o600] == modes


def _journal(directory, warnings, secrets=()):
    return journal.SessionJournal(str(directory), "s1", Redactor(secrets), warnings.append, lambda: "2026-03-01")


def test_secrets_never_reach_the_disk(tmp_path):
    envelope = an_envelope("error: hunter2-and-more", executed_actions=[{"name": "login", "input": "hunter2-and-more"}])
    _journal(tmp_path, [], ["hunter2-and-more"]).attempt(envelope, decide([envelope], Policy()))
    assert "hunter2" not in (tmp_path / state.JOURNAL).read_text()


def test_first_fault_is_told_once(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    warnings: list[str] = []
    records = _journal(blocked / "s", warnings)
    for _ in range(3):
        records.envelope(an_envelope())
    assert 1 == len(warnings)


def test_envelope_survives_the_journal(tmp_path):
    envelope = an_envelope("error: ä😀", failing_constraints=["a"], usage={"cost_usd": 0.1})
    _journal(tmp_path, []).envelope(envelope)
    (record,) = journal.read(str(tmp_path))
    assert envelope == type(envelope).from_json(record["envelope"])
