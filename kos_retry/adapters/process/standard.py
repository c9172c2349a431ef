"""Our three standard descriptors: closed ones kept closed, input that can be read again, output that is held back."""

from __future__ import annotations

import os
import select

from kos_retry.limits import READ_BYTES

STDIN, STDOUT, STDERR = 0, 1, 2


def occupy() -> frozenset[int]:
    """Put something in the place of standard descriptors that are closed, and return which those were.

    Otherwise the next pipe would get such a number. What is put there closes when the command starts, so that it finds its
    descriptors as closed as they were.
    """
    closed = []
    for fd in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(fd)
        except OSError:
            if os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC) == fd:
                closed.append(fd)
    return frozenset(closed)


def spool_input() -> int:
    """Read standard input to its end and return a descriptor of what it held; memory stays bounded."""
    spool = _unnamed_file()
    while chunk := os.read(STDIN, READ_BYTES):
        _write_all(spool, chunk)
    return spool


def input_with(spool: int | None, text: bytes | None) -> int:
    """Return a descriptor that reads the spooled input and then ``text``, from the start."""
    copy = _unnamed_file()
    if spool is not None:
        os.lseek(spool, 0, os.SEEK_SET)
        while chunk := os.read(spool, READ_BYTES):
            _write_all(copy, chunk)
    _write_all(copy, text or b"")
    os.lseek(copy, 0, os.SEEK_SET)
    return copy


class Held:
    """Output of one attempt that is kept on disk until it is known whether this attempt decides."""

    def __init__(self) -> None:
        self._spool = _unnamed_file()
        self._order: list[tuple[int, int]] = []

    def stream(self, fd: int) -> HeldSink:
        """Return the sink that stands for one of our outputs."""
        return HeldSink(self, fd)

    def keep(self, fd: int, chunk: bytes) -> None:
        """Keep a chunk of one stream."""
        _write_all(self._spool, chunk)
        if self._order and self._order[-1][0] == fd:
            self._order[-1] = (fd, self._order[-1][1] + len(chunk))
        else:
            self._order.append((fd, len(chunk)))

    def clear(self) -> None:
        """Forget what is kept: another attempt starts."""
        os.ftruncate(self._spool, 0)
        os.lseek(self._spool, 0, os.SEEK_SET)
        self._order = []

    def release(self) -> None:
        """Write what is kept to our outputs, in the order in which it came."""
        os.lseek(self._spool, 0, os.SEEK_SET)
        for fd, size in self._order:
            left = size
            while left and (chunk := os.read(self._spool, min(left, READ_BYTES))):
                left -= len(chunk)
                try:
                    _write_all(fd, chunk)
                except OSError:
                    # Nobody reads that stream any more; the other one may still have a reader.
                    os.lseek(self._spool, left, os.SEEK_CUR)
                    break


class HeldSink:
    """A sink that never blocks and never loses its reader, see `kos_retry.adapters.process.sink.Sink`."""

    blocked = False
    closed = False
    error = None

    def __init__(self, held: Held, fd: int) -> None:
        self.fd = fd
        self._held = held

    def write(self, chunk: bytes) -> None:
        """Keep a chunk."""
        self._held.keep(self.fd, chunk)

    def flush(self) -> None:
        """Do nothing: nothing is pending."""


class Spool:
    """The output of one attempt on disk while it passes through, up to a limit: beyond it the oldest part is given up.

    Two files take turns, so that nothing is ever copied: a full one waits until the other one is full, too.
    """

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._older, self._newer = _unnamed_file(), _unnamed_file()
        self._size = 0
        self._cut = False
        self._broken = False

    def clear(self) -> None:
        """Forget what is kept: another attempt starts."""
        for fd in (self._older, self._newer):
            _empty(fd)
        self._size, self._cut, self._broken = 0, False, False

    def keep(self, chunk: bytes) -> None:
        """Keep a chunk; where the disk is full, what comes from now on is lost, and the command goes on."""
        if self._broken:
            return
        try:
            if self._size >= self._half:
                self._cut = self._cut or os.fstat(self._older).st_size > 0
                self._older, self._newer = self._newer, self._older
                _empty(self._newer)
                self._size = 0
            _write_all(self._newer, chunk)
            self._size += len(chunk)
        except OSError:
            self._broken = True

    def read(self) -> bytes:
        """Return what was kept, from the start of a line on."""
        kept = b"".join(_content(fd) for fd in (self._older, self._newer))
        return kept[kept.find(b"\n") + 1 :] if self._cut else kept


def _empty(fd: int) -> None:
    os.ftruncate(fd, 0)
    os.lseek(fd, 0, os.SEEK_SET)


def _content(fd: int) -> bytes:
    os.lseek(fd, 0, os.SEEK_SET)
    chunks = []
    while chunk := os.read(fd, READ_BYTES):
        chunks.append(chunk)
    return b"".join(chunks)


def _unnamed_file() -> int:
    """Return a descriptor of a file that nobody else can open and that vanishes with us."""
    directory = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - the file has no name there
    try:
        return os.open(directory, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except (OSError, AttributeError):
        import tempfile

        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            # Somebody made the descriptor non-blocking; it is theirs to do.
            poll = select.poll()
            poll.register(fd, select.POLLOUT)
            poll.poll()
