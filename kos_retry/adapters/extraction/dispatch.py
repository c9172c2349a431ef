"""Asking several extractors at once, each in a process that can be killed."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import orjson

from kos_retry.adapters.extraction import child
from kos_retry.adapters.extraction.manifest import Manifest
from kos_retry.errors import ExtractorError
from kos_retry.limits import SECOND_HOST_BYTES


class Task(NamedTuple):
    """An extractor and what it is asked."""

    manifest: Manifest
    request: dict[str, Any]


class Asked:
    """Extractors at work. They share the time ``until`` then; what is left when it is over is not asked."""

    def __init__(self, tasks: Sequence[Task], hosts: Hosts, until: float) -> None:
        self.answers: dict[str, Any] = {}
        self.failures: dict[str, str] = {}
        self._until = until
        hosted = deque(task for task in tasks if task.manifest.bundled and task.manifest.hosted)
        others = deque(task for task in tasks if not (task.manifest.bundled and task.manifest.hosted))
        self._threads = [
            *(self._thread(hosted, _through(host)) for host in hosts.for_tasks(hosted)),
            *(self._thread(others, ask_command) for _ in range(min(len(others), cores()))),
        ]

    def wait(self) -> None:
        """Wait until all have answered or failed."""
        for thread in self._threads:
            thread.join()

    def _thread(self, queue: deque[Task], ask: _Ask) -> threading.Thread:
        thread = threading.Thread(target=self._work, args=(queue, ask), name="extractors", daemon=True)
        thread.start()
        return thread

    def _work(self, queue: deque[Task], ask: _Ask) -> None:
        while True:
            try:
                task = queue.popleft()
            except IndexError:
                return
            try:
                self.answers[task.manifest.id] = ask(task, self._seconds(task))
            except Exception as error:  # noqa: BLE001 - what befalls one extractor must not keep the others from being asked
                known = isinstance(error, ExtractorError)
                self.failures[task.manifest.id] = str(error) if known else f"{type(error).__name__}: {error}"

    def _seconds(self, task: Task) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise ExtractorError("not asked: the extractors before it used up the time")
        return min(left, task.manifest.timeout)


class Hosts:
    """The host processes that the bundled extractors share: a second one where there is much to read and a core to do it."""

    def __init__(self, first: child.Host | None = None) -> None:
        self._hosts = [first or child.Host()]

    def for_tasks(self, tasks: Sequence[Task] | deque[Task]) -> list[child.Host]:
        """Return the hosts to ask so many tasks of."""
        if not tasks:
            return []
        size = sum(stream["bytes"] for stream in tasks[0].request["streams"].values())
        wanted = 2 if len(tasks) > 1 and cores() > 1 and size >= SECOND_HOST_BYTES else 1
        while len(self._hosts) < wanted:
            self._hosts.append(child.Host())
        return self._hosts[:wanted]

    def close(self) -> None:
        """End all of them."""
        for host in self._hosts:
            host.close()


_Ask = Callable[[Task, float], Any]


def ask_command(task: Task, seconds: float) -> Any:
    """Ask an extractor by its command."""
    manifest = task.manifest
    return child.ask(manifest.argv(), orjson.dumps(task.request), directory=manifest.directory, seconds=seconds)


def cores() -> int:
    """Return how many processes can work at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _through(host: child.Host) -> _Ask:
    def ask(task: Task, seconds: float) -> Any:
        script = task.manifest.script()
        if script is None:  # pragma: no cover - only hosted ones stand in a host's queue
            raise ExtractorError("it cannot be hosted")
        return host.ask(script, task.request, seconds)

    return ask
