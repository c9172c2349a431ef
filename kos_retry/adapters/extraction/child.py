"""Talking to an extractor in a process of its own: bounded in time and output, and killed as a group."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import orjson

from kos_retry.adapters.process import group, signals
from kos_retry.errors import ExtractorError, ExtractorTimeoutError
from kos_retry.limits import EXTRACTOR_OUTPUT_BYTES, EXTRACTOR_PROTOCOL, EXTRACTOR_STDERR_BYTES

_CHUNK = 65536
_PASSED_ON = ("PATH", "TMPDIR", "HOME")


def ask(argv: Sequence[str], request: bytes, *, directory: Path, seconds: float) -> Any:
    """Start a command, hand it one request, and return the one JSON value it answers.

    Raises ExtractorTimeoutError when it takes too long and ExtractorError when it fails, says too much, or
    answers something that is not JSON. Nothing that it started survives.
    """
    deadline = time.monotonic() + seconds
    try:
        child = _start(argv, directory, subprocess.PIPE)
    except OSError as error:
        raise ExtractorError(f"cannot start {argv[0]}: {error.strerror}") from error
    try:
        _write(child, request, deadline)
        _stdin(child).close()
        raw = _read(child, deadline, until_line=False)
        code = child.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise ExtractorTimeoutError(f"no answer within {seconds:g}s") from None
    finally:
        _end(child)
        said = _tail(child)
    if code:
        raise ExtractorError(f"exit code {code}" + (f": {said}" if said else ""))
    return parse(raw)


class Host:
    """The shared host of the bundled extractors, started when it is first needed and again after a kill."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process if it does not run."""
        if self._child is None or self._child.poll() is not None:
            script = Path(__file__).with_name("host_main.py")
            self._child = _start([sys.executable, "-I", "-S", str(script)], script.parent, subprocess.DEVNULL)

    def ask(self, script: Path, request: Any, seconds: float) -> Any:
        """Have the host run one script on one request; see `ask` for what it raises."""
        self.start()
        child = self._child
        if child is None:  # pragma: no cover - start() sets it or raises
            raise ExtractorError("the extractor host is not running")
        deadline = time.monotonic() + seconds
        line = orjson.dumps({"script": str(script), "request": request}) + b"\n"
        try:
            _write(child, line, deadline)
            reply = parse(_read(child, deadline, until_line=True))
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
        raise ExtractorError(f"the answer is not JSON: {error}") from error


def _start(argv: Sequence[str], directory: Path, stderr: int) -> subprocess.Popen[bytes]:
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment |= {"LANG": "C.UTF-8", "PYTHONUTF8": "1", "KOS_RETRY_PROTOCOL": str(EXTRACTOR_PROTOCOL)}
    return subprocess.Popen(  # noqa: S603 - the command comes from a manifest that the user chose
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        cwd=directory,
        env=environment,
        process_group=0,
        bufsize=0,
    )


def _write(child: subprocess.Popen[bytes], data: bytes, deadline: float) -> None:
    """Write a request; one that does not read it is caught by the deadline, one that closed it may still answer."""
    pipe = _stdin(child)
    os.set_blocking(pipe.fileno(), False)
    view = memoryview(data)
    poll = select.poll()
    poll.register(pipe.fileno(), select.POLLOUT)
    while view:
        _await(poll, deadline)
        try:
            view = view[os.write(pipe.fileno(), view) :]
        except BrokenPipeError:
            return
        except BlockingIOError:
            continue


def _read(child: subprocess.Popen[bytes], deadline: float, *, until_line: bool) -> bytes:
    pipe = child.stdout
    if pipe is None:  # pragma: no cover - every child is started with a pipe
        raise ExtractorError("no pipe to read the answer from")
    poll = select.poll()
    poll.register(pipe.fileno(), select.POLLIN)
    got = bytearray()
    while not (until_line and got.endswith(b"\n")):
        _await(poll, deadline)
        chunk = os.read(pipe.fileno(), _CHUNK)
        if not chunk:
            if until_line:
                raise ExtractorError("the extractor host ended without an answer")
            break
        got += chunk
        if len(got) > EXTRACTOR_OUTPUT_BYTES:
            raise ExtractorError(f"the answer is larger than {EXTRACTOR_OUTPUT_BYTES} bytes")
    return bytes(got)


def _await(poll: select.poll, deadline: float) -> None:
    left = deadline - time.monotonic()
    if left <= 0 or not poll.poll(left * 1000):
        raise ExtractorTimeoutError("no answer in time")


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill the group, leader included, and reap the leader."""
    if child.returncode is None:
        group.send(child.pid, signals.SIGKILL)
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            pipe.close()
    child.wait()


def _stdin(child: subprocess.Popen[bytes]) -> IO[bytes]:
    if child.stdin is None:  # pragma: no cover - every child is started with a pipe
        raise ExtractorError("no pipe to write the request to")
    return child.stdin


def _tail(child: subprocess.Popen[bytes]) -> str:
    """Close an ended child's standard error; return the end of what is there already."""
    if child.stderr is None:
        return ""
    os.set_blocking(child.stderr.fileno(), False)
    with child.stderr as stderr:
        said = stderr.read() or b""
    return " ".join(said[-EXTRACTOR_STDERR_BYTES:].decode("utf-8", "replace").split())[-200:]
