"""JSON on one line."""

from __future__ import annotations

import pytest

from kos_retry.text.jsonline import json_line


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (None, "null"),
        (True, "true"),
        (0, "0"),
        (1.5, "1.5"),
        ('a"b\n', '"a\\"b\\n"'),
        ("ä😀", '"\\u00e4\\ud83d\\ude00"'),
        ([], "[]"),
        ((1, "x"), '[1,"x"]'),
        ({}, "{}"),
        ({"a": [None, {"b": False}]}, '{"a":[null,{"b":false}]}'),
    ],
)
def test_value_is_written_on_one_ascii_line(value, line):
    assert line == json_line(value)
