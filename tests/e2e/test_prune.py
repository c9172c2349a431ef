"""What `sessions prune` and `history prune` drop and keep, and how they refuse what makes no sense."""

from __future__ import annotations

import json
import os
import select
import time
from datetime import UTC, datetime, timedelta

import pytest

ONCE = ("--max-attempts", "1", "--store", "none", "--", "false")
DAY_SECONDS = 86_400


def a_session(kos_retry, name, days=0):
    """Have a session whose last record is so many days old."""
    kos_retry("run", "--session", name, *ONCE)
    then = time.time() - days * DAY_SECONDS
    os.utime(kos_retry.directory(name) / "journal.jsonl", (then, then))


def left(kos_retry):
    """Return the names of the sessions that are still there."""
    return sorted(entry.name for entry in (kos_retry.state / "sessions").iterdir())


# Options, and which of the sessions that are 0, 20 and 40 days old are left; without an option 30 days are the limit.
AGES = {
    "by itself": ((), ["new", "older"]),
    "older than ten days": (("--older-than", "240h"), ["new"]),
    "older than a year": (("--older-than", "8760h"), ["new", "older", "oldest"]),
    "all": (("--older-than", "0s"), []),
}


@pytest.mark.parametrize(("words", "kept"), AGES.values(), ids=AGES)
def test_old_sessions_are_removed_with_everything_in_them(kos_retry, words, kept):
    for name, days in (("new", 0), ("older", 20), ("oldest", 40)):
        a_session(kos_retry, name, days)
    done = kos_retry("sessions", "prune", *words)
    gone = 3 - len(kept)
    said = f"removed {gone} session{'' if gone == 1 else 's'}\n".encode()
    assert (0, said, b"", kept) == (*done, left(kos_retry))


def test_running_session_stays_however_old(kos_retry, events):
    a_session(kos_retry, "ended", 99)
    running = kos_retry.start("run", "--session", "s1", "--", "sh", "-c", "echo here >events; sleep 321")
    events.wait()
    path = kos_retry.state / "sessions" / "s1" / "journal.jsonl"
    while not path.exists():
        select.select([], [], [], 0.01)
    os.utime(path, (0, 0))
    assert b"removed 1 session\n" == kos_retry("sessions", "prune").stdout
    assert (["s1"], None) == (left(kos_retry), running.poll())


def test_session_that_was_killed_is_as_old_as_its_last_record(kos_retry, events):
    running = kos_retry.start("run", "--session", "s1", "--", "sh", "-c", "echo here >events; sleep 321")
    events.wait()
    path = kos_retry.state / "sessions" / "s1" / "journal.jsonl"
    while not path.exists():
        select.select([], [], [], 0.01)
    running.kill()
    running.wait(45)
    assert (b"removed 0 sessions\n", ["s1"]) == (kos_retry("sessions", "prune").stdout, left(kos_retry))
    os.utime(path, (0, 0))
    assert (b"removed 1 session\n", []) == (kos_retry("sessions", "prune").stdout, left(kos_retry))


def test_what_is_no_session_stays(kos_retry):
    a_session(kos_retry, "old", 99)
    (kos_retry.state / "sessions" / "mine").mkdir()
    (kos_retry.state / "sessions" / "mine" / "notes").write_text("mine")
    (kos_retry.state / "sessions" / "file").write_text("mine")
    kos_retry("sessions", "prune")
    assert ["file", "mine"] == left(kos_retry)


def test_session_that_cannot_be_removed_is_named_and_keeps_none_of_the_others(kos_retry):
    for name in ("a", "b", "c", "d"):
        a_session(kos_retry, name, 99)
    sessions = kos_retry.state / "sessions"
    (sessions / "b").rename(kos_retry.home / "elsewhere")
    (sessions / "b").symlink_to(kos_retry.home / "elsewhere")
    (sessions / "c" / "journal.jsonl").unlink()
    (sessions / "c" / "journal.jsonl").mkdir()
    os.utime(sessions / "c" / "journal.jsonl", (0, 0))
    done = kos_retry("sessions", "prune")
    assert (1, b"removed 2 sessions\n", ["b", "c"]) == (done.code, done.stdout, left(kos_retry))
    assert ["session 'b': Cannot call rmtree on a symbolic link", "session 'c': cannot read the journal"] == [
        line.partition(" in /")[0] for line in done.said
    ]


