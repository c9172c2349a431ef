"""The extractors of the checkout, their recorded cases, and a shared host to run them in."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kos_retry.adapters.extraction import host_main
from kos_retry.adapters.extraction.cases import Case
from kos_retry.adapters.extraction.manifest import bundled_directories

# An extractor that has not answered by then hangs: the slowest answer to the worst input takes about a second.
HANG_SECONDS = 10.0


class Host:
    """A running host process that is asked one request after another."""

    def __init__(self) -> None:
        command = [sys.executable, "-I", "-S", str(Path(host_main.__file__))]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._lines: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def ask(self, extractor: Path, request: dict[str, Any]) -> dict[str, Any]:
        """Return ``{"answer": …}`` or ``{"error": …}``; raise queue.Empty where none comes in time."""
        assert self._process.stdin is not None
        task = {"script": str(extractor / "extract.py"), "request": request}
        self._process.stdin.write(json.dumps(task).encode() + b"\n")
        self._process.stdin.flush()
        reply: dict[str, Any] = json.loads(self._lines.get(timeout=HANG_SECONDS))
        return reply

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)


@pytest.fixture(scope="session")
def host() -> Iterator[Host]:
    running = Host()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def other_host() -> Iterator[Host]:
    """Return a second host: isolated mode draws another hash seed for every process."""
    running = Host()
    yield running
    running.stop()


@pytest.fixture(scope="session")
def case_of() -> type[Case]:
    """Return the class of cases."""
    return Case


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    extractors = bundled_directories()
    if "extractor" in metafunc.fixturenames:
        metafunc.parametrize("extractor", extractors, ids=[path.name for path in extractors])
    if "case" in metafunc.fixturenames:
        cases = [Case(path.parent) for place in extractors for path in sorted(place.glob("fixtures/*/request.json"))]
        metafunc.parametrize("case", cases, ids=[f"{case.extractor.name}-{case.directory.name}" for case in cases])
