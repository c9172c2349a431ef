"""What `run` remembers: asked on a failure, told at the end, and never in the way.

Every question has its time and is answered in a thread that is left behind when it does not come back. The first fault is told
once and ends the remembering, not the run.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from kos_retry import limits
from kos_retry.adapters.store.location import Location, load, with_store
from kos_retry.engine.command import command_fingerprint
from kos_retry.engine.estimate import record_of
from kos_retry.engine.memory import Ended, Known, choose_lessons, sightings_of
from kos_retry.errors import StoreError
from kos_retry.model import FailureEnvelope
from kos_retry.outcome import Result
from kos_retry.ports import Store
from kos_retry.text.durations import format_duration

Answer = TypeVar("Answer")
# Fetched to choose from: many sessions end alike.
_LESSON_ROWS = 20


class StoreMemory:
    """The memory of one run of one command."""

    def __init__(self, location: Location, shown_argv: Sequence[str], warn: Callable[[str], None]) -> None:
        """Take the command with its secrets removed."""
        self._location = location
        self._command = command_fingerprint(shown_argv)
        self._command_line = " ".join(shown_argv)
        self._warn = warn
        self._lost = False
        # What earlier runs made of a failure does not change while this one goes on.
        self._recalled: dict[str, Known | None] = {}

    def recall(self, latest: FailureEnvelope) -> Known | None:
        """Return what is known of a failure, None where that is nothing."""
        if latest.signature not in self._recalled:
            self._recalled[latest.signature] = self._asked(latest)
        return self._recalled[latest.signature]

    def _asked(self, latest: FailureEnvelope) -> Known | None:
        if self._location.file is not None and not os.path.exists(self._location.file):
            return None
        now = datetime.now(UTC)

        def ask(store: Store) -> Known:
            seen = store.of_failure(self._command, latest.signature, limits.STORE_LOOKUP_ROWS)
            alike = store.lessons_like(self._command, latest.signature, latest.coarse, _LESSON_ROWS)
            ours = [s for s in seen[:_LESSON_ROWS] if s.last]
            return Known(record_of(seen, now), choose_lessons([*ours, *alike]))

        return self._guarded(limits.STORE_LOOKUP_SECONDS, ask)

    def remember(self, result: Result) -> None:
        """Record a run that failed at least once; see the port."""
        run = os.urandom(8).hex()
        now = datetime.now(UTC)

        def tell(store: Store) -> None:
            ended = Ended(
                origin=store.origin,
                run=run,
                time=now.replace(microsecond=now.microsecond // 1000 * 1000),
                command=self._command,
                command_line=self._command_line,
                attempts=result.attempts,
                passed=result.passed,
                changed=result.differed,
                stop_reason="" if result.passed else result.ended_by or "",
            )
            store.add(sightings_of(result.history, ended))
            if int(run, 16) % limits.STORE_PRUNE_EVERY == 0:
                tidy(store, now, on_server=self._location.file is None)

        self._guarded(limits.STORE_WRITE_SECONDS, tell)

    def _guarded(self, seconds: float, work: Callable[[Store], Answer]) -> Answer | None:
        if self._lost:
            return None
        load(self._location)
        try:
            return _within(seconds, lambda: with_store(self._location, seconds, self._warn, work))
        except TimeoutError:
            why = f"the store {self._location.shown} does not answer within {format_duration(seconds)}"
        except StoreError as error:
            why = str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the command's own result counts for more
            why = f"cannot use the store {self._location.shown}: {type(error).__name__}: {error}"
        self._lost = True
        self._warn(f"{why}; going on without it")
        return None


def tidy(store: Store, now: datetime, *, on_server: bool) -> int:
    """Drop what is too old or too much; return how many sightings that were."""
    keep = limits.STORE_MAX_SERVER_ROWS if on_server else limits.STORE_MAX_FILE_ROWS
    return store.prune(now - timedelta(days=limits.STORE_MAX_AGE_DAYS), keep)


def _within(seconds: float, work: Callable[[], Answer]) -> Answer:
    """Return what ``work`` returns or raises, in a thread of its own; raises TimeoutError when it takes longer.

    No time limit of a database covers all that can hang: a name that is looked up, a disk of another machine.
    """
    answers: list[Answer] = []
    faults: list[BaseException] = []

    def attempt() -> None:
        try:
            answers.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            faults.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(seconds)
    if faults:
        raise faults[0]
    if not answers:
        raise TimeoutError
    return answers[0]
