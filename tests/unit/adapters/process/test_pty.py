"""The terminal of the command's output, in the place of a terminal of ours and without one."""

from __future__ import annotations

import os
import termios

import pytest

from kos_retry.adapters.process import pty
from kos_retry.adapters.process.pty import Pty, saved_modes, set_modes

_OFLAG, _LFLAG, _CC = 1, 3, 6


@pytest.fixture
def ours(monkeypatch):
    """Return a descriptor of a terminal that stands for ours."""
    master, slave = os.openpty()
    monkeypatch.setattr(pty, "_STANDARD", (slave,))
    yield slave
    os.close(slave)
    os.close(master)


@pytest.fixture
def nothing(monkeypatch):
    """Leave us without a terminal."""
    monkeypatch.setattr(pty, "_STANDARD", ())


@pytest.fixture
def terminal(ours):
    subject = Pty()
    yield subject
    subject.started()
    subject.close()


def _changed(fd: int, change) -> None:
    modes = termios.tcgetattr(fd)
    change(modes)
    termios.tcsetattr(fd, termios.TCSANOW, modes)


def _silent(modes) -> None:
    modes[_LFLAG] &= ~termios.ECHO


def _echoes(fd: int) -> bool:
    return bool(termios.tcgetattr(fd)[_LFLAG] & termios.ECHO)


def test_newlines_are_left_to_the_terminal_that_shows_them(terminal):
    os.write(terminal._keeper, b"a\n")
    assert b"a\n" == os.read(terminal.master, 10)


def test_reading_from_it_never_waits(terminal):
    with pytest.raises(BlockingIOError):
        os.read(terminal.master, 10)


def test_size_is_that_of_ours(ours):
    termios.tcsetwinsize(ours, (17, 33))
    subject = Pty()
    assert (17, 33) == termios.tcgetwinsize(subject._keeper)
    termios.tcsetwinsize(ours, (18, 34))
    subject.resize()
    assert (18, 34) == termios.tcgetwinsize(subject._keeper)
    subject.started()
    subject.close()


def test_modes_are_those_of_ours(ours):
    _changed(ours, _silent)
    subject = Pty()
    assert not _echoes(subject._keeper)
    subject.started()
    subject.close()


def test_what_the_command_sets_is_set_on_ours(terminal, ours):
    _changed(terminal._keeper, _silent)
    terminal.mirror()
    assert not _echoes(ours)


def test_keys_that_the_command_chooses_are_chosen_on_ours(terminal, ours):
    def other(modes):
        modes[_CC][termios.VINTR] = b"\x07"

    _changed(terminal._keeper, other)
    terminal.mirror()
    assert b"\x07" == termios.tcgetattr(ours)[_CC][termios.VINTR]


def test_how_ours_writes_stays_as_it_is(terminal, ours):
    before = termios.tcgetattr(ours)[_OFLAG]
    _changed(terminal._keeper, _silent)
    terminal.mirror()
    assert before == termios.tcgetattr(ours)[_OFLAG]


def test_what_somebody_else_set_on_ours_stays_while_the_command_sets_nothing(terminal, ours):
    _changed(ours, _silent)
    terminal.mirror()
    assert not _echoes(ours)


def test_without_a_terminal_of_ours_the_command_has_one_all_the_same(nothing):
    subject = Pty()
    subject.resize()
    subject.mirror()
    os.write(subject._keeper, b"a\n")
    assert b"a\n" == os.read(subject.master, 10)
    subject.started()
    subject.close()


def test_modes_that_were_saved_can_be_set_again(ours):
    before = saved_modes(ours)
    _changed(ours, _silent)
    set_modes(ours, before)
    assert before == termios.tcgetattr(ours)


def test_what_is_no_terminal_has_no_modes(tmp_path):
    fd = os.open(tmp_path / "a", os.O_RDWR | os.O_CREAT)
    assert saved_modes(fd) is None
    os.close(fd)
