"""What extractors are asked about, as the core has it and as the protocol says it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kos_retry import limits


class Material(NamedTuple):
    """What extractors may look at: facts of the attempt, redacted streams, and paths of fresh report files."""

    attempt: int
    exit_code: int
    signal: str | None
    timed_out: bool
    argv: tuple[str, ...]
    workspace: str
    streams: dict[str, str]
    reports: tuple[str, ...] = ()


class Spool:
    """A directory for the streams of one outcome after the other; only this user can read it."""

    def __init__(self) -> None:
        self._directory: Path | None = None
        self._number = 0

    def put(self, streams: Mapping[str, str | bytes]) -> dict[str, Any]:
        """Write streams in place of those before and return them as a request names them.

        A path never comes back with other contents, so that who has read one may remember it.
        """
        if self._directory is None:
            self._directory = Path(tempfile.mkdtemp(prefix="kos-retry-"))
        for old in self._directory.iterdir():
            old.unlink()
        self._number += 1
        out = {}
        for name, text in streams.items():
            path = self._directory / f"{self._number}-{name}.log"
            raw = text.encode("utf-8", "replace") if isinstance(text, str) else text
            path.write_bytes(raw)
            out[name] = {"path": str(path), "bytes": len(raw)}
        return out

    def close(self) -> None:
        """Remove everything."""
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = None


def request(
    material: Material, streams: Mapping[str, Any], reports: Sequence[str], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the request of protocol 1; ``options`` are what the user's settings hold for the extractor."""
    attempt = {
        "index": material.attempt,
        "argv": list(material.argv),
        "exit_code": material.exit_code,
        "signal": material.signal,
        "timed_out": material.timed_out,
    }
    return {
        "protocol": limits.EXTRACTOR_PROTOCOL,
        "attempt": attempt,
        "streams": streams,
        "reports": [{"path": os.path.abspath(r), "relative": relative(r, material.workspace)} for r in reports],
        "workspace": material.workspace,
        "limits": {"findings": limits.MAX_FINDINGS, "message_bytes": limits.MAX_MESSAGE_BYTES},
        "options": options,
    }


def relative(path: str, workspace: str) -> str:
    """Return a report's name: its path below the workspace, or its base name."""
    root = workspace.rstrip("/") + "/"
    return path[len(root) :] if workspace and path.startswith(root) else os.path.basename(path)
