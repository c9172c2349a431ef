"""One request and its answer over the pipes of a child process: everything is read, so that neither side can block the other."""

from __future__ import annotations

import os
import select
import subprocess
import time
from typing import IO

from kos_retry.errors import ExtractorError, ExtractorTimeoutError
from kos_retry.limits import EXTRACTOR_OUTPUT_BYTES, EXTRACTOR_STDERR_BYTES

_CHUNK = 65536
# How often a child that holds its pipes open in silence is looked after: it may have ended and left them to others.
_SLICE_SECONDS = 0.05


class Exchange:
    """Sends a request to a child and collects what it says until the deadline.

    With ``last`` its input ends after the request. Raises ExtractorTimeoutError when that passes, and ExtractorError when the answer grows too large.
    """

    def __init__(self, child: subprocess.Popen[bytes], request: bytes, deadline: float, *, last: bool) -> None:
        self._child = child
        self._last = last
        self._deadline = deadline
        self._unsent = memoryview(request)
        self._answer = bytearray()
        self._said = bytearray()
        self._poll = select.poll()
        self._pipes: dict[int, IO[bytes]] = {}
        self._watch(child.stdin, select.POLLOUT)
        self._watch(child.stdout, select.POLLIN)
        self._watch(child.stderr, select.POLLIN)

    def line(self) -> bytes:
        """Return the one line that a host answers."""
        while not self._answer.endswith(b"\n"):
            if self._child.stdout not in self._pipes.values():
                raise ExtractorError("the extractor host ended without an answer")
            self._turn()
        return bytes(self._answer)

    def whole(self) -> bytes:
        """Return everything that a command writes until it ends, whoever else holds its pipes then."""
        while self._readable():
            if not self._turn() and self._child.poll() is not None:
                break
        try:
            self._child.wait(max(0.0, self._deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise ExtractorTimeoutError("no answer in time") from None
        return bytes(self._answer)

    def said(self) -> str:
        """Return the end of what was said on standard error, on one line."""
        return " ".join(self._said.decode("utf-8", "replace").split())[-200:]

    def _watch(self, pipe: IO[bytes] | None, events: int) -> None:
        if pipe is not None:
            os.set_blocking(pipe.fileno(), False)
            self._poll.register(pipe, events)
            self._pipes[pipe.fileno()] = pipe

    def _forget(self, pipe: IO[bytes]) -> None:
        self._poll.unregister(pipe)
        del self._pipes[pipe.fileno()]

    def _readable(self) -> bool:
        return any(pipe is not self._child.stdin for pipe in self._pipes.values())

    def _turn(self) -> bool:
        """Serve what is ready; return whether there was anything."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise ExtractorTimeoutError("no answer in time")
        ready = self._poll.poll(min(left, _SLICE_SECONDS) * 1000)
        for fd, _ in ready:
            self._serve(self._pipes[fd])
        return bool(ready)

    def _serve(self, pipe: IO[bytes]) -> None:
        if pipe is self._child.stdin:
            self._send(pipe)
            return
        chunk = os.read(pipe.fileno(), _CHUNK)
        if not chunk:
            self._forget(pipe)
        elif pipe is self._child.stdout:
            self._answer += chunk
            if len(self._answer) > EXTRACTOR_OUTPUT_BYTES:
                raise ExtractorError(f"the answer is larger than {EXTRACTOR_OUTPUT_BYTES} bytes")
        else:
            self._said = (self._said + chunk)[-EXTRACTOR_STDERR_BYTES:]

    def _send(self, pipe: IO[bytes]) -> None:
        """Write a part of the request; one that does not want all of it may still answer."""
        try:
            self._unsent = self._unsent[os.write(pipe.fileno(), self._unsent) :]
        except BrokenPipeError:
            self._unsent = self._unsent[:0]
        if not self._unsent:
            self._forget(pipe)
            if self._last:
                pipe.close()
