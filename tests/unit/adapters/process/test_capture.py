"""What is kept of a stream, in how much memory."""

from __future__ import annotations

import pytest

from kos_retry.adapters.process import capture
from kos_retry.adapters.process.capture import Capture
from kos_retry.limits import CAPTURE_WINDOW_BYTES
from kos_retry.outcome import Captured

_HEAD, _TAIL, _MIDDLE, _SCAN, _WINDOW = 100, 301, 200, 10_000, 60


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Make the bounds so small that a test can see past them."""
    bounds = {"HEAD": _HEAD, "TAIL": _TAIL, "MIDDLE": _MIDDLE, "SCAN": _SCAN, "WINDOW": _WINDOW}
    for name, size in bounds.items():
        monkeypatch.setattr(capture, f"CAPTURE_{name}_BYTES", size)


def _kept(*chunks: bytes) -> Captured:
    kept = Capture()
    for chunk in chunks:
        kept.add(chunk)
    return kept.result()


def _text(part: bytes | tuple[bytes, ...]) -> str:
    return "\n".join(p.decode("utf-8", "replace") for p in (part if isinstance(part, tuple) else (part,)))


def _numbered(count: int) -> list[bytes]:
    return [b"line %05d\n" % n for n in range(count)]


def test_nothing_gives_nothing():
    kept = _kept()
    assert (b"", (), b"", 0) == (kept.head, kept.middle, kept.tail, kept.omitted)


@pytest.mark.parametrize("size", [1, _HEAD - 1, _HEAD, _HEAD + 1, _HEAD + _TAIL])
@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_what_fits_is_kept_whole(size, chunk):
    data = (b"abcdefg\n" * 100)[:size]
    kept = _kept(*(data[i : i + chunk] for i in range(0, size, chunk)))
    assert (data, (), b"", 0) == (kept.head, kept.middle, kept.tail, kept.omitted)


def test_of_more_head_and_tail_are_kept():
    lines = _numbered(1000)
    kept = _kept(*lines)
    assert b"".join(lines).startswith(kept.head)
    assert b"".join(lines).endswith(kept.tail)


def test_cuts_fall_on_line_ends():
    kept = _kept(b"".join(_numbered(1000)))
    assert (b"\n", b"line ") == (kept.head[-1:], kept.tail[:5])


def test_most_of_head_and_tail_are_used():
    kept = _kept(*_numbered(1000))
    assert (_HEAD - len(kept.head) < 11, _TAIL - len(kept.tail) < 11) == (True, True)


@pytest.mark.parametrize("chunk", [1, 13, 4096])
def test_what_is_left_out_is_counted(chunk):
    data = b"".join(_numbered(500))
    kept = _kept(*(data[i : i + chunk] for i in range(0, len(data), chunk)))
    assert len(data) == len(kept.head) + len(kept.tail) + kept.omitted


@pytest.mark.parametrize("word", [b"error", b"Error", b"FAILED", b"Exception", b"panic", b"fatal"])
def test_telling_line_of_the_middle_is_kept(word):
    lines = _numbered(500)
    lines[200] = b"it was %s: no total\n" % word
    assert lines[200] in b"".join(_kept(*lines).middle)


def test_dull_middle_is_not_kept():
    assert () == _kept(*_numbered(500)).middle


def test_telling_line_is_kept_in_whole_lines():
    data = b"".join(_numbered(40)) + b"an error\n" + b"".join(_numbered(400))
    middle = b"".join(_kept(data[:400], data[400:800], data[800:]).middle)
    assert b"an error\n" in middle
    assert [] == [line for line in middle.split(b"\n") if line and line not in data.split(b"\n")]


def test_middle_is_bounded():
    assert sum(map(len, _kept(*[b"error number %d\n" % n for n in range(500)]).middle)) <= _MIDDLE


def test_middle_is_searched_up_to_a_limit():
    lines = _numbered(5000)
    lines[4000] = b"it was error: no total\n"
    assert () == _kept(*lines).middle


def test_memory_is_bounded():
    kept = Capture()
    for _ in range(20_000):
        kept.add(b"an error and more\n")
    held = sum(len(c) for part in (kept._head, kept._middle, kept._tail) for c in part)
    assert held <= _HEAD + _MIDDLE + _TAIL + 18
    assert len(kept._tail) < 200


def test_result_can_be_asked_for_twice():
    kept = Capture()
    kept.add(b"".join(_numbered(500)))
    assert (kept.result().tail, kept.result().omitted) == (kept.result().tail, kept.result().omitted)


_ONE_LINE = {
    "without-an-end": b"x" * 1000 + b"error: no total",
    "with-an-end": b"x" * 1000 + b"error: no total\n",
    "behind-short-ones": b"short\n" + b"x" * 1000 + b"error: no total\n",
}


@pytest.mark.parametrize("data", _ONE_LINE.values(), ids=_ONE_LINE)
def test_end_of_one_long_line_is_kept(data):
    assert b"error: no total" in _kept(data).tail


def test_start_of_one_long_line_behind_a_short_one_is_kept(monkeypatch):
    """A broken line is left out where that costs little."""
    monkeypatch.setattr(capture, "CAPTURE_HEAD_BYTES", 2 * CAPTURE_WINDOW_BYTES)
    assert b"fatal: no total" in _kept(b"short\nfatal: no total " + b"x" * 9 * CAPTURE_WINDOW_BYTES).head


@pytest.mark.parametrize("part", ["head", "tail", "middle"])
def test_no_character_is_split(part):
    """A line longer than everything leaves no line end to cut at."""
    lines = ["x" * n + char * 150 + "error" + char * 300 for n in range(4) for char in "é错😀"]
    kept = [_kept(*(line.encode()[i : i + 50] for i in range(0, 2000, 50))) for line in lines]
    assert [] == [line[:9] for line, k in zip(lines, kept, strict=True) if "\ufffd" in _text(getattr(k, part))]


def test_bytes_that_are_no_text_are_kept_all_the_same():
    kept = _kept(b"\xff\xfe" * 1000)
    assert (True, True) == (bool(kept.tail), kept.omitted < 2000)


def test_count_of_what_is_left_out_is_never_below_nothing():
    """Where all that left the tail is telling, nothing is left out."""
    kept = _kept(b"x" * _HEAD, b"an error", b"y" * _TAIL)
    assert (0, b"an error") == (kept.omitted, b"".join(kept.middle))
