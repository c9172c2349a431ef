"""An attempt ends with everything it started: at its time limit, and before the next attempt begins."""

from __future__ import annotations

import os
import signal
import sys

import pytest

ONCE = ("--max-attempts", "1")
# Fails with 9 where another process still holds the lock; else leaves one behind that does, and fails with 1.
LEAVE_A_HOLDER = """
import fcntl, subprocess, sys
lock = open(sys.argv[1], "a")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    sys.exit(9)
subprocess.Popen(["sh", "-c", sys.argv[2]], pass_fds=[lock.fileno()])
sys.exit(1)
"""


def run_with_lifeline(kos_retry, lifeline, *words: str):
    running = kos_retry.start("run", *words, pass_fds=[lifeline.fd])
    lifeline.let_go()
    return running.wait(45)


def test_time_limit_gives_124(kos_retry):
    assert kos_retry("run", *ONCE, "--timeout", "0.2s", "--", "sleep", "321").code == 124


def test_time_limit_is_what_is_said(kos_retry):
    done = kos_retry("run", *ONCE, "--timeout", "0.2s", "--", "sh", "-c", "echo working; exec sleep 321")
    assert done.said[0] == "attempt 1 of 1 failed (timed out after 0.2s)"


def test_time_limit_ends_every_process_of_the_attempt(kos_retry, lifeline):
    code = run_with_lifeline(kos_retry, lifeline, *ONCE, "--timeout", "0.5s", "--", "sh", "-c", "sleep 321 & sleep 321")
    assert (code, lifeline.is_over()) == (124, True)


def test_command_that_ignores_the_request_to_end_is_killed(kos_retry, lifeline):
    stubborn = 'trap "" TERM; sleep 321 & sleep 321'
    code = run_with_lifeline(
        kos_retry, lifeline, *ONCE, "--timeout", "0.3s", "--kill-after", "0.2s", "--", "sh", "-c", stubborn
    )
    assert (code, lifeline.is_over()) == (124, True)


def test_request_to_end_comes_once(kos_retry, tmp_path):
    line = "trap 'echo asked >>asked; exit 3' TERM; sleep 321 & wait"
    kos_retry("run", *ONCE, "--timeout", "0.5s", "--", "sh", "-c", line)
    assert (tmp_path / "asked").read_text() == "asked\n"


def test_time_limit_counts_even_where_the_command_then_says_it_passed(kos_retry):
    line = "trap 'exit 0' TERM; sleep 321 & wait"
    assert kos_retry("run", *ONCE, "--timeout", "0.3s", "--", "sh", "-c", line).code == 124


def test_every_attempt_has_the_whole_time_limit(kos_retry):
    line = '[ "$KOS_RETRY_ATTEMPT" = 1 ] && exec sleep 321; exit 0'
    assert kos_retry("run", "--delay", "0s", "--timeout", "2s", "--", "sh", "-c", line).code == 0


LEFT_BEHIND = {"ends when asked": "exec sleep 321", "ignores the request": 'trap "" TERM; sleep 321'}


@pytest.mark.parametrize("left", LEFT_BEHIND.values(), ids=LEFT_BEHIND.keys())
def test_next_attempt_waits_until_the_last_one_is_gone(kos_retry, tmp_path, left):
    words = ("--delay", "0s", "--kill-after", "0.2s", "--", sys.executable, "-S", "-c", LEAVE_A_HOLDER)
    kos_retry("run", *words, str(tmp_path / "lock"), left)
    assert [record["envelope"]["exit_code"] for record in kos_retry.attempts()] == [1, 1]


def test_nothing_of_a_failed_command_outlives_the_run(kos_retry, lifeline):
    code = run_with_lifeline(kos_retry, lifeline, *ONCE, "--", "sh", "-c", "sleep 321 & sleep 321 >&- 2>&- & exit 3")
    assert (code, lifeline.is_over()) == (3, True)


def test_nothing_of_kos_retry_outlives_the_run(kos_retry):
    kos_retry("run", *ONCE, "--", "sh", "-c", "echo err >&2; exit 3")
    assert kos_retry.processes() == []


def test_child_that_a_successful_command_leaves_lives_on(kos_retry):
    done = kos_retry("run", "--", "sh", "-c", "sleep 321 & echo $!")
    os.kill(int(done.stdout), signal.SIGKILL)
    assert done.code == 0


def test_child_that_a_successful_command_leaves_is_named(kos_retry):
    done = kos_retry("run", "--", "sh", "-c", "sleep 321 & echo $!")
    os.kill(int(done.stdout), signal.SIGKILL)
    (line,) = done.said
    assert line.split()[-2:] == [done.stdout.decode().strip(), "sleep"]
