"""A command that would have had a terminal has one of its own, which behaves as ours and leaves ours as it was."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys

import pytest

ONCE = ("--max-attempts", "1")
SAY_TERMINALS = 'for fd in 0 1 2; do if test -t $fd; then echo "$fd is" >>told; else echo "$fd not" >>told; fi; done'


def told(kos_retry):
    return (kos_retry.home / "told").read_text().splitlines()


def ends(running):
    return running.wait(45)


def as_text(shown):
    """Return what a screen shows without what the terminal driver made of newlines."""
    return shown.replace(b"\r\n", b"\n")


def test_command_on_a_terminal_has_one_on_every_stream(kos_retry, terminal):
    running = terminal.start(kos_retry.path, "run", "--", "sh", "-c", SAY_TERMINALS)
    assert (ends(running), told(kos_retry)) == (0, ["0 is", "1 is", "2 is"])


def test_command_that_passes_on_a_terminal_says_what_it_would_bare(kos_retry, terminal):
    line = "printf 'one\\ntwo\\033[31mred\\033[0m\\n'; printf 'three\\n' >&2; printf four"
    terminal.start("sh", "-c", f"{line}; echo", "sh").wait(45)
    terminal.wait_for(b"four\r\n")
    bare, terminal.shown = terminal.shown, b""
    terminal.start(kos_retry.path, "run", "--", "sh", "-c", f"{line}; echo").wait(45)
    terminal.wait_for(b"four\r\n")
    assert terminal.shown == bare


def test_never_gives_no_terminal_for_output(kos_retry, terminal):
    running = terminal.start(kos_retry.path, "run", "--tty", "never", "--", "sh", "-c", SAY_TERMINALS)
    assert (ends(running), told(kos_retry)[1:]) == (0, ["1 not", "2 not"])


def test_always_gives_a_terminal_behind_a_pipe(kos_retry):
    done = kos_retry("run", "--tty", "always", "--", "sh", "-c", "test -t 1 && test -t 2 && printf 'out\\n'")
    assert (done.code, as_text(done.stdout)) == (0, b"out\n")


def test_always_keeps_the_streams_apart(kos_retry):
    done = kos_retry("run", "--tty", "always", "--", "sh", "-c", "echo out; echo err >&2")
    assert (as_text(done.stdout), as_text(done.stderr)) == (b"out\n", b"err\n")


def test_without_a_terminal_there_is_none(kos_retry):
    done = kos_retry("run", "--", "sh", "-c", "test -t 0 || test -t 1 || test -t 2")
    assert done.code == 1


def test_stream_that_is_piped_is_no_terminal(kos_retry, terminal):
    words = (kos_retry.path, "run", "--", "sh", "-c", SAY_TERMINALS)
    running = terminal.start(*words, stdout=subprocess.DEVNULL)
    assert (ends(running), told(kos_retry)) == (0, ["0 is", "1 not", "2 is"])


def test_terminal_is_the_controlling_one_of_the_command(kos_retry, terminal):
    running = terminal.start(kos_retry.path, "run", "--", "sh", "-c", "echo said >/dev/tty")
    terminal.wait_for(b"said\r\n")
    assert ends(running) == 0


def test_window_of_the_command_is_as_large_as_ours_from_the_start(kos_retry, terminal):
    terminal.resize(33, 111)
    running = terminal.start(kos_retry.path, "run", "--", "stty", "size")
    terminal.wait_for(b"33 111")
    assert ends(running) == 0


def test_window_of_the_command_follows_ours(kos_retry, terminal):
    line = 'trap "stty size; exit" WINCH; echo ready; while :; do sleep 0.05; done'
    running = terminal.start(kos_retry.path, "run", "--", "bash", "-c", line)
    terminal.wait_for(b"ready")
    terminal.resize(44, 222)
    terminal.wait_for(b"44 222")
    assert ends(running) == 0


ENDS = {
    "a pass": ((), "exit 0", None),
    "a failure": ((), "exit 7", None),
    "a death": ((), "kill -KILL $$", None),
    "a time limit": (("--timeout", "0.5s"), "sleep 321", None),
    "a signal": ((), "echo ready; sleep 321", signal.SIGTERM),
    "a signal that is ignored": (
        ("--kill-after", "0.1s"),
        'trap "" TERM; echo ready; while :; do sleep 0.1; done',
        signal.SIGTERM,
    ),
    "modes that a time limit leaves": (("--timeout", "0.5s"), "stty raw -echo; sleep 321", None),
    "modes that a signal leaves": ((), "stty raw -echo; echo ready; sleep 321", signal.SIGTERM),
}


@pytest.mark.parametrize(("options", "line", "number"), ENDS.values(), ids=ENDS.keys())
def test_terminal_has_its_modes_back_after(kos_retry, terminal, options, line, number):
    before = terminal.modes
    running = terminal.start(kos_retry.path, "run", *ONCE, *options, "--", "sh", "-c", line)
    if number is not None:
        terminal.wait_for(b"ready")
        running.send_signal(number)
    ends(running)
    assert terminal.modes == before


def test_terminal_has_its_modes_back_between_attempts(kos_retry, terminal):
    before = terminal.modes
    waits = ("--delay", "600s", "--max-delay", "600s", "--jitter", "none")
    running = terminal.start(kos_retry.path, "run", *waits, "--", "false")
    terminal.wait_for(b"trying again in 10m")
    between = terminal.modes
    running.terminate()
    assert (ends(running), between) == (143, before)


COUNTING = """
import os, signal, sys
signal.signal(signal.SIGINT, lambda *_: os.write(1, b"interrupted\\n"))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
os.write(1, b"ready\\n")
while True:
    signal.pause()
