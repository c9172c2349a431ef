"""A kill at any moment leaves a journal that can be read and written on."""

from __future__ import annotations

import random
import select
import subprocess
from collections import Counter

import pytest

# Fails for ever, each time in another way, and tells of every attempt; the last one of a run that was killed may tell late.
FAIL_ANEW = (
    "echo $KOS_RETRY_SESSION:$KOS_RETRY_ATTEMPT >events; echo failure $KOS_RETRY_ATTEMPT | tr 0-9 a-j >&2; exit 1"
)
RUN_ON = ("--max-attempts", "0", "--delay", "0s", "--", "sh", "-c", FAIL_ANEW)
KILLS = 4


def kill_at_some_moment(kos_retry, events, session, moment):
    """Run until some attempt has begun, kill at some moment after it, and return the attempt's number."""
    running = kos_retry.start("run", "--session", session, *RUN_ON, stderr=subprocess.DEVNULL)
    last = moment.randint(2, 4)
    while events.wait() != f"{session}:{last}":
        pass
    select.select([], [], [], moment.uniform(0, 0.03))
    running.kill()
    running.wait(45)
    return last


@pytest.mark.parametrize("seed", [1, 2])
def test_journal_is_read_after_a_kill_and_holds_what_was_acted_on(kos_retry, events, seed):
    moment = random.Random(seed)
    begun = {f"s{n}": kill_at_some_moment(kos_retry, events, f"s{n}", moment) for n in range(KILLS)}
    listed = kos_retry("sessions", "list", "--format", "json").json["sessions"]
    shown = {entry["session"]: (entry["status"], entry["attempts"] >= begun[entry["session"]] - 1) for entry in listed}
    assert shown == dict.fromkeys(begun, ("running", True))


def test_history_of_a_run_that_was_killed_is_shown(kos_retry, events):
    begun = kill_at_some_moment(kos_retry, events, "s1", random.Random(4))
    history = kos_retry("sessions", "show", "s1", "--format", "json").json["history"]
    assert [envelope["attempt"] for envelope in history][: begun - 1] == list(range(1, begun))


def test_run_goes_on_in_a_session_that_was_killed_again_and_again(kos_retry, events):
    for seed in (5, 6):
        kill_at_some_moment(kos_retry, events, "s1", random.Random(seed))
    kos_retry("run", "--session", "s1", "--", "true")
    assert kos_retry("sessions", "show", "s1", "--format", "json").json["status"] == "passed"


def a_torn_journal(kos_retry):
    kos_retry("run", "--session", "s1", "--", "echo")
    path = kos_retry.directory("s1") / "journal.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    return path


def test_torn_last_line_does_not_hide_the_others(kos_retry):
    a_torn_journal(kos_retry)
    report = kos_retry("sessions", "show", "s1", "--format", "json").json
    assert (report["command"], report["status"]) == (["echo"], "running")


def test_run_after_a_torn_line_starts_on_a_line_of_its_own(kos_retry):
    path = a_torn_journal(kos_retry)
    torn = path.read_bytes()
    kos_retry("run", "--session", "s1", "--", "true")
    added = path.read_bytes().removeprefix(torn)
    assert (added[:8], added[-2:]) == (b'\n{"v":1,', b"}\n")


def test_two_runs_at_once_lose_no_record(kos_retry):
    words = ("run", "--session", "s1", "--max-attempts", "4", "--delay", "0s", "--", "sh", "-c")
    line = "echo failure $KOS_RETRY_ATTEMPT | tr 0-9 a-j; exit 1"
    both = [kos_retry.start(*words, line) for _ in range(2)]
    for running in both:
        running.communicate(timeout=45)
    assert Counter(record["type"] for record in kos_retry.journal("s1")) == {"begin": 2, "attempt": 8, "end": 2}
