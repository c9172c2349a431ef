"""Writing without waiting."""

from __future__ import annotations

import fcntl
import os
import sys

import pytest

from kos_retry.adapters.process.sink import Sink

_LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="another system cannot open a pipe again")


@pytest.fixture
def pipe():
    read, write = os.pipe()
    sink = Sink(write)
    yield read, write, sink
    sink.release()
    for fd in (read, write):
        try:
            os.close(fd)
        except OSError:
            pass


def _drained(read: int) -> bytes:
    os.set_blocking(read, False)
    out = b""
    try:
        while chunk := os.read(read, 1 << 20):
            out += chunk
    except BlockingIOError:
        pass
    return out


def test_chunk_that_fits_is_written_at_once(pipe):
    read, _, sink = pipe
    sink.write(b"abc")
    assert (b"abc", False, False) == (os.read(read, 10), sink.blocked, sink.closed)


@_LINUX
def test_full_pipe_is_not_waited_for(pipe):
    sink = pipe[2]
    sink.write(b"x" * (1 << 21))
    assert (True, False) == (sink.blocked, sink.closed)


@_LINUX
def test_what_did_not_fit_is_written_in_its_order(pipe):
    read, _, sink = pipe
    data = bytes(range(256)) * 8192
    sink.write(data)
    out = b""
    while sink.blocked:
        out += _drained(read)
        sink.flush()
    assert data == out + _drained(read)


@_LINUX
def test_flush_of_a_pipe_that_is_still_full_changes_nothing(pipe):
    sink = pipe[2]
    sink.write(b"x" * (1 << 21))
    before = len(sink._pending)
    sink.flush()
    assert (before, True) == (len(sink._pending), sink.blocked)


@_LINUX
def test_others_see_no_change_in_our_output(pipe):
    """The flag belongs to the open file, which strangers share."""
    assert not fcntl.fcntl(pipe[1], fcntl.F_GETFL) & os.O_NONBLOCK


def test_reader_that_is_gone_closes_the_sink_without_a_fault(pipe):
    read, _, sink = pipe
    os.close(read)
    sink.write(b"abc")
    assert (True, False, None) == (sink.closed, sink.blocked, sink.error)


@_LINUX
def test_reader_that_goes_while_something_is_pending_closes_the_sink(pipe):
    read, _, sink = pipe
    sink.write(b"x" * (1 << 21))
    os.close(read)
    sink.flush()
    assert (True, False, None) == (sink.closed, sink.blocked, sink.error)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_output_that_cannot_be_written_says_why():
    fd = os.open("/dev/full", os.O_WRONLY)
    sink = Sink(fd)
    sink.write(b"abc")
    sink.release()
    os.close(fd)
    assert (True, "No space left on device") == (sink.closed, sink.error)


def test_file_is_written_where_it_stands(tmp_path):
    fd = os.open(tmp_path / "a", os.O_RDWR | os.O_CREAT)
    os.write(fd, b"before ")
    sink = Sink(fd)
    sink.write(b"after")
    sink.release()
    os.close(fd)
    assert "before after" == (tmp_path / "a").read_text()


def test_released_sink_leaves_our_descriptor_open(pipe):
    read, write, _ = pipe
    Sink(write).release()
    os.write(write, b"still here")
    assert b"still here" == os.read(read, 20)