"""


def start_counting(kos_retry, terminal, *options):
    words = ("run", "--kill-after", "600s", *options, "--", sys.executable, "-S", "-c", COUNTING)
    running = terminal.start(kos_retry.path, *words)
    terminal.wait_for(b"ready")
    return running


def test_interrupt_key_is_one_interrupt_for_the_command(kos_retry, terminal):
    running = start_counting(kos_retry, terminal, "--timeout", "1.5s")
    terminal.type(b"\x03")
    terminal.wait_for(b"interrupted")
    # Nothing more comes before the time limit ends the command.
    ends(running)
    terminal.wait_for(b"stopped after")
    assert terminal.shown.count(b"interrupted") == 1


def test_second_interrupt_key_kills_what_ignores_the_first(kos_retry, terminal):
    running = start_counting(kos_retry, terminal)
    terminal.type(b"\x03")
    terminal.wait_for(b"interrupted")
    # Two that come at the same time are one; a user who means it presses on.
    for _ in range(50):
        terminal.type(b"\x03")
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(0.5)
            break
    assert (running.returncode, kos_retry.processes()) == (130, [])


def test_interrupt_key_is_text_to_a_command_that_reads_keys(kos_retry, terminal):
    line = "stty raw -echo; echo ready; key=$(head -c 1 | od -An -tx1); stty -raw; echo key$key"
    running = terminal.start(kos_retry.path, "run", "--", "sh", "-c", line)
    terminal.wait_for(b"ready")
    terminal.type(b"\x03")
    terminal.wait_for(b"key 03")
    assert ends(running) == 0


def test_end_of_input_key_ends_the_input(kos_retry, terminal):
    running = terminal.start(kos_retry.path, "run", "--", "sh", "-c", "cat; echo over")
    terminal.type(b"one\n\x04")
    terminal.wait_for(b"over")
    assert (ends(running), b"one" in terminal.shown) == (0, True)


@pytest.mark.parametrize("tty", ["auto", "never"])
def test_suspend_key_stops_the_run_and_the_shell_brings_it_back(kos_retry, terminal, tty):
    line = "echo rea''dy; read line; echo got $line"
    shell = terminal.start("bash", "--norc", "-i", environment={"PS1": "prompt> "})
    terminal.wait_for(b"prompt> ")
    terminal.type(f'{kos_retry.path} run --tty {tty} -- sh -c "{line.replace("$", chr(92) + "$")}"\n'.encode())
    terminal.wait_for(b"ready")
    terminal.type(b"\x1a")
    terminal.wait_for(b"Stopped")
    terminal.type(b"echo still''here\n")
    terminal.wait_for(b"stillhere")
    terminal.type(b"fg\n")
    terminal.type(b"more\n")
    terminal.wait_for(b"got more")
    terminal.type(b"exit\n")
    assert ends(shell) == 0


def test_stopped_command_stands_still(kos_retry, terminal):
    line = "echo rea''dy; while :; do echo tick; sleep 0.05; done"
    shell = terminal.start("bash", "--norc", "-i", environment={"PS1": "prompt> "})
    terminal.wait_for(b"prompt> ")
    terminal.type(f'{kos_retry.path} run -- sh -c "{line}"\n'.encode())
    terminal.wait_for(b"tick", 3)
    terminal.type(b"\x1a")
    terminal.wait_for(b"Stopped")
    ticks = terminal.shown.count(b"tick")
    terminal.type(b"sleep 0.5; echo wai''ted\n")
    terminal.wait_for(b"waited")
    stood = terminal.shown.count(b"tick")
    terminal.type(b"kill -KILL %1; wait; exit\nexit\n")
    ends(shell)
    assert stood == ticks


def test_piped_output_leaves_the_keyboard_to_the_command_and_then_to_us(kos_retry, terminal):
    line = '"$0" run -- sh -c "read line; echo got \\$line" | cat; echo over; read line; echo "then $line"'
    running = terminal.start("sh", "-c", line, kos_retry.path)
    terminal.type(b"one\n")
    terminal.wait_for(b"got one")
    terminal.wait_for(b"over")
    terminal.type(b"two\n")
    terminal.wait_for(b"then two")
    assert ends(running) == 0


def test_reader_at_the_end_of_a_pipeline_gets_the_keys(kos_retry, terminal):
    pager = 'cat >/dev/null & read key </dev/tty; echo "pager got $key"'
    line = f'"$0" run -- sh -c \'echo page; exec sleep 3\' | {{ read page; echo "rea"dy; {pager}; }}'
    terminal.start("bash", "-c", line, kos_retry.path)
    terminal.wait_for(b"ready")
    terminal.type(b"next\n")
    terminal.wait_for(b"pager got next", seconds=10)


def test_replayed_input_leaves_the_output_on_a_terminal(kos_retry, terminal, tmp_path):
    (tmp_path / "input").write_text("hello\n")
    with (tmp_path / "input").open() as given:
        words = (kos_retry.path, "run", "--replay-stdin", "--", "sh", "-c", f"cat; {SAY_TERMINALS}")
        read, write = os.openpty()
        running = kos_retry.start(argv=list(words), stdin=given, stdout=write, stderr=write)
        assert ends(running) == 0
        os.close(write)
        shown = os.read(read, 4096)
        os.close(read)
    assert (told(kos_retry), b"hello" in shown) == (["0 not", "1 is", "2 is"], True)


def test_large_output_on_a_terminal_is_complete(kos_retry, terminal):
    line = 'i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i + 1)); done'
    running = terminal.start(kos_retry.path, "run", "--", "sh", "-c", line)
    terminal.wait_for(b"line 19999\r\n")
    numbers = [int(number) for number in re.findall(rb"line (\d+)\r\n", terminal.shown)]
    assert (ends(running), numbers) == (0, list(range(20000)))


def test_output_of_a_child_that_holds_the_terminal_does_not_hold_the_run(kos_retry, terminal):
    running = terminal.start(kos_retry.path, "run", *ONCE, "--", "sh", "-c", "sleep 321 & echo hi; exit 3")
    assert ends(running) == 3
