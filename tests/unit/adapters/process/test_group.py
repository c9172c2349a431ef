"""The processes that stand by a command: the guard, and the listener in its group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from kos_retry.adapters.process import group

needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="marked processes are found in /proc")
MARK = "KOS_RETRY_MARK=0123456789abcdef"
SLEEP = [sys.executable, "-S", "-c", "import time; time.sleep(60)"]


@pytest.fixture
def command():
    """Start a marked command in a group of its own, and end it."""
    started = subprocess.Popen(SLEEP, env=dict([MARK.split("=")]), process_group=0)
    yield started
    if started.poll() is None:
        os.killpg(started.pid, signal.SIGKILL)
    started.wait()


def _marked(pid: int) -> bool:
    with open(f"/proc/{pid}/environ", "rb") as environ:
        return MARK.encode() in environ.read().split(b"\0")


def _die(guard: group.Guard) -> None:
    """Do what our death does to a guard."""
    os.close(guard._pipe)
    os.waitpid(guard._pid, 0)


@needs_proc
def test_guard_that_was_told_no_group_finds_the_command_by_its_mark(command):
    guard = group.Guard(MARK.encode())
    while not _marked(command.pid):
        time.sleep(0.01)
    _die(guard)
    assert -signal.SIGTERM == command.wait(30)


@needs_proc
def test_guard_without_a_mark_leaves_everybody_alone(command):
    guard = group.Guard(b"")
    _die(guard)
    assert command.poll() is None


def test_guard_ends_the_group_that_it_was_told(command):
    guard = group.Guard(b"")
    guard.watch(command.pid)
    _die(guard)
    assert -signal.SIGTERM == command.wait(30)


@pytest.mark.parametrize("told", [True, False], ids=["a-group", "none"])
def test_dismissed_guard_leaves_everybody_alone(command, told):
    guard = group.Guard(MARK.encode())
    if told:
        guard.watch(command.pid)
    guard.dismiss()
    assert command.poll() is None


@pytest.mark.parametrize("wait", [0.0, 0.2], ids=["at-once", "when-it-is-ready"])
def test_listener_tells_of_a_key_that_it_had_no_time_to_tell_of(command, wait):
    listener = group.Listener(command.pid)
    time.sleep(wait)
    os.killpg(command.pid, signal.SIGINT)
    assert group.Listener.INTERRUPT in listener.dismiss()


def test_listener_without_a_key_has_nothing_to_tell(command):
    assert b"" == group.Listener(command.pid).dismiss()


def test_stopped_listener_is_ended(command):
    listener = group.Listener(command.pid)
    os.killpg(command.pid, signal.SIGSTOP)
    listener.dismiss()
    assert 0 == listener.pid
