"""What tests of adapters share."""

from __future__ import annotations

import pytest

from kos_retry.adapters.process.signals import SignalPipe


@pytest.fixture
def signal_pipe():
    """Give the pipe through which signals arrive, for runners to wait on."""
    opened = SignalPipe()
    yield opened
    opened.close()
