"""The registry of extractors: deterministic order, one failing extractor never aborts a run."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from kos_retry.errors import ExtractorTimeoutError, RegistrationError
from kos_retry.model import DiagnosticArtifact, DiagnosticReport, ResultRecord
from kos_retry.ports import ExtractionContext, Extractor

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class Context:
    """A context that can be cancelled, and that bounds each extractor."""

    def __init__(self, timeout_seconds: float | None = None, parent: ExtractionContext | None = None) -> None:
        self._cancelled = threading.Event()
        self._parent = parent
        self._timeout = timeout_seconds

    def cancel(self) -> None:
        """Mark the run as cancelled: extractors that have not started yet fail."""
        self._cancelled.set()

    @property
    def cancelled(self) -> bool:
        """Return whether this context or one above it was cancelled."""
        return self._cancelled.is_set() or (self._parent is not None and self._parent.cancelled)

    @property
    def timeout_seconds(self) -> float | None:
        """Return the tightest limit of this context and those above it."""
        limits = [t for t in (self._timeout, self._parent.timeout_seconds if self._parent else None) if t is not None]
        return min(limits, default=None)


class DiagnosticExtractorRegistry:
    """Named extractors, run in the sorted order of their names; safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._extractors: dict[str, Extractor] = {}

    def register(self, extractor: Extractor | None) -> None:
        """Add an extractor.

        Raises RegistrationError for nothing, a bad name, or a name that is taken; what was registered first
        stays.
        """
        if extractor is None:
            raise RegistrationError("register an extractor: there is none")
        name = checked_name(extractor.name)
        with self._lock:
            if name in self._extractors:
                raise RegistrationError(f"register extractor '{name}': the name is taken")
            self._extractors[name] = extractor

    def by_name(self, name: str) -> Extractor:
        """Return the extractor of this name; raises RegistrationError for a bad or unknown one."""
        with self._lock:
            found = self._extractors.get(checked_name(name))
        if found is None:
            raise RegistrationError(f"find extractor '{name}': it is not registered")
        return found

    def names(self) -> tuple[str, ...]:
        """Return all names in sorted order."""
        with self._lock:
            return tuple(sorted(self._extractors))

    def run(self, context: ExtractionContext, wanted: Callable[[str], bool] | None = None) -> DiagnosticReport:
        """Run the extractors that ``wanted`` picks (all without it) and return one record for each.

        An extractor that raises, and one that a cancelled context kept from starting, is recorded as failed.
        """
        started = datetime.now(UTC)
        records = tuple(self._record(name, context) for name in self.names() if wanted is None or wanted(name))
        return DiagnosticReport(started_at=started, finished_at=datetime.now(UTC), results=records)

    def _record(self, name: str, context: ExtractionContext) -> ResultRecord:
        if context.cancelled:
            return ResultRecord(extractor=name, error="not started: the run was cancelled")
        began = time.monotonic()
        try:
            artifact = self.by_name(name).extract(context)
            named = artifact if artifact.name else artifact.replace(name=name)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - one failing extractor never aborts the run
            return ResultRecord(
                extractor=name, error=f"{type(error).__name__}: {error}", duration_seconds=time.monotonic() - began
            )
        return ResultRecord(extractor=name, ok=True, artifact=named, duration_seconds=time.monotonic() - began)


def checked_name(name: object) -> str:
    """Return a valid extractor name; raises RegistrationError for any other."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise RegistrationError(
            f"register extractor {name!r}: a name is 1 to 64 of a-z, 0-9, '_' and '-', and starts with a letter or digit"
        )
    return name


class _Bounded:
    """An extractor whose call is given up after a time."""

    def __init__(self, inner: Extractor, seconds: float) -> None:
        self._inner = inner
        self._seconds = seconds

    @property
    def name(self) -> str:
        """Return the name of the wrapped extractor."""
        return self._inner.name

    def extract(self, context: ExtractionContext) -> DiagnosticArtifact:
        """Run the wrapped extractor; raises ExtractorTimeoutError when it takes too long.

        The thread of one that does not come back is left behind: Python cannot end it. Extractors that must be
        ended run in processes, see `kos_retry.adapters.extraction.extract`.
        """
        inner = Context(self._seconds, context)
        box: list[DiagnosticArtifact | BaseException] = []
        work = threading.Thread(
            target=lambda: box.append(_outcome(self._inner, inner)), name=f"extractor {self.name}", daemon=True
        )
        work.start()
        work.join(inner.timeout_seconds)
        if not box:
            inner.cancel()
            raise ExtractorTimeoutError(f"no answer within {self._seconds:g}s")
        if isinstance(box[0], BaseException):
            raise box[0]
        return box[0]


def with_timeout(extractor: Extractor, seconds: float) -> Extractor:
    """Return an extractor that is given up after ``seconds``; zero or less leaves it unbounded."""
    return extractor if seconds <= 0 else _Bounded(extractor, seconds)


def _outcome(extractor: Extractor, context: ExtractionContext) -> DiagnosticArtifact | BaseException:
    try:
        return extractor.extract(context)
    except BaseException as error:  # noqa: BLE001 - handed over to the waiting thread, which raises it
        return error
