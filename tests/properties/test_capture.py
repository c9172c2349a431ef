"""What holds for any stream that is captured."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from kos_retry.adapters.process import capture
from kos_retry.adapters.process.capture import Capture

_WORDS = st.sampled_from([b"error", b"FAIL", b"\n", b"plain words", "é😀".encode(), b"\xff", b"x" * 30, b"\r\n"])
_CHUNKS = st.lists(
    st.lists(_WORDS, min_size=1, max_size=8).map(b"".join) | st.binary(min_size=1, max_size=60), max_size=30
)
# Examples are small; making a failing one smaller would cost more than all the others.
_here = settings(phases=[Phase.generate], max_examples=200)
_BOUNDS = st.tuples(*[st.integers(1, 24)] * 5)


def _captured(chunks, bounds):
    names = ("HEAD", "TAIL", "MIDDLE", "SCAN", "WINDOW")
    with pytest.MonkeyPatch.context() as patch:
        for name, size in zip(names, bounds, strict=True):
            patch.setattr(capture, f"CAPTURE_{name}_BYTES", size)
        subject = Capture()
        for chunk in chunks:
            subject.add(chunk)
        return subject, subject.result()


def _size(kept) -> int:
    return len(kept.head) + sum(map(len, kept.middle)) + len(kept.tail)


@_here
@given(_CHUNKS, _BOUNDS)
def test_what_is_kept_and_what_is_left_out_add_up(chunks, bounds):
    _, kept = _captured(chunks, bounds)
    assert len(b"".join(chunks)) == kept.omitted + _size(kept)


@_here
@given(_CHUNKS, _BOUNDS)
def test_never_less_than_nothing_is_left_out(chunks, bounds):
    _, kept = _captured(chunks, bounds)
    assert kept.omitted >= 0


@_here
@given(_CHUNKS, _BOUNDS)
def test_head_and_tail_are_ends_of_the_stream(chunks, bounds):
    _, kept = _captured(chunks, bounds)
    data = b"".join(chunks)
    assert data.startswith(kept.head)
    assert data.endswith(kept.tail)


@_here
@given(_CHUNKS, _BOUNDS)
def test_what_stands_in_the_middle_was_printed_in_the_middle(chunks, bounds):
    _, kept = _captured(chunks, bounds)
    data = b"".join(chunks)
    assert [] == [window for window in kept.middle if window not in data]


@_here
@given(_CHUNKS, _BOUNDS)
def test_what_is_kept_is_bounded(chunks, bounds):
    head, tail, middle, *_ = bounds
    _, kept = _captured(chunks, bounds)
    assert _size(kept) <= head + tail + middle


@_here
@given(_CHUNKS, _BOUNDS)
def test_memory_is_bounded(chunks, bounds):
    """Beyond the bounds at most one chunk is held."""
    head, tail, middle, *_ = bounds
    subject, _ = _captured(chunks, bounds)
    held = sum(len(c) for part in (subject._head, subject._middle, subject._tail) for c in part)
    assert held <= head + tail + middle + max((len(c) for c in chunks), default=0)
