"""The events of a transcript, whatever stands between them."""

from __future__ import annotations

import json

import pytest

from kos_retry.sdk import events
from kos_retry.sdk.events import Events, amount, count, part, parts, text

_ONE, _TWO = {"type": "a", "n": 1}, {"type": "b", "of": {"deep": [1, {"x": "}"}]}}
_LINES = (json.dumps(_ONE) + "\n" + json.dumps(_TWO) + "\n").encode()


def _read(tmp_path, raw: bytes, prefixes: tuple[str, ...] = ()):
    path = tmp_path / "out"
    path.write_bytes(raw)
    found = Events(str(path), prefixes)
    return list(found), found.malformed


# What is read, and how many lines of it are none.
_FORMS = {
    "lines": (_LINES, [_ONE, _TWO], 0),
    "no-end-of-line": (_LINES.rstrip(), [_ONE, _TWO], 0),
    "blank-lines": (b"\n \n" + _LINES.replace(b"\n", b"\n\n\t\n"), [_ONE, _TWO], 0),
    "crlf": (_LINES.replace(b"\n", b"\r\n"), [_ONE, _TWO], 0),
    "byte-order-mark": (b"\xef\xbb\xbf" + _LINES, [_ONE, _TWO], 0),
    "colour": (b"\x1b[32m" + _LINES.replace(b"\n", b"\x1b[0m\n"), [_ONE, _TWO], 0),
    "compact": (json.dumps(_TWO, separators=(",", ":")).encode(), [_TWO], 0),
    "indented-object": (json.dumps(_TWO, indent=2).encode(), [_TWO], 0),
    "indented-array": (json.dumps([_ONE, _TWO], indent=2).encode(), [_ONE, _TWO], 0),
    "array-on-a-line": (json.dumps([_ONE, _TWO]).encode(), [_ONE, _TWO], 0),
    "indented-among-lines": (
        _LINES + json.dumps(_TWO, indent=1).encode() + b"\n" + _LINES,
        [_ONE, _TWO, _TWO, _ONE, _TWO],
        0,
    ),
    "nothing": (b"", [], 0),
    "words-between": (b"warning: slow\n" + _LINES + b"bye\n", [_ONE, _TWO], 2),
    "cut-last-line": (_LINES[:-6], [_ONE], 1),
    "cut-first-line": (_LINES[3:], [_TWO], 1),
    "cut-document": (json.dumps(_TWO, indent=2).encode()[:-2], [], 1),
    "cut-document-before-lines": (b'{\n  "type": \n' + _LINES, [_ONE, _TWO], 1),
    "json-that-is-no-object": (b'1\n"a"\nnull\n[]\n[1]\n' + _LINES, [_ONE, _TWO], 5),
    "invalid-utf-8": (b'{"type": "a\xff"}\n', [{"type": "a\ufffd"}], 0),
    "not-a-number": (b'{"n": NaN, "m": -Infinity}\n', [{"n": "NaN", "m": "-Infinity"}], 0),
    "endless-number": (b'{"n": ' + b"9" * 5000 + b"}\n" + _LINES, [_ONE, _TWO], 1),
    "deep": (b"[" * 100_000 + b"\n" + _LINES, [_ONE, _TWO], 1),
    "null-bytes": (b"\0\0\0\n" + _LINES, [_ONE, _TWO], 1),
}


@pytest.mark.parametrize(("raw", "expected", "malformed"), _FORMS.values(), ids=_FORMS)
def test_every_form_is_read_and_what_is_none_is_counted(tmp_path, raw, expected, malformed):
    assert (expected, malformed) == _read(tmp_path, raw)


def test_mark_in_front_of_a_document_is_taken_off(tmp_path):
    raw = b"[ERROR] " + json.dumps(_TWO, indent=2).encode() + b"\n"
    assert ([_TWO], 0) == _read(tmp_path, raw, ("[ERROR] ",))


def test_line_that_is_too_long_is_skipped_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(events, "MAX_EVENT_BYTES", 100)
    raw = b'{"text": "' + b"x" * 1000 + b'"}\n'
    assert ([_ONE, _TWO], 1) == _read(tmp_path, raw + _LINES)


def test_document_that_never_ends_is_not_collected_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(events, "MAX_EVENT_BYTES", 100)
    found, malformed = _read(tmp_path, b"{\n" + b'  "x": 1,\n' * 100 + b"}\n" + _LINES)
    assert ([_ONE, _TWO], True) == (found, malformed >= 1)


def test_of_a_long_stream_whole_lines_at_its_end_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(events, "MAX_STREAM_BYTES", len(json.dumps(_TWO)) + 5)
    assert ([_TWO], 0) == _read(tmp_path, _LINES)


def test_stream_that_was_not_captured_has_no_events():
    found = Events(None)
    assert ([], True) == (list(found), found.blank)


def test_blank_tells_nothing_from_something_unreadable(tmp_path):
    path = tmp_path / "out"
    path.write_bytes(b" \n\n")
    blank = Events(str(path))
    assert ([], True) == (list(blank), blank.blank)
    path.write_bytes(b"hello\n")
    words = Events(str(path))
    assert ([], False) == (list(words), words.blank)


_FIELDS = {
    "s": "x",
    "blank": " ",
    "n": 3,
    "f": 0.5,
    "yes": True,
    "minus": -1,
    "huge": 10**400,
    "o": {"p": {"q": 1}},
    "l": [1, {}],
}


def test_fields_of_another_type_are_absent():
    assert ("x", "", "x", "") == tuple(text(_FIELDS, *names) for names in (("s",), ("blank",), ("n", "s"), ("none",)))
    assert (3, None, None, None, 0) == tuple(count(_FIELDS, name) for name in ("n", "yes", "minus", "huge", "f"))
    assert (0.5, None, None) == tuple(amount(_FIELDS, name) for name in ("f", "s", "huge"))
    assert ({"q": 1}, {}, {}) == (part(_FIELDS, "o", "p"), part(_FIELDS, "s"), part(_FIELDS, "o", "x"))
    assert ([{}], []) == (parts(_FIELDS["l"]), parts("l"))
