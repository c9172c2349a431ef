"""Cutting text to bytes."""

from __future__ import annotations

import pytest

from kos_retry.text.bounds import byte_length, cut_bytes, well_formed


@pytest.mark.parametrize(
    ("text", "limit", "kept"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "abc"),
        ("äöü", 4, "äö"),
        ("äöü", 3, "ä"),
        ("€", 2, ""),
        ("😀x", 4, "😀"),
        ("😀x", 3, ""),
        ("abc", 0, ""),
        ("abc", -5, ""),
        ("", 0, ""),
    ],
)
def test_cut_never_splits_a_character(text, limit, kept):
    assert kept == cut_bytes(text, limit)


def test_length_counts_bytes_not_characters():
    assert 6 == byte_length("äöü")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("a\ud800b", "a\ufffdb"),
        ("\udc00", "\ufffd"),
        ("\ud83d\ude00", "😀"),
    ],
    ids=["ascii", "lone-high", "lone-low", "pair-in-two-halves"],
)
def test_lone_surrogate_is_replaced(text, expected):
    assert expected == well_formed(text)
