"""No process of an attempt escapes: not by a session of its own, not by the death of kos-retry."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ONCE = ("--max-attempts", "1")
# Leaves a process in a session of its own that holds nothing of ours and ignores a hangup.
DAEMON = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
for fd in (0, 1, 2):
    os.close(fd)
with open(sys.argv[1], "a") as file:
    file.write(f"{os.getpid()}\\n")
time.sleep(321)
"""
needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="reads /proc")


def leave_daemon(kos_retry, then):
    """Return a command that starts a daemon, waits until it is there, and goes on with a line of shell."""
    (kos_retry.home / "daemon.py").write_text(DAEMON)
    start = f'"{sys.executable}" -S daemon.py pids; while [ "$(wc -l <pids)" -lt "$KOS_RETRY_ATTEMPT" ]; do sleep 0.02; done'
    (kos_retry.home / "pids").write_text("")
    return ("sh", "-c", f"{start}; {then}")


def is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def becomes_true(claim, seconds=5.0):
    """Return whether a claim holds within some seconds; there is no event to wait on."""
    until = time.monotonic() + seconds
    while not claim():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


@needs_proc
def test_daemon_of_a_failed_attempt_is_gone_before_the_next(kos_retry):
    # Its parent may be slow to take note: then there is a process, but it is dead.
    check = "[ $KOS_RETRY_ATTEMPT = 1 ] || grep -s State: /proc/$(head -n 1 pids)/status | grep -v '[ZX]'; exit 7"
    done = kos_retry("run", "--delay", "0s", "--", *leave_daemon(kos_retry, check))
    pids = (kos_retry.home / "pids").read_text().split()
    assert (done.code, done.stdout, [is_alive(pid) for pid in pids]) == (7, b"", [False, False])


@needs_proc
def test_daemon_of_an_attempt_that_ran_out_of_time_is_gone(kos_retry):
    words = leave_daemon(kos_retry, "sleep 321")
    done = kos_retry("run", *ONCE, "--timeout", "2s", "--", *words)
    (pid,) = (kos_retry.home / "pids").read_text().split()
    assert (done.code, is_alive(pid)) == (124, False)


@needs_proc
def test_process_that_only_looks_alike_is_left_alone(kos_retry):
    other = kos_retry.start(argv=["sleep", "321"], environment={"KOS_RETRY_SESSION": "s1", "KOS_RETRY_ATTEMPT": "1"})
    kos_retry("run", *ONCE, "--session", "s1", "--", "sh", "-c", "sleep 321 & exit 7")
    assert other.poll() is None


def test_every_survivor_of_a_pass_is_named_and_lives_on(kos_retry):
    done = kos_retry("run", "--", "sh", "-c", "sleep 321 & echo $!; sleep 322 & echo $!")
    pids = done.stdout.decode().split()
    alive = [is_alive(pid) for pid in pids]
    for pid in pids:
        os.kill(int(pid), signal.SIGKILL)
    (said,) = done.said
    assert (done.code, alive, set(pids) <= set(said.replace(",", " ").split()), "2 processes" in said) == (
        0,
        [True] * 2,
        True,
        True,
    )


def test_survivor_that_holds_no_output_is_named_too(kos_retry):
    done = kos_retry("run", "--", "sh", "-c", "sleep 321 >/dev/null 2>&1 & echo $!")
    os.kill(int(done.stdout), signal.SIGKILL)
    assert [done.stdout.decode().strip() in line.split() for line in done.said] == [True]


@needs_proc
def test_stop_of_kos_retry_stops_the_command_and_going_on_lets_it_go_on(kos_retry, events, gate):
    line = "echo $$ >events; read _ <gate; echo went on"
    running = kos_retry.start("run", "--timeout", "60s", "--", "sh", "-c", line)
    pid = int(events.wait())
    running.send_signal(signal.SIGTSTP)
    stopped = becomes_true(lambda: all(state(p) == "T" for p in (pid, running.pid)))
    running.send_signal(signal.SIGCONT)
    gate.say("go on")
    assert (stopped, running.stdout.readline(), running.wait(45)) == (True, b"went on\n", 0)


@needs_proc
def test_time_in_which_kos_retry_is_stopped_does_not_count(kos_retry, events):
    line = "echo $$ >events; sleep 0.5; exit 0"
    running = kos_retry.start("run", *ONCE, "--timeout", "3s", "--", "sh", "-c", line)
    events.wait()
    running.send_signal(signal.SIGTSTP)
    assert becomes_true(lambda: state(running.pid) == "T")
    events.wait(3.2)
    running.send_signal(signal.SIGCONT)
    assert running.wait(45) == 0


def state(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


# Every attempt starts sleepers, here and in sub-shells, says so, and fails in a way of its own.
SPAWN = """
sleep 321 & (sleep 321 & sleep 321 &) & sh -c 'sleep 321 & wait' &
echo $KOS_RETRY_ATTEMPT >events
sleep 0.0$((KOS_RETRY_ATTEMPT % 5))
echo failure $KOS_RETRY_ATTEMPT | tr 0-9 a-j >&2; exit 1
"""
# Kills in each of three tests; all of them together are as many as asked for.
MOMENTS = -(-int(os.environ.get("KOS_RETRY_KILLS", "30")) // 3)


@needs_proc
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_of_the_command_outlives_a_kill_of_kos_retry_at_any_moment(kos_retry, events, seed):
    moment = random.Random(seed)
    for number in range(MOMENTS):
        words = ("run", "--session", f"s{number}", "--max-attempts", "0", "--delay", "0s", "--", "sh", "-c", SPAWN)
        running = kos_retry.start(*words, stderr=subprocess.DEVNULL)
        for _ in range(moment.randint(1, 2)):
            events.wait()
        select.select([], [], [], moment.uniform(0, 0.06))
        running.kill()
        running.wait(45)
        assert becomes_true(lambda: kos_retry.processes() == []), [name(pid) for pid in kos_retry.processes()]
        while events.wait(0):
            pass
        assert all("type" in json.loads(line) for line in whole_lines(kos_retry.directory(f"s{number}")))


def whole_lines(directory):
    """Return the lines of a journal but one that a kill tore; there may be none yet."""
    try:
        *whole, _ = (directory / "journal.jsonl").read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    return [line for line in whole if line]


def name(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return "gone"


def test_command_that_is_killed_with_its_kos_retry_is_asked_first(kos_retry, events, tmp_path):
    # A shell that says what ended a child of its would find nobody to say it to.
    line = "exec 2>/dev/null; trap 'echo asked >asked; exit' TERM; echo ready >events; while :; do sleep 0.05; done"
    running = kos_retry.start("run", "--", "sh", "-c", line)
    events.wait()
    running.kill()
    assert becomes_true((tmp_path / "asked").exists)


@needs_proc
def test_kill_of_a_stopped_kos_retry_leaves_nothing(kos_retry, events):
    running = kos_retry.start("run", "--", "sh", "-c", "echo ready >events; sleep 321")
    events.wait()
    running.send_signal(signal.SIGTSTP)
    assert becomes_true(lambda: state(running.pid) == "T")
    running.kill()
    assert becomes_true(lambda: kos_retry.processes() == [])
