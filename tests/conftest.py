"""What all tests share: how hypothesis searches, and a server for the store."""

from __future__ import annotations

import importlib.util
import os

import pytest
from hypothesis import HealthCheck, settings
from servers import Server, find_server

# CI must not fail for luck: there the same examples are tried every time; at a desk new ones are.
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=100, print_blob=True)
settings.register_profile("desk", deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci" if os.environ.get("CI") else "desk")


@pytest.fixture(scope="session")
def server():
    """Return a running PostgreSQL server."""
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("psycopg is not installed here: install kos-retry[postgres]")
    programs = find_server()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed here")
    running = Server(programs)
    yield running
    running.close()
