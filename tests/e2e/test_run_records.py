"""Reports and the journal: what they hold, and that losing them never loses a run."""

from __future__ import annotations

import json

import pytest

FAIL = ("--delay", "0s", "--", "sh", "-c", "echo 'error: the lamp is out' >&2; exit 7")
# Fails three times, each time in another way.
FAIL_ANEW = ("--delay", "0s", "--", "sh", "-c", "echo failure $KOS_RETRY_ATTEMPT | tr 1-9 a-i >&2; exit 7")
REPORT_STARTS = {"text": "session s1: failed, exit code 7\n", "json": "{\n", "markdown": "### Failed, exit code 7\n"}


def test_report_file_is_what_report_prints(kos_retry, tmp_path):
    path = tmp_path / "report"
    kos_retry("run", "--session", "s1", "--report", f"json:{path}", *FAIL)
    printed = kos_retry("report", "--session", "s1", "--format", "json").stdout.decode()
    assert without_start(path.read_text()) == without_start(printed)


def without_start(text):
    """Return a report without the time of its start, which run and journal take one after the other."""
    return [line for line in text.splitlines() if '"started"' not in line]


def test_every_report_that_was_asked_for_is_written(kos_retry, tmp_path):
    asked = [word for form in REPORT_STARTS for word in ("--report", f"{form}:{tmp_path / form}")]
    kos_retry("run", "--session", "s1", *asked, *FAIL)
    starts = {form: (tmp_path / form).read_text().startswith(start) for form, start in REPORT_STARTS.items()}
    assert starts == dict.fromkeys(REPORT_STARTS, True)


def test_report_of_a_run_that_passes_at_once_is_written(kos_retry, tmp_path):
    path = tmp_path / "report.json"
    kos_retry("run", "--report", f"json:{path}", "--", "true")
    report = json.loads(path.read_text())
    assert (report["status"], report["exit_code"], report["attempts"], report["history"]) == ("passed", 0, 1, [])


BAD_PATHS = {"no such directory": "{}/none/report", "a directory": "{}", "a full device": "/dev/full"}


@pytest.mark.parametrize("path", BAD_PATHS.values(), ids=BAD_PATHS.keys())
def test_report_that_cannot_be_written_is_told_and_keeps_the_exit_code(kos_retry, tmp_path, path):
    path = path.format(tmp_path)
    done = kos_retry("run", "--report", f"text:{path}", *FAIL)
    told = [line for line in done.said if line.startswith(f"cannot write the report {path}: ")]
    assert (done.code, len(told)) == (7, 1)


def a_state_directory_that_is_a_file(directory):
    path = directory / "occupied"
    path.write_text("")
    return ("--state-dir", str(path))


@pytest.mark.parametrize("guidance", ["none", "file"])
def test_state_that_cannot_be_kept_keeps_the_exit_code(kos_retry, tmp_path, guidance):
    done = kos_retry("run", *a_state_directory_that_is_a_file(tmp_path), "--guidance", guidance, *FAIL_ANEW)
    assert done.code == 7


def test_state_that_cannot_be_kept_is_told_once(kos_retry, tmp_path):
    done = kos_retry("run", *a_state_directory_that_is_a_file(tmp_path), *FAIL_ANEW)
    assert [line for line in done.said if "cannot" in line] == done.said[:1]


def test_state_that_cannot_be_kept_is_no_concern_of_a_pass(kos_retry, tmp_path):
    assert kos_retry("run", *a_state_directory_that_is_a_file(tmp_path), "--", "true").code == 0


def test_chosen_state_directory_holds_the_session(kos_retry, tmp_path):
    kos_retry("run", "--state-dir", str(tmp_path / "mine"), "--session", "s1", *FAIL)
    assert (tmp_path / "mine" / "sessions" / "s1" / "journal.jsonl").exists()


def test_sessions_are_listed_the_oldest_first(kos_retry):
    for session in ("c", "a", "b"):
        kos_retry("run", "--session", session, "--", "true")
    listed = kos_retry("sessions", "list", "--format", "json").json["sessions"]
    assert [entry["session"] for entry in listed] == ["c", "a", "b"]


def test_report_is_about_the_latest_session(kos_retry):
    kos_retry("run", "--session", "zz-early", "--", "true")
    kos_retry("run", "--session", "aa-late", "--", "true")
    assert kos_retry("report", "--format", "json").json["session"] == "aa-late"


def test_session_shows_its_last_run(kos_retry):
    kos_retry("run", "--session", "s1", *FAIL)
    kos_retry("run", "--session", "s1", "--", "true")
    assert kos_retry("sessions", "show", "s1", "--format", "json").json["status"] == "passed"


def test_command_that_is_not_utf8_is_recorded(kos_retry):
    kos_retry("run", "--session", "s1", "--", "true", b"\xff")
    assert kos_retry("sessions", "show", "s1", "--format", "json").json["command"][0] == "true"
