"""Extractors in processes of their own: bounded in time and output, and ended with all that they started."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from kos_retry.adapters.extraction.exchange import Exchange
from kos_retry.adapters.process import group, signals
from kos_retry.errors import ExtractorError, ExtractorTimeoutError
from kos_retry.limits import EXTRACTOR_LINGER_SECONDS, EXTRACTOR_PROTOCOL

# Nothing that may be a secret of the wrapped command; an extractor finds its kit where we found ours.
_PASSED_ON = ("PATH", "TMPDIR", "HOME", "PYTHONPATH")
# By this setting of the environment processes that left the group are found again.
_MARK = "KOS_RETRY_MARK"


def ask(
    argv: Sequence[str],
    request: bytes,
    *,
    directory: Path,
    seconds: float,
    environment: Mapping[str, str] | None = None,
) -> Any:
    """Start a command, hand it one request, and return the one JSON value it answers.

    Raises ExtractorTimeoutError when it takes too long and ExtractorError when it fails, says too much, leaves
    processes behind or answers something that is not JSON. Nothing that it started survives.
    """
    mark = os.urandom(16).hex()
    deadline = time.monotonic() + seconds
    try:
        child = _start(argv, directory, subprocess.PIPE, {**(environment or {}), _MARK: mark})
    except (OSError, ValueError) as error:
        raise ExtractorError(f"cannot start {argv[0]}: {error}") from error
    exchange = Exchange(child, request, deadline, last=True)
    try:
        raw = exchange.whole()
    except ExtractorTimeoutError:
        raise ExtractorTimeoutError(f"no answer within {seconds:g}s{_quoted(exchange)}") from None
    finally:
        left = _end_all(child, f"{_MARK}={mark}".encode())
    if child.returncode:
        raise ExtractorError(f"{_ending(child.returncode)}{_quoted(exchange)}")
    if left:
        raise ExtractorError(f"it left processes running, which were ended: {', '.join(left)}")
    return parse(raw)


class Host:
    """A host of bundled extractors, started when it is first needed and again after a kill."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process if it does not run, and return it."""
        if self._child is None or self._child.poll() is not None:
            self.close()
            script = Path(__file__).with_name("host_main.py")
            self._child = _start([sys.executable, "-I", "-S", str(script)], script.parent, subprocess.DEVNULL, {})
        return self._child

    def load(self, script: Path) -> None:
        """Have the host load a script that it will be asked for, without waiting for it."""
        stdin = self.start().stdin
        # What fails here fails again where it is asked for, and is told there.
        with suppress(OSError):
            if stdin is not None:
                stdin.write(orjson.dumps({"script": str(script)}, option=orjson.OPT_APPEND_NEWLINE))

    def ask(self, script: Path, request: Any, seconds: float) -> Any:
        """Have the host run one script on one request; see `ask` for what it raises."""
        deadline = time.monotonic() + seconds
        line = orjson.dumps({"script": str(script), "request": request}, option=orjson.OPT_APPEND_NEWLINE)
        try:
            reply = parse(Exchange(self.start(), line, deadline, last=False).line())
        except ExtractorTimeoutError:
            self.close()
            raise ExtractorTimeoutError(f"no answer within {seconds:g}s") from None
        except ExtractorError:
            self.close()
            raise
        if "error" in reply:
            raise ExtractorError(str(reply["error"]))
        return reply.get("answer")

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            _end(self._child)
            self._child = None


def parse(raw: bytes) -> Any:
    """Return the JSON value in ``raw``; raises ExtractorError when it is none."""
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ExtractorError(f"the answer is not JSON: {error}" if raw.strip() else "it answered nothing") from error


def _start(
    argv: Sequence[str], directory: Path, stderr: int, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a command with an allow-listed environment, which no secret of the wrapped command's is in."""
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    ours = {"LANG": "C.UTF-8", "PYTHONUTF8": "1", "KOS_RETRY_PROTOCOL": str(EXTRACTOR_PROTOCOL)}
    return subprocess.Popen(  # noqa: S603 - the command comes from a manifest that the user chose
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        cwd=directory,
        env={**passed_on, **ours, **environment},
        process_group=0,
        bufsize=0,
    )


def _end_all(child: subprocess.Popen[bytes], mark: bytes) -> list[str]:
    """End a command and all that it started; return the names of what had outlived it."""
    if child.returncode is None:
        group.stop(child.pid, (mark,), 0.0)
        _end(child)
        return []
    _close_pipes(child)
    until = time.monotonic() + EXTRACTOR_LINGER_SECONDS
    while (left := group.members(child.pid, (mark,))) and time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
    names = [group.name_of(pid) or str(pid) for pid in left]
    if left:
        group.stop(child.pid, (mark,), 0.0)
    return names


_LOOK_SECONDS = 0.01


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill the group, leader included, and reap the leader."""
    if child.returncode is None:
        group.send(child.pid, signals.SIGKILL)
    _close_pipes(child)
    child.wait()


def _close_pipes(child: subprocess.Popen[bytes]) -> None:
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            pipe.close()


def _ending(code: int) -> str:
    return f"exit code {code}" if code > 0 else f"it died of signal {-code}"


def _quoted(exchange: Exchange) -> str:
    said = exchange.said()
    return f": {said}" if said else ""
