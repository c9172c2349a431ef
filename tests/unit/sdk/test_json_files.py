"""Documents that tools wrote are read as far as they are whole, and nothing is made of half an object."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kos_retry.sdk import Report, Request
from kos_retry.sdk.json_files import (
    MAX_TORN_DEPTH,
    Torn,
    _value,
    document,
    embedded,
    entries,
    objects_of,
    position_of,
    text_of,
)

RECORDS = st.lists(
    st.dictionaries(st.text(max_size=3), st.none() | st.booleans() | st.integers() | st.text(max_size=5), max_size=3),
    max_size=4,
)


def a_report(directory: Path, raw: bytes) -> Report:
    (directory / "report.json").write_bytes(raw)
    return Report(str(directory / "report.json"), "report.json")


def a_stream(directory: Path, text: str) -> Request:
    (directory / "stdout.log").write_text(text, encoding="utf-8")
    return Request({"streams": {"stdout": {"path": str(directory / "stdout.log")}}})


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"a": [1, {"b": "c"}]}', {"a": [1, {"b": "c"}]}),
        (b'\xef\xbb\xbf{"a": 1}', {"a": 1}),
        ('{"a": "ü"}'.encode("utf-16"), {"a": "ü"}),
        (b'\r\n{"a":\r\n 1}\r\n', {"a": 1}),
        (b'{"a": "x\xff"}', {"a": "x�"}),
        (b'{"a": "tab\there"}', {"a": "tab\there"}),
        (b"", None),
        (b"no JSON", None),
        (b"<xml/>", None),
    ],
)
def test_a_document_is_read_whatever_its_encoding(tmp_path: Path, raw: bytes, expected: Any) -> None:
    value, evidence = document(a_report(tmp_path, raw))

    assert value == expected
    assert evidence == {"source": "report:report.json", "start": 0, "end": len(raw)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[{"a": 1}, {"a": 2}, {"a": 3', [{"a": 1}, {"a": 2}, {}]),
        ('[{"a": 1}, {"a": 2}', [{"a": 1}, {"a": 2}]),
        ('{"all": [{"a": 1}, {"a": "half', {"all": [{"a": 1}, {}]}),
        ('{"name": "whole", "line": 12', {"name": "whole"}),
        ('{"name": "whole", "line": 12,', {"name": "whole", "line": 12}),
        ('{"name": "whole", "ok": true', {"name": "whole", "ok": True}),
        ('{"name": "who', {}),
        ('{"name"', {}),
        ("{", {}),
        ("[1, 2, 3", [1, 2]),
        ("[1, oops, 3]", [1]),
        ('{"a": 1 "b": 2}', {}),
        ("{1: 2}", {}),
    ],
)
def test_of_a_document_that_is_cut_off_what_is_whole_is_kept(text: str, expected: Any) -> None:
    assert _value(text, 0, 0)[0] == expected


def test_an_object_that_is_cut_off_is_no_object(tmp_path: Path) -> None:
    value, _ = document(a_report(tmp_path, b'{"all": [{"a": 1}, {"a": 2, "b": [{"c": 3}, {"c": 4}]'))

    assert isinstance(value, Torn)
    assert [type(item) for item in value["all"]] == [dict, Torn]
    assert objects_of(value["all"]) == [{"a": 1}]


@given(RECORDS, st.data())
def test_whatever_is_cut_off_only_whole_objects_are_found(records: list[dict[str, Any]], data: st.DataObject) -> None:
    text = json.dumps(records)
    cut = data.draw(st.integers(0, len(text)))

    value, _ = _value(text[:cut], 0, 0)

    assert objects_of(value) == records[: len(objects_of(value))]


@given(st.text(max_size=40))
def test_any_text_is_survived(text: str) -> None:
    _, end = _value(text, 0, 0)

    assert end <= len(text)


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":'])
def test_what_is_nested_without_end_is_given_up(tmp_path: Path, opening: str) -> None:
    value, _ = document(a_report(tmp_path, opening.encode() * 200_000))

    depth = 0
    while value:
        value = value["a"] if isinstance(value, dict) else value[0]
        depth += 1
    assert depth <= MAX_TORN_DEPTH


def test_each_line_is_an_entry_of_its_own(tmp_path: Path) -> None:
    raw = b'\xef\xbb\xbf{"a": 1}\r\nnot JSON\n[1]\n{"a": "caf\xc3\xa9"}\n{"a": 3'

    found = [*entries(a_report(tmp_path, raw))]

    assert [entry.value for entry in found] == [{"a": 1}, {"a": "café"}]
    assert [raw[entry.evidence["start"] : entry.evidence["end"]] for entry in found] == [
        b'\xef\xbb\xbf{"a": 1}',
        b'{"a": "caf\xc3\xa9"}',
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('building\n[\n {"a": 1},\n {"a": 2}\n]\nFound 2 errors.\n', [[{"a": 1}, {"a": 2}]]),
        ('{"a": 1}\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
        ('[INFO] {"a": 1}\n[ 3%] x\n{x}\n', []),
        ('[\nstep 1\n{"a": 1}\n', [[], {"a": 1}]),
        ('[{"a": 1}, {"a": 2\nkilled\n[{"b": 1}]\n', [[{"a": 1}, {}], [{"b": 1}]]),
        ('\x1b[1m[{"a": 1}]\x1b[0m\r\n', [[{"a": 1}]]),
    ],
)
def test_values_are_found_between_other_lines(tmp_path: Path, text: str, expected: list[Any]) -> None:
    assert [value for value, _ in embedded(a_stream(tmp_path, text))] == expected


def test_a_value_in_a_stream_says_which_bytes_it_is(tmp_path: Path) -> None:
    text = 'grüße\n[\n {"a": "ü"}\n]\nend\n'

    [(_, evidence)] = embedded(a_stream(tmp_path, text))

    assert text.encode()[evidence["start"] : evidence["end"]] == '[\n {"a": "ü"}\n]'.encode()


def test_beginnings_without_end_are_given_up(tmp_path: Path) -> None:
    text = "[\n" * 50_000 + "{\n" * 50_000

    assert len([*embedded(a_stream(tmp_path, text))]) <= 1000


@pytest.mark.parametrize(
    ("value", "expected"),
    [("x", "x"), (2086, "2086"), (10**30, ""), (True, ""), (None, ""), (1.5, ""), (["x"], ""), ({}, "")],
)
def test_the_text_of_a_value(value: Any, expected: str) -> None:
    assert text_of(value) == expected


@pytest.mark.parametrize(
    ("value", "offset", "expected"),
    [
        (1, 0, 1),
        (0, 0, None),
        (0, 1, 1),
        (-1, 0, None),
        (2**31, 0, None),
        (True, 0, None),
        ("1", 0, None),
        (1.0, 0, None),
    ],
)
def test_the_position_of_a_value(value: Any, offset: int, expected: int | None) -> None:
    assert position_of(value, offset) == expected