def test_journal_that_cannot_be_read_hides_no_other_session(kos_retry):
    a_session(kos_retry, "a")
    (kos_retry.state / "sessions" / "b" / "journal.jsonl").mkdir(parents=True)
    done = kos_retry("sessions", "list", "--format", "json")
    assert (["a"], 1) == ([session["session"] for session in done.json["sessions"]], len(done.said))


def test_pruning_where_nothing_was_kept_begins_nothing(kos_retry):
    assert b"removed 0 sessions\n" == kos_retry("sessions", "prune").stdout
    assert b"0 sightings dropped\n" == kos_retry("history", "prune").stdout
    assert not kos_retry.state.exists()


def test_pruning_sessions_leaves_the_store_alone(kos_retry):
    kos_retry("run", "--session", "s1", "--delay", "0s", "--", "false")
    kos_retry("sessions", "prune", "--older-than", "0s")
    assert 1 == len(kos_retry("history", "export").rows)


def a_line(kos_retry, run, days):
    """Return an outcome as `history import` reads it, so many days old."""
    then = datetime.now(UTC) - timedelta(days=days)
    given = {"v": 1, "origin": "elsewhere", "run": run, "time": then.isoformat(), "command": "c0:make"}
    seen = {"signature": "k0:a", "passed": False, "attempts": 2, "retries": 1, "retry_seconds": 1.0}
    return json.dumps({**given, **seen, "command_line": "make", "coarse": "", "message": "error: no plan"})


# Options, and which of the outcomes that are 1, 100 and 300 days old are left.
OUTCOMES = {
    "by itself": ((), ["old", "middle", "new"]),
    "by age": (("--older-than", "4800h"), ["middle", "new"]),
    "by number": (("--keep", "1"), ["new"]),
    "by both": (("--older-than", "4800h", "--keep", "1"), ["new"]),
    "nothing is kept": (("--keep", "0"), []),
    "all are too old": (("--older-than", "0s"), []),
    "more than there are": (("--keep", str(2**70)), ["old", "middle", "new"]),
}


@pytest.mark.parametrize(("words", "kept"), OUTCOMES.values(), ids=OUTCOMES)
def test_oldest_outcomes_are_dropped(kos_retry, words, kept):
    lines = [a_line(kos_retry, run, days) for run, days in (("new", 1), ("middle", 100), ("old", 300))]
    kos_retry("history", "import", stdin="\n".join(lines).encode())
    done = kos_retry("history", "prune", *words)
    said = f"{3 - len(kept)} sighting{'' if len(kept) == 2 else 's'} dropped\n".encode()
    assert (0, said, b"") == done
    assert kept == [row["run"] for row in kos_retry("history", "export").rows]


def test_outcome_older_than_a_year_goes_by_itself(kos_retry):
    kos_retry("history", "import", stdin=a_line(kos_retry, "new", 1).encode())
    kos_retry("history", "import", stdin=a_line(kos_retry, "old", 366).encode())
    assert ["new"] == [row["run"] for row in kos_retry("history", "export").rows]


# What is asked, the exit code, and what the one line says.
WRONG = {
    "no duration": (("sessions", "prune", "--older-than", "soon"), 2, "--older-than: 'soon' is not a duration"),
    "a negative duration": (("sessions", "prune", "--older-than", "-1h"), 2, "'-1h' is not a duration"),
    "an endless duration": (("sessions", "prune", "--older-than", "9" * 30 + "h"), 2, "is not a duration"),
    "a missing duration": (("sessions", "prune", "--older-than"), 2, "requires an argument"),
    "a word too many": (("sessions", "prune", "all"), 2, "unexpected extra argument"),
    "no duration of outcomes": (("history", "prune", "--older-than", "soon"), 2, "'soon' is not a duration"),
    "a negative number": (("history", "prune", "--keep", "-1"), 2, "--keep"),
    "no number": (("history", "prune", "--keep", "two"), 2, "--keep"),
    "a word too many of outcomes": (("history", "prune", "all"), 2, "unexpected extra argument"),
    "no store": (("history", "prune", "--store", "none"), 2, "the store is switched off"),
}


@pytest.mark.parametrize(("words", "code", "said"), WRONG.values(), ids=WRONG)
def test_wrong_argument_is_one_line_and_drops_nothing(kos_retry, words, code, said):
    a_session(kos_retry, "old", 99)
    kos_retry("history", "import", stdin=a_line(kos_retry, "old", 300).encode())
    done = kos_retry(*words)
    assert (code, b"", [True]) == (done.code, done.stdout, [said in line for line in done.said])
    assert (["old"], 1) == (left(kos_retry), len(kos_retry("history", "export").rows))
