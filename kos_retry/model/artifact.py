"""What extractors hand over: artifacts, and the report of one registry run."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from kos_retry.limits import MAX_NAME_BYTES
from kos_retry.model.base import Count, Json, Seconds, Wire, bounded


class DiagnosticArtifact(Wire, frozen=True, kw_only=True):
    """A generic container for what one extractor found; only the extractor's readers know the payload."""

    name: Annotated[str, bounded(MAX_NAME_BYTES)] = ""
    size_bytes: Count = 0
    mime_type: Annotated[str, bounded(MAX_NAME_BYTES)] = "application/json"
    payload: Json = None


class ResultRecord(Wire, frozen=True, kw_only=True):
    """How one extractor fared in a run of the registry."""

    extractor: Annotated[str, bounded(MAX_NAME_BYTES)]
    ok: bool = False
    error: Annotated[str, bounded(512)] | None = None
    artifact: DiagnosticArtifact | None = None
    duration_seconds: Seconds = 0.0


class DiagnosticReport(Wire, frozen=True, kw_only=True):
    """The bounded summary of one registry run, its results in the sorted order of their names."""

    started_at: datetime
    finished_at: datetime
    results: tuple[ResultRecord, ...] = ()

    @property
    def ok_count(self) -> int:
        """Return how many extractors answered."""
        return sum(r.ok for r in self.results)

    @property
    def failed_count(self) -> int:
        """Return how many extractors failed."""
        return len(self.results) - self.ok_count
