"""What every clock promises to the loop, on the machine's and on one that tests set."""

from __future__ import annotations

import os
import signal

import pytest

from kos_retry.adapters.clock import SystemClock
from kos_retry.adapters.process.signals import SignalPipe


class Imagined:
    """A clock whose waits are over at once."""

    def __init__(self):
        self._now = 0.0
        self._pending = []

    def now(self):
        return self._now

    def wait(self, seconds):
        if self._pending and seconds > 0:
            return self._pending.pop(0)
        self._now += seconds
        return None

    def interrupt(self, number):
        self._pending.append(number)


class Real(SystemClock):
    """The machine's clock, interrupted by real signals."""

    def interrupt(self, number):
        os.kill(os.getpid(), number)


@pytest.fixture(params=["imagined", "real"])
def clock(request):
    if request.param == "imagined":
        yield Imagined()
        return
    pipe = SignalPipe()
    yield Real(pipe)
    pipe.close()


def test_time_never_goes_back(clock):
    readings = [clock.now() for _ in range(100)]
    assert sorted(readings) == readings


def test_wait_that_nothing_ends_returns_nothing(clock):
    assert clock.wait(0.001) is None


def test_wait_of_nothing_returns_nothing(clock):
    assert clock.wait(0.0) is None


def test_time_passes_while_waiting(clock):
    before = clock.now()
    clock.wait(0.001)
    assert clock.now() > before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_signal_ends_the_wait_and_is_named(clock, number):
    clock.interrupt(number)
    assert number == clock.wait(60)
