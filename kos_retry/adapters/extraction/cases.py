"""Recorded cases of an extractor: what it is asked, and what it has to answer."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from kos_retry.errors import InputError
from kos_retry.limits import EXTRACTOR_PROTOCOL, MAX_FINDINGS, MAX_MESSAGE_BYTES


class Case:
    """A directory below an extractor's `fixtures/`: logs or a `request.json` that names them, and `expected.json`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def name(self) -> str:
        """Return the case's name."""
        return self.directory.name

    @property
    def extractor(self) -> Path:
        """Return the extractor's directory."""
        return self.directory.parent.parent

    def request(self) -> dict[str, Any]:
        """Return the request, with paths that hold here.

        Without a `request.json` every `NAME.log` is the stream of that name and every file in `reports/` a report.
        Raises InputError.
        """
        if not (self.directory / "request.json").exists():
            return self._found()
        data = self._read("request.json")
        for part in parts(data):
            part["path"] = str(self.directory / part["path"])
        return data

    def expected(self) -> dict[str, Any]:
        """Return the answer that is wanted; raises InputError."""
        return self._read("expected.json")

    def _found(self) -> dict[str, Any]:
        logs = sorted(self.directory.glob("*.log"))
        reports = sorted(self.directory.glob("reports/*"))
        return {
            "protocol": EXTRACTOR_PROTOCOL,
            "attempt": {"index": 1, "argv": [], "exit_code": 1, "signal": None, "timed_out": False},
            "streams": {log.stem: {"path": str(log), "bytes": os.path.getsize(log)} for log in logs},
            "reports": [{"path": str(report), "relative": report.name} for report in reports],
            "workspace": "",
            "limits": {"findings": MAX_FINDINGS, "message_bytes": MAX_MESSAGE_BYTES},
            "options": {},
        }

    def _read(self, name: str) -> dict[str, Any]:
        path = self.directory / name
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror}") from error
        except ValueError as error:
            raise InputError(f"{path}: not JSON: {error}") from error
        if not isinstance(data, dict):
            raise InputError(f"{path}: should be a JSON object")
        return data


def cases_of(extractor: Path) -> list[Case]:
    """Return an extractor's cases, sorted by name."""
    return [Case(path) for path in sorted(extractor.glob("fixtures/*")) if path.is_dir()]


def parts(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the streams and the report files of a request."""
    return [*(request.get("streams") or {}).values(), *(request.get("reports") or ())]


def sizes(request: dict[str, Any]) -> dict[str, int]:
    """Return how many bytes each source has that evidence can be a span of."""
    streams = {name: os.path.getsize(stream["path"]) for name, stream in (request.get("streams") or {}).items()}
    reports = {f"report:{r['relative']}": os.path.getsize(r["path"]) for r in request.get("reports") or ()}
    return streams | reports
