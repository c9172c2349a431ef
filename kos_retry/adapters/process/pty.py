"""A terminal for the command's output where it would have had ours.

Only output goes through it: standard input stays the real terminal, so that keys typed ahead are lost to nobody and job control
is the terminal's own. What a program sets on its output's terminal is set on ours, too.
"""

from __future__ import annotations

import fcntl
import os
import termios

from kos_retry.adapters.process.signals import SIGTTOU, ignore, restore

_STANDARD = (0, 1, 2)
_IFLAG, _OFLAG, _LFLAG, _CC = 0, 1, 3, 6
_SIZE_BYTES = 8


class Pty:
    """The command's terminal: ``master`` is our end, ``slave`` the path of the command's end."""

    def __init__(self) -> None:
        self.master, self._keeper = os.openpty()
        self.slave = os.ttyname(self._keeper)
        self._ours = next((fd for fd in _STANDARD if _is_terminal(fd)), None)
        self._seen = self._copy_modes()
        self.resize()
        os.set_blocking(self.master, False)

    def resize(self) -> None:
        """Give the command's terminal the size of ours."""
        if self._ours is None:
            return
        try:
            size = fcntl.ioctl(self._ours, termios.TIOCGWINSZ, b"\0" * _SIZE_BYTES)
            fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)
        except OSError:
            pass

    def started(self) -> None:
        """Close our copy of the command's end: it would keep the terminal open for ever."""
        os.close(self._keeper)

    def mirror(self) -> None:
        """Set on our terminal what the command has set on its own since the last look: how keys are read and echoed."""
        if self._ours is None:
            return
        try:
            modes = termios.tcgetattr(self.master)
            if _keys(modes) == _keys(self._seen):
                return
            self._seen = modes
            ours = termios.tcgetattr(self._ours)
            ours[_IFLAG], ours[_LFLAG], ours[_CC] = modes[_IFLAG], modes[_LFLAG], modes[_CC]
            set_modes(self._ours, ours)
        except termios.error:
            pass

    def close(self) -> None:
        """Close our end."""
        os.close(self.master)

    def _copy_modes(self) -> list[object]:
        """Give the command's terminal the modes of ours, but let newlines pass: ours makes of them what it does."""
        modes = termios.tcgetattr(self._ours if self._ours is not None else self._keeper)
        modes[_OFLAG] &= ~termios.OPOST
        termios.tcsetattr(self._keeper, termios.TCSANOW, modes)
        return termios.tcgetattr(self._keeper)


def saved_modes(fd: int) -> list[object] | None:
    """Return the modes of a terminal, or None where there is none."""
    try:
        return termios.tcgetattr(fd)
    except termios.error:
        return None


def set_modes(fd: int, modes: list[object]) -> None:
    """Set the modes of a terminal, also from the background, where it would stop us otherwise."""
    before = ignore(SIGTTOU)
    try:
        termios.tcsetattr(fd, termios.TCSADRAIN, modes)  # type: ignore[arg-type] # what tcgetattr gave
    except termios.error:
        pass
    finally:
        restore(SIGTTOU, before)


def _keys(modes: list[object]) -> tuple[object, ...]:
    return modes[_IFLAG], modes[_LFLAG], modes[_CC]


def _is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False
