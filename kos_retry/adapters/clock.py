"""Time for the loop: a clock that never goes back, and waiting that a signal ends."""

from __future__ import annotations

import select
import time

from kos_retry.adapters.process import signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kos_retry.adapters.process.signals import SignalPipe


class SystemClock:
    """The machine's monotonic clock."""

    def __init__(self, signal_pipe: SignalPipe) -> None:
        self._signals = signal_pipe

    def now(self) -> float:
        """Return seconds; see the port."""
        return time.monotonic()

    def wait(self, seconds: float) -> int | None:
        """Wait; see the port."""
        until = time.monotonic() + seconds
        poll = select.poll()
        poll.register(self._signals.fd, select.POLLIN)
        while True:
            left = until - time.monotonic()
            poll.poll(max(0.0, left) * 1000)
            stopping = [n for n in self._signals.take() if n in signals.STOPPING]
            if stopping:
                return stopping[0]
            if left <= 0:
                return None


def timestamp() -> str:
    """Return the wall-clock time in UTC as ISO 8601, to the millisecond."""
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"
