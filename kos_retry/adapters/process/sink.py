"""Writing to our own output without ever waiting in a write, and without changing what others see of it."""

from __future__ import annotations

import os

from kos_retry.limits import PIPE_BYTES

# Linux only; elsewhere pipes keep the size they have.
_F_SETPIPE_SZ = 1031
_STREAM_MODES = (0o010000, 0o020000)  # S_IFIFO, S_IFCHR: the stat module is not worth its import here


class Sink:
    """One of our output descriptors.

    The flag that makes writes non-blocking belongs to the open file, which we share with strangers. So a pipe
    or a terminal is opened once more under our own flag where the system can do that; elsewhere writes
    wait, as everybody else's do.
    """

    def __init__(self, fd: int) -> None:
        self.fd, self._own = _reopened(fd)
        self.closed = False
        self.error: str | None = None
        self._pending: memoryview | None = None

    @property
    def blocked(self) -> bool:
        """Return whether something is still to be written."""
        return self._pending is not None

    def write(self, chunk: bytes) -> None:
        """Write a chunk, or keep what does not fit for `flush`; nothing may be pending."""
        self._pending = memoryview(chunk)
        self.flush()

    def flush(self) -> None:
        """Write what is pending as far as it goes; a reader that is gone sets ``closed``."""
        while self._pending is not None:
            try:
                written = os.write(self.fd, self._pending)
            except BlockingIOError:
                return
            except BrokenPipeError:
                # Nobody reads any more: the command learns it from its own next write.
                self.closed, self._pending = True, None
                return
            except OSError as error:
                self.closed, self._pending, self.error = True, None, error.strerror
                return
            self._pending = self._pending[written:] if written < len(self._pending) else None

    def release(self) -> None:
        """Give up the descriptor that was opened here, if one was."""
        if self._own:
            os.close(self.fd)


def widen(pipe: int) -> None:
    """Give a pipe room, so that those at its ends take fewer turns."""
    try:
        import fcntl

        fcntl.fcntl(pipe, _F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:
        # No pipe, not this system, or the user's share of pipe memory is used up.
        pass


def _reopened(fd: int) -> tuple[int, bool]:
    try:
        if os.fstat(fd).st_mode & 0o170000 in _STREAM_MODES and os.path.exists("/proc/self/fd"):
            own = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
            widen(own)
            return own, True
    except OSError:
        pass
    return fd, False
