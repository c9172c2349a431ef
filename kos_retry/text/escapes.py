"""Turning terminal output into plain text: escapes, carriage returns, backspaces, control characters.

Everything here is linear in the length of its input, whatever the input is.
"""

from __future__ import annotations

import re

# ECMA-48: CSI … final byte; OSC, DCS, SOS, PM and APC strings end with ST or BEL. String bodies are bounded
# so that an unterminated one cannot swallow the rest of a log.
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]{0,4096}(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]{1,4}[0-~]"
    r"|\x1b[0-Z\\^-~]"
    r"|\x1b"
)
# C0 and C1 without tab, newline, carriage return and backspace, and DEL.
_CONTROL = re.compile(r"[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_ASCII_CONTROL = bytes(code for code in (*range(0x20), 0x7F) if chr(code) not in "\t\n\r\b")
# Format characters that change what a reader sees: zero-width, bidirectional overrides, BOM.
_INVISIBLE = re.compile("[\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")

# Commands that CI hosts read anywhere in a line: `##[error]`, `##name[…]`.
_LINE_COMMAND = re.compile(r"^([^\S\n]{0,80})::", re.MULTILINE)
_HOST_COMMAND = re.compile(r"##(?=\w{0,32}\[)")


def decode(raw: bytes) -> str:
    """Decode UTF-8, with a replacement character for what is not."""
    return raw.decode("utf-8", "replace")


def strip_escapes(text: str) -> str:
    """Remove terminal escape sequences."""
    if "\x1b" not in text and not _has_c1(text):
        return text
    return _ESCAPE.sub("", text)


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
    """Return what a terminal would show of ``text``, with newlines as the only line ends."""
    text = strip_escapes(text).replace("\r\n", "\n")
    if "\r" in text or "\b" in text:
        text = "\n".join(plain_line(line) for line in text.split("\n"))
    if text.isascii():
        # Bytes can be dropped by a table, a hundred times faster than by an expression.
        return text.encode("ascii").translate(None, _ASCII_CONTROL).decode("ascii")
    return _INVISIBLE.sub("", _CONTROL.sub("", text))


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


def _has_c1(text: str) -> bool:
    return not text.isascii() and any("\x80" <= c <= "\x9f" for c in set(text))
