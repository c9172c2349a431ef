"""Who tells kos-retry to stop means the command as well, and no further attempt."""

from __future__ import annotations

import os
import signal

import pytest

STOPS = {"TERM": 143, "INT": 130, "HUP": 129, "QUIT": 131}
TRAPPING = "trap 'echo asked >>asked; exit 3' TERM INT HUP QUIT; echo ready >events; sleep 321 & wait"
LONG_WAIT = ("--delay", "600s", "--max-delay", "600s", "--jitter", "none")


def start_trapping(kos_retry, events):
    running = kos_retry.start("run", "--delay", "0s", "--", "sh", "-c", TRAPPING)
    assert events.wait() == "ready"
    return running


def stop(running, name="TERM"):
    running.send_signal(getattr(signal, f"SIG{name}"))
    return running.wait(45)


@pytest.mark.parametrize(("name", "code"), STOPS.items())
def test_signal_reaches_the_command_once_and_ends_the_run_with_128_and_its_number(
    kos_retry, events, tmp_path, name, code
):
    ended = stop(start_trapping(kos_retry, events), name)
    assert (ended, (tmp_path / "asked").read_text()) == (code, "asked\n")


def test_signal_is_recorded_as_a_cancellation_after_one_attempt(kos_retry, events):
    stop(start_trapping(kos_retry, events))
    end = {key: kos_retry.end()[key] for key in ("type", "status", "exit_code", "attempts")}
    assert end == {"type": "end", "status": "cancelled", "exit_code": 143, "attempts": 1}


def test_signal_ends_what_the_command_left_behind(kos_retry, events, lifeline):
    line = "sleep 321 & echo ready >events; sleep 321"
    running = kos_retry.start("run", "--", "sh", "-c", line, pass_fds=[lifeline.fd])
    lifeline.let_go()
    events.wait()
    stop(running)
    assert lifeline.is_over()


def test_command_that_passes_in_spite_of_the_signal_is_no_success(kos_retry, events):
    line = "trap 'exit 0' TERM; echo ready >events; sleep 321 & wait"
    running = kos_retry.start("run", "--", "sh", "-c", line)
    events.wait()
    assert stop(running) == 143


def test_second_signal_kills(kos_retry, events):
    line = "trap 'echo asked >events' TERM; echo ready >events; while :; do sleep 321 & wait; done"
    running = kos_retry.start("run", "--kill-after", "600s", "--", "sh", "-c", line)
    events.wait()
    running.send_signal(signal.SIGTERM)
    events.wait()
    assert stop(running) == 143


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP"])
def test_signal_ends_the_wait_between_attempts_at_once(kos_retry, name):
    running = kos_retry.start("run", *LONG_WAIT, "--", "sh", "-c", "exit 7")
    while b"trying again in 10m" not in running.stderr.readline():
        assert running.poll() is None
    assert (stop(running, name), kos_retry.end()["status"]) == (STOPS[name], "cancelled")


def test_signal_between_two_attempts_without_a_wait_is_followed_by_no_further_attempt(kos_retry, tmp_path):
    # What the first attempt leaves behind is asked to end when the attempt is over: then it sends the signal.
    (tmp_path / "sender").write_text("trap 'kill -TERM $1; exit' TERM; echo armed >armed; sleep 321 & wait")
    os.mkfifo(tmp_path / "armed")
    done = kos_retry("run", "--delay", "0s", "--", "sh", "-c", "sh sender $PPID & read _ <armed; exit 7")
    assert (done.code, kos_retry.end()["attempts"]) == (143, 1)


def test_signal_that_was_ignored_at_the_start_stays_ignored(kos_retry, events, gate):
    line = 'trap "" HUP; exec "$0" run -- sh -c "echo ready >events; read _ <gate"'
    running = kos_retry.start(argv=["sh", "-c", line, kos_retry.path])
    events.wait()
    running.send_signal(signal.SIGHUP)
    gate.say("go on")
    assert running.wait(45) == 0


def test_command_that_dies_of_an_interrupt_is_not_tried_again(kos_retry):
    kos_retry("run", "--delay", "0s", "--", "sh", "-c", "kill -INT $$")
    assert (len(kos_retry.attempts()), kos_retry.end()["status"]) == (1, "cancelled")
