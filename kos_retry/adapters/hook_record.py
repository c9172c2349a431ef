"""What the hooks of an agent remember in a session's directory: how often they kept it going, and which calls it made."""

from __future__ import annotations

import os
from typing import Any

import orjson

from kos_retry.adapters import state
from kos_retry.errors import StateError
from kos_retry.limits import HOOK_CALLS_BYTES

_STOPS = "hook_stops.json"
_CALLS = "hook_calls.jsonl"


class HookRecord:
    """The record of one session; raises StateError where it cannot be kept."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def blocks(self, about: str, *, again: bool) -> int:
        """Return how often in a row stopping was refused.

        A refusal counts on while the agent is still kept going (``again``), and as long as nothing new is known: ``about``
        names what a refusal rests on.
        """
        try:
            with open(self._path(_STOPS), "rb") as file:
                known = orjson.loads(file.read())
            return int(known["blocks"]) if again or known["about"] == about else 0
        except (OSError, ValueError, KeyError, TypeError):
            return 0

    def blocked(self, about: str, blocks: int) -> None:
        """Remember that stopping was refused so many times in a row."""
        state.make_private(self._directory)
        state.write_private(self._path(_STOPS), orjson.dumps({"about": about, "blocks": blocks}))

    def called(self, tool: str, mark: str, *, ok: bool) -> int:
        """Remember a call and return how many calls like it stand at the end, itself included; 0 for one that failed.

        ``mark`` identifies what was called and what came of it, without telling it.
        """
        state.make_private(self._directory)
        line = orjson.dumps({"tool": tool, "mark": mark, "ok": ok}, option=orjson.OPT_APPEND_NEWLINE)
        try:
            fd = os.open(self._path(_CALLS), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "r+b", buffering=0) as file:
                # One write: what two hooks append at once does not mix.
                file.write(line)
                end = os.fstat(file.fileno()).st_size
                tail = os.pread(file.fileno(), HOOK_CALLS_BYTES, max(0, end - HOOK_CALLS_BYTES))
        except OSError as error:
            raise StateError(f"cannot write {self._path(_CALLS)}: {error.strerror}") from error
        return _run(tail, mark) if ok else 0

    def _path(self, name: str) -> str:
        return os.path.join(self._directory, name)


def _run(tail: bytes, mark: str) -> int:
    """Return how many successful calls with this mark stand at the end; a line that cannot be read is none."""
    run = 0
    for line in reversed(tail.splitlines()):
        call = _call(line)
        if call.get("mark") != mark or call.get("ok") is not True:
            break
        run += 1
    return run


def _call(line: bytes) -> dict[str, Any]:
    try:
        call = orjson.loads(line)
    except orjson.JSONDecodeError:
        return {}
    return call if isinstance(call, dict) else {}
