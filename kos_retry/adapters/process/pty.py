"""A terminal for the command where it would have had ours: window size, modes and keys passed on, ours restored.

Our own terminal is put into raw mode while the command runs, so that every key reaches the command's terminal and is
interpreted there, once.
"""

from __future__ import annotations

import fcntl
import os
import termios

from kos_retry.adapters.process.signals import SIGTTOU, ignore, restore

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_OFLAG, _LFLAG, _CC = 1, 3, 6
_SIZE_BYTES = 8
_INPUT_BYTES = 4096
# What the terminal driver makes of a key is given up, but not how it writes.
_RAW_IFLAG = termios.BRKINT | termios.ICRNL | termios.INPCK | termios.ISTRIP | termios.IXON
_RAW_LFLAG = termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG


class Pty:
    """The command's terminal. ``master`` is our end, ``slave`` the path of the command's end."""

    def __init__(self, *, interactive: bool) -> None:
        self.master, slave = os.openpty()
        self.slave = os.ttyname(slave)
        self._keeper = slave
        self._ours = next((fd for fd in (_STDIN, _STDOUT, _STDERR) if _is_terminal(fd)), None)
        self._before: list[object] | None = None
        self._pending = b""
        self.interactive = interactive and self._ours is not None
        self._copy_modes(slave)
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
        """The command holds its end now: our copy of it would keep the terminal open for ever."""
        os.close(self._keeper)

    def enter(self) -> None:
        """Put our terminal into raw mode."""
        if not self.interactive or self._before is not None or self._ours is None:
            return
        try:
            self._before = termios.tcgetattr(self._ours)
            raw = termios.tcgetattr(self._ours)
            raw[0] &= ~_RAW_IFLAG
            raw[_OFLAG] &= ~termios.OPOST
            raw[_LFLAG] &= ~_RAW_LFLAG
            self._set(raw)
        except termios.error:
            self._before = None

    def leave(self) -> None:
        """Give our terminal its modes back."""
        if self._before is not None:
            before, self._before = self._before, None
            try:
                self._set(before)
            except termios.error:
                pass

    def close(self) -> None:
        """Restore our terminal and close the command's."""
        self.leave()
        os.close(self.master)

    @property
    def wants_input(self) -> bool:
        """Return whether keys can be taken from our terminal now."""
        return self.interactive and not self._pending

    @property
    def has_pending(self) -> bool:
        """Return whether keys wait to be given to the command."""
        return bool(self._pending)

    def take_keys(self) -> tuple[int, bool]:
        """Pass keys on; return how many interrupts were among them, and whether the user asked to suspend.

        Only where the command's terminal itself makes signals of keys: an editor reads them as text.
        """
        try:
            keys = os.read(_STDIN, _INPUT_BYTES)
        except OSError:
            keys = b""
        if not keys:
            self.interactive = False
            return 0, False
        modes = termios.tcgetattr(self.master)
        suspend = False
        interrupts = 0
        if modes[_LFLAG] & termios.ISIG:
            interrupts = keys.count(_key(modes, termios.VINTR))
            suspend = _key(modes, termios.VSUSP) in keys
            keys = keys.replace(_key(modes, termios.VSUSP), b"")
        self._pending += keys
        self.flush()
        return interrupts, suspend

    def flush(self) -> None:
        """Give the command as many of the waiting keys as it takes."""
        try:
            while self._pending:
                self._pending = self._pending[os.write(self.master, self._pending) :]
        except BlockingIOError:
            pass
        except OSError:
            self._pending = b""

    def _copy_modes(self, slave: int) -> None:
        """Give the command's terminal the modes of ours; where ours keeps writing for itself, newlines are its work."""
        modes = termios.tcgetattr(self._ours if self._ours is not None else slave)
        if not self.interactive:
            modes[_OFLAG] &= ~termios.OPOST
        termios.tcsetattr(slave, termios.TCSANOW, modes)

    def _set(self, modes: list[object]) -> None:
        # From the background this would stop us.
        before = ignore(SIGTTOU)
        try:
            termios.tcsetattr(self._ours or 0, termios.TCSADRAIN, modes)  # type: ignore[arg-type] # what tcgetattr gave
        finally:
            restore(SIGTTOU, before)


def _is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False


def _key(modes: list[object], index: int) -> bytes:
    """Return the key of a control character; where it is disabled, one that nobody can type."""
    keys = modes[_CC]
    key = keys[index] if isinstance(keys, list) else b"\0"
    return key if isinstance(key, bytes) and key not in (b"\0", b"\xff") else b"\xff\xfe\xff"
