"""The actions file: what was appended during the attempt counts, and nothing else."""

from __future__ import annotations

import pytest

from kos_retry.adapters import actions
from kos_retry.adapters.actions import ActionsFile, parsed


def _names(file: ActionsFile) -> list[str]:
    return [a.name for a in file.appended().actions]


def test_what_stood_there_before_the_attempt_does_not_count(tmp_path):
    path = tmp_path / "log"
    path.write_text('"old"\n')
    file = ActionsFile(str(path))
    file.mark()
    with path.open("a") as log:
        log.write('"new"\n')
    assert ["new"] == _names(file)


def test_file_that_appears_during_the_attempt_is_read_whole(tmp_path):
    file = ActionsFile(str(tmp_path / "log"))
    file.mark()
    (tmp_path / "log").write_text('"new"\n')
    assert ["new"] == _names(file)


def test_file_that_was_written_anew_is_read_whole(tmp_path):
    path = tmp_path / "log"
    path.write_text('"a long old line"\n')
    file = ActionsFile(str(path))
    file.mark()
    path.write_text('"new"\n')
    assert ["new"] == _names(file)


def test_file_that_is_not_there_holds_no_actions(tmp_path):
    appended = ActionsFile(str(tmp_path / "log")).appended()
    assert ((), {}) == (appended.actions, appended.faults)


def test_file_that_cannot_be_read_is_told(tmp_path):
    appended = ActionsFile(str(tmp_path)).appended()
    assert ((), ["actions-file"]) == (appended.actions, list(appended.faults))


def test_of_very_much_the_whole_lines_at_the_end_count(tmp_path, monkeypatch):
    monkeypatch.setattr(actions, "ACTIONS_FILE_BYTES", 12)
    path = tmp_path / "log"
    path.write_text('"first"\n"second"\n"third"\n')
    file = ActionsFile(str(path))
    appended = file.appended()
    assert (["third"], {}) == ([a.name for a in appended.actions], appended.faults)


_LINES = {
    "object": (b'{"name": "edit", "input": {"a": 1}, "ok": false, "result": "no"}', ("edit", {"a": 1}, False, "no")),
    "other-names": (b'{"tool": "edit", "args": [1], "output": "x", "id": 7}', ("edit", [1], None, "x")),
    "text": (b'"make all"', ("make all", None, None, None)),
    "crlf": (b'"make"\r', ("make", None, None, None)),
}


@pytest.mark.parametrize(("line", "expected"), _LINES.values(), ids=_LINES)
def test_line_is_an_action(line, expected):
    (action,) = parsed(line + b"\n").actions
    assert expected == (action.name, action.input, action.ok, action.result)


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"7",
        b"[]",
        b"{}",
        b'{"input": 1}',
        b'""',
        b"words",
        b'{"name": 5}',
        b'{"name": "x", "ok": "maybe"}',
        b"\xff",
    ],
)
def test_line_that_is_no_action_is_counted(line):
    appended = parsed(b'"a"\n' + line + b'\n\n"b"')
    assert (["a", "b"], {"actions-file": "1 of 3 lines are no actions"}) == (
        [a.name for a in appended.actions],
        appended.faults,
    )


def test_latest_actions_are_kept():
    assert ["36", "99"] == [parsed(b"".join(b'"%d"\n' % n for n in range(100))).actions[i].name for i in (0, -1)]


def test_long_input_is_bounded():
    (action,) = parsed(b'{"name": "write", "input": {"text": "' + b"x" * 100_000 + b'"}}').actions
    assert len(action.input["text"]) < 5000
