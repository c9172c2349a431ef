"""On a terminal the wrapped command has the terminal, and kos-retry's caller has it back afterwards."""

from __future__ import annotations

import pytest


def test_command_can_read_from_the_terminal(kos_retry, terminal):
    running = terminal.start(kos_retry.path, "run", "--", "sh", "-c", 'read line; echo "got $line"')
    terminal.type(b"hello\n")
    terminal.wait_for(b"got hello")
    assert running.wait(45) == 0


def test_second_attempt_can_read_from_the_terminal(kos_retry, terminal):
    line = 'read line; echo "got $line"; [ "$KOS_RETRY_ATTEMPT" = 2 ]'
    running = terminal.start(kos_retry.path, "run", "--delay", "0s", "--", "sh", "-c", line)
    terminal.type(b"one\n")
    terminal.wait_for(b"got one")
    terminal.type(b"two\n")
    terminal.wait_for(b"got two")
    assert running.wait(45) == 0


def test_interrupt_key_ends_the_run_with_130(kos_retry, terminal):
    running = terminal.start(kos_retry.path, "run", "--", "sh", "-c", "echo ready; exec sleep 321")
    terminal.wait_for(b"ready")
    terminal.type(b"\x03")
    assert running.wait(45) == 130


def test_interrupt_key_in_the_wait_between_attempts_ends_the_run_with_130(kos_retry, terminal):
    running = terminal.start(kos_retry.path, "run", "--delay", "20s", "--jitter", "none", "--", "sh", "-c", "exit 7")
    terminal.wait_for(b"trying again in 20s")
    terminal.type(b"\x03")
    assert running.wait(45) == 130


def test_interrupt_key_ends_the_run_where_the_command_has_an_exit_code_of_its_own_for_it(kos_retry, terminal):
    line = "trap 'exit 2' INT; echo ready; sleep 321"
    running = terminal.start(kos_retry.path, "run", "--delay", "0s", "--timeout", "15s", "--", "sh", "-c", line)
    terminal.wait_for(b"ready")
    terminal.type(b"\x03")
    running.wait(45)
    assert len(kos_retry.attempts()) == 1


@pytest.mark.parametrize("wrapped", ["true", "exit 7", "kill -KILL $$"])
def test_caller_has_the_terminal_back_after_the_run(kos_retry, terminal, wrapped):
    line = '"$0" run --max-attempts 1 -- sh -c "$1"; echo over; read line; echo "then $line"'
    running = terminal.start("sh", "-c", line, kos_retry.path, wrapped)
    terminal.wait_for(b"over")
    terminal.type(b"after\n")
    terminal.wait_for(b"then after")
    assert running.wait(45) == 0


def test_run_in_a_pipeline_leaves_the_terminal_to_the_pipeline(kos_retry, terminal):
    running = terminal.start("sh", "-c", '"$0" run -- echo piped | cat; read line; echo "then $line"', kos_retry.path)
    terminal.type(b"after\n")
    terminal.wait_for(b"then after")
    assert running.wait(45) == 0
