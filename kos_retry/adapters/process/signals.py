"""Signals: noticed through a pipe, so that one poll waits for output, for children and for them.

Uses the interpreter's built-in signal module: the public one imports enum, which costs more than
everything else on the way to the wrapped command.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
else:
    import _signal

SIGCHLD, SIGCONT, SIGINT, SIGKILL = _signal.SIGCHLD, _signal.SIGCONT, _signal.SIGINT, _signal.SIGKILL
SIGPIPE, SIGSTOP, SIGTERM, SIGTSTP = _signal.SIGPIPE, _signal.SIGSTOP, _signal.SIGTERM, _signal.SIGTSTP
SIGTTIN, SIGTTOU, SIGWINCH = _signal.SIGTTIN, _signal.SIGTTOU, _signal.SIGWINCH
# What Python changes at its start, and what a child must find as if Python had not been there.
CHANGED_BY_PYTHON = [_signal.SIGPIPE] + ([_signal.SIGXFSZ] if hasattr(_signal, "SIGXFSZ") else [])
# What asks us to stop; it is passed on to the command.
STOPPING = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT)
# Second names, and the ends of a range.
_OTHER_NAMES = frozenset({"SIGCLD", "SIGIOT", "SIGPOLL", "SIGRTMAX", "SIGRTMIN"})


class SignalPipe:
    """Collects signals for a poll loop while it is open.

    A signal that was ignored when we started stays ignored: who ran us under nohup meant it.
    """

    def __init__(self) -> None:
        self.fd, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else _pipe()
        self._before: dict[int, Callable[..., object] | int | None] = {}
        for number in (*STOPPING, SIGCHLD, SIGTSTP, SIGWINCH):
            if _signal.getsignal(number) != _signal.SIG_IGN:
                self._before[number] = _signal.signal(number, _noted)
        self._wakeup = _signal.set_wakeup_fd(self._write)

    def take(self) -> list[int]:
        """Return the numbers of the signals that came since the last call."""
        try:
            return list(os.read(self.fd, 4096))
        except BlockingIOError:
            return []

    def close(self) -> None:
        """Give every signal back the handler that it had."""
        _signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before.items():
            _signal.signal(number, _signal.SIG_DFL if handler is None else handler)
        os.close(self.fd)
        os.close(self._write)


def signal_name(number: int) -> str:
    """Return the name of a signal, ``SIGKILL`` for 9."""
    names = (name for name in dir(_signal) if name.startswith("SIG") and name[3:4] != "_" and name not in _OTHER_NAMES)
    return next((name for name in names if getattr(_signal, name) == number), f"SIG{number}")


def _noted(_number: int, _frame: object) -> None:
    """Do nothing: the number has been written to the pipe already."""


def _pipe() -> tuple[int, int]:
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    return read, write


def ignore(number: int) -> object:
    """Ignore a signal; return what `restore` needs."""
    return _signal.signal(number, _signal.SIG_IGN)


def restore(number: int, handler: object) -> None:
    """Give a signal back its handler."""
    _signal.signal(number, _signal.SIG_DFL if handler is None else handler)  # type: ignore[arg-type] # from ignore()
