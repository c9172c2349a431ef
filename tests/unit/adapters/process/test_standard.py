"""Output that is held back, and input that can be read again."""

from __future__ import annotations

import os
import threading

import pytest

from kos_retry.adapters.process import standard
from kos_retry.adapters.process.standard import Held, Spool


def _read_all(fd: int) -> bytes:
    return b"".join(iter(lambda: os.read(fd, 65536), b""))


class _Outputs:
    """Two pipes that stand for our outputs, and what arrived in them."""

    def __init__(self) -> None:
        self.reads, self.writes = zip(*(os.pipe() for _ in range(2)), strict=True)

    def taken(self) -> list[bytes]:
        for fd in self.writes:
            os.close(fd)
        return [_read_all(fd) for fd in self.reads]


@pytest.fixture
def outputs():
    return _Outputs()


def _hold(outputs, *parts: tuple[int, bytes]) -> Held:
    held = Held()
    sinks = [held.stream(fd) for fd in outputs.writes]
    for index, chunk in parts:
        sinks[index].write(chunk)
    return held


def test_nothing_is_written_before_it_is_released(outputs):
    _hold(outputs, (0, b"a"))
    assert [b"", b""] == outputs.taken()


def test_each_stream_gets_its_own(outputs):
    _hold(outputs, (0, b"a"), (1, b"b"), (0, b"c")).release()
    assert [b"ac", b"b"] == outputs.taken()


def test_order_between_the_streams_is_kept():
    read, write = os.pipe()
    held = Held()
    # Both outputs lead to one pipe, as with 2>&1.
    one, other = held.stream(write), held.stream(os.dup(write))
    for sink, chunk in ((one, b"a"), (one, b"b"), (other, b"C"), (one, b"d"), (other, b"E")):
        sink.write(chunk)
    held.release()
    assert b"abCdE" == os.read(read, 100)


def test_only_the_last_attempt_is_released(outputs):
    held = _hold(outputs, (0, b"first attempt, and much longer"), (1, b"x"))
    held.clear()
    held.stream(outputs.writes[0]).write(b"second")
    held.release()
    assert [b"second", b""] == outputs.taken()


def test_nothing_held_releases_nothing(outputs):
    _hold(outputs).release()
    assert [b"", b""] == outputs.taken()


def test_stream_without_a_reader_does_not_cost_the_other_its_output(outputs):
    held = _hold(outputs, (0, b"a" * 1000), (1, b"b"), (0, b"c" * 1000), (1, b"d"))
    os.close(outputs.reads[0])
    held.release()
    os.close(outputs.writes[1])
    assert b"bd" == _read_all(outputs.reads[1])


def test_stream_without_a_reader_is_passed_over_in_large_output(outputs):
    held = _hold(outputs, (0, b"a" * (3 * standard.READ_BYTES + 7)), (1, b"b"))
    os.close(outputs.reads[0])
    held.release()
    os.close(outputs.writes[1])
    assert b"b" == _read_all(outputs.reads[1])


@pytest.mark.parametrize("blocking", [True, False], ids=["blocking", "non-blocking"])
def test_more_than_a_pipe_holds_arrives_whole(outputs, blocking):
    """Whether our output blocks is up to whoever gave it to us."""
    data = bytes(range(256)) * 4096
    held = _hold(outputs, (0, data))
    os.set_blocking(outputs.writes[0], blocking)
    arrived = []
    reader = threading.Thread(target=lambda: arrived.append(_read_all(outputs.reads[0])))
    reader.start()
    held.release()
    os.close(outputs.writes[0])
    reader.join(10)
    assert len(data) == len(arrived[0])


def test_sink_that_holds_never_blocks_and_never_closes(outputs):
    sink = Held().stream(outputs.writes[0])
    sink.write(b"x" * 1_000_000)
    sink.flush()
    assert (False, False, None) == (sink.blocked, sink.closed, sink.error)


_INPUTS = {
    "spooled": (b"typed", None, b"typed"),
    "spooled-and-text": (b"typed", b" more", b"typed more"),
    "text-alone": (None, b"guidance", b"guidance"),
    "nothing": (None, None, b""),
    "large": (b"x" * 1_000_000, b"y", b"x" * 1_000_000 + b"y"),
}


def _spool(data: bytes | None) -> int | None:
    if data is None:
        return None
    fd = standard._unnamed_file()
    os.write(fd, data)
    return fd


@pytest.mark.parametrize(("spooled", "text", "expected"), _INPUTS.values(), ids=_INPUTS)
def test_input_is_read_from_the_start_every_time(spooled, text, expected):
    spool = _spool(spooled)
    assert [expected, expected] == [_read_all(standard.input_with(spool, text)) for _ in range(2)]


def test_readers_of_the_same_input_do_not_disturb_each_other():
    spool = _spool(b"abc")
    one, other = standard.input_with(spool, None), standard.input_with(spool, None)
    assert (b"ab", b"abc", b"c") == (os.read(one, 2), os.read(other, 9), os.read(one, 9))


def test_descriptors_are_not_inherited():
    assert not os.get_inheritable(standard._unnamed_file())


def _spooled(limit: int, *chunks: bytes) -> Spool:
    spool = Spool(limit)
    for chunk in chunks:
        spool.keep(chunk)
    return spool


def test_spool_keeps_all_that_fits():
    assert b"a\nb\nc\n" == _spooled(100, b"a\n", b"b\nc", b"\n").read()


def test_spool_reads_the_same_twice():
    spool = _spooled(100, b"a\n")
    assert (b"a\n", b"a\n") == (spool.read(), spool.read())


@pytest.mark.parametrize("size", [1, 3, 7, 20, 50])
def test_full_spool_keeps_whole_lines_at_the_end(size):
    output = b"".join(b"line %03d\n" % n for n in range(100))
    kept = _spooled(80, *(output[at : at + size] for at in range(0, len(output), size))).read()
    assert (True, True) == (output.endswith(kept), kept.startswith(b"line "))
    assert 40 - len(b"line 000\n") <= len(kept) <= 80 + 2 * size


def test_spool_of_the_next_attempt_starts_empty():
    spool = _spooled(10, b"a\nb\nc\nd\ne\nf\n", b"g\n")
    spool.clear()
    spool.keep(b"new")
    assert b"new" == spool.read()


def test_full_disk_ends_the_spooling_and_nothing_else(monkeypatch):
    spool = _spooled(100, b"a\n")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(standard, "_write_all", full)
    spool.keep(b"b\n")
    monkeypatch.undo()
    spool.keep(b"c\n")
    assert b"a\n" == spool.read()
