"""Turning terminal output into plain text: escapes, carriage returns, backspaces, control characters.

Everything here is linear in the length of its input, whatever the input is.
"""

from __future__ import annotations

import re


def _string(stops: str = "", ends: str = "") -> str:
    """Return the pattern of a string's body and end; bounded, so that one without an end cannot swallow the rest of a log."""
    return rf"[^\x07\x1b{stops}\n]{{0,4096}}(?:\x07|\x1b\\{ends})"


def _escape(string: str) -> str:
    return rf"\x1b(?:\[[0-?]{{0,64}}[ -/]{{0,8}}[@-~]|[\]PX^_]{string}|[ -/]{{1,4}}[0-~]|[0-Z\\^-~]|)"


# ECMA-48: CSI … final byte; OSC, DCS, SOS, PM and APC strings end with ST or BEL. What starts with one fixed character is found at the
# speed of a plain search; the one-character forms of the same commands, which hardly any output has, take another expression.
_C1_STRING = _string(r"\x90\x98\x9c-\x9f", r"|\x9c")
_ESCAPE = re.compile(_escape(_C1_STRING))
_ESCAPE_BYTES = re.compile(_escape(_string()).encode())
_C1 = re.compile(r"[\x80-\x9f]")
_ESCAPE_OR_C1 = re.compile(rf"{_ESCAPE.pattern}|\x9b[0-?]{{0,64}}[ -/]{{0,8}}[@-~]|[\x9d\x90\x98\x9e\x9f]{_C1_STRING}")
# C0 and C1 without tab, newline, carriage return and backspace, and DEL.
_CONTROL = re.compile(r"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_ASCII_CONTROL = bytes(code for code in (*range(0x20), 0x7F) if chr(code) not in "\t\n\r\b")
_C1_BYTES = re.compile(b"\xc2[\x80-\x9f]")
# Format characters that change what a reader sees: zero-width, bidirectional overrides, BOM.
_INVISIBLE = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_INVISIBLE_BYTES = re.compile(b"\xe2(?:\x80[\x8b\x8e\x8f\xaa-\xae]|\x81[\xa0\xa6-\xa9])")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

# Commands that CI hosts read anywhere in a line: `##[error]`, `##name[…]`.
_LINE_COMMAND = re.compile(r"^([^\S\n]{0,80})::", re.MULTILINE)
_HOST_COMMAND = re.compile(r"##(?=\w{0,32}\[)")


def decode(raw: bytes) -> str:
    """Decode UTF-8, with a replacement character for what is not."""
    return raw.decode("utf-8", "replace")


def strip_escapes(text: str) -> str:
    """Remove terminal escape sequences."""
    if not text.isascii() and _C1.search(text):
        return _ESCAPE_OR_C1.sub("", text)
    return _ESCAPE.sub("", text) if "\x1b" in text else text


def plain_line(line: str) -> str:
    """Return what a terminal would show of one line (no newline in it) after the last character."""
    text = strip_escapes(line).rstrip("\r")
    if "\r" in text:
        text = _overwrite(text)
    if "\b" in text:
        text = _backspace(text)
    text = _CONTROL.sub("", text)
    return text if text.isascii() else _INVISIBLE.sub("", text)


def plain_text(text: str) -> str:
    """Return what a terminal would show of ``text``, with newlines as the only line ends.

    Most of the work is done on UTF-8, where a table and fixed prefixes find what has to go ten times faster.
    """
    data = _without_escapes(text).replace(b"\r\n", b"\n")
    if b"\r" in data or b"\b" in data:
        lines = data.decode("utf-8", "surrogatepass").split("\n")
        data = "\n".join(plain_line(line) for line in lines).encode("utf-8", "surrogatepass")
    data = data.translate(None, _ASCII_CONTROL)
    if not data.isascii():
        data = _INVISIBLE_BYTES.sub(b"", _C1_BYTES.sub(b"", data)).replace(_BYTE_ORDER_MARK, b"")
    return data.decode("utf-8", "surrogatepass")


def _without_escapes(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    if b"\xc2" in data and _C1_BYTES.search(data):
        return strip_escapes(text).encode("utf-8", "surrogatepass")
    return _ESCAPE_BYTES.sub(b"", data) if b"\x1b" in data else data


def printable(text: str) -> str:
    """Return ``text`` on one line, safe to print: nothing in it is read by a terminal or a CI host."""
    return inert(" ".join(plain_text(text.replace("\t", " ")).split()))


def inert(text: str) -> str:
    """Return plain text in which no line is a command to a CI host, whatever stands before it."""
    text = _HOST_COMMAND.sub("## ", text)
    return _LINE_COMMAND.sub(r"\1: :", text) if "::" in text else text


def _overwrite(text: str) -> str:
    """Resolve carriage returns: a later segment overwrites the start of an earlier one."""
    shown = ""
    for segment in text.split("\r"):
        # A progress bar that redraws a shorter text leaves the rest of the longer one behind on a real
        # screen; tools blank it first, so the last non-empty segment is what the reader sees.
        if segment.strip():
            shown = segment
    return shown


def _backspace(text: str) -> str:
    kept: list[str] = []
    for char in text:
        if char == "\b":
            if kept:
                kept.pop()
        else:
            kept.append(char)
    return "".join(kept)
