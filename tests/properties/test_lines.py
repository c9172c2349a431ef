"""An extractor sees the same lines whichever way a stream is read."""

from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st

from kos_retry import sdk

_pieces = st.sampled_from(
    [b"\n", b"\r\n", b"\r", b"a", b"error: b", b"\t", b" ", b"\x1b[31m", b"\x1b", b"\x00", b"\x7f", b"\x08", b"\xff", b"\xc3\xa9", b"\xe2\x80\xae", b"\xc2\x9b"]
)  # fmt: skip
_streams = st.one_of(st.binary(max_size=200), st.lists(_pieces, max_size=40).map(b"".join))


def _told(lines):
    return [(line.text, line.source, line.start, line.end) for line in lines]


@given(_streams, st.sampled_from([2, 5, 64 * 1024]), st.sampled_from([1, 7, 256 * 1024]))
def test_reading_in_pieces_and_one_by_one_are_the_same(data, longest, piece):
    usual = sdk.MAX_LINE_BYTES, sdk._PIECE_BYTES
    sdk.MAX_LINE_BYTES, sdk._PIECE_BYTES = longest, piece
    try:
        one_by_one = list(sdk._one_by_one(io.BytesIO(data), "output", 1 << 20))
        assert _told(one_by_one) == _told(sdk._in_pieces(data, "output"))
    finally:
        sdk.MAX_LINE_BYTES, sdk._PIECE_BYTES = usual


@given(_streams)
def test_evidence_of_a_line_is_its_bytes(data):
    for line in sdk._in_pieces(data, "output"):
        assert b"\n" not in data[line.start : line.end]
