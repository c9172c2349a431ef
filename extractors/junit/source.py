"""The bytes of a report, mended where a tool wrote what no XML may hold; every byte stays in its place."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import BinaryIO

MAX_FILE_BYTES = 64 * 1024 * 1024
CHUNK_BYTES = 64 * 1024
# What stands for the escape character, which XML may not hold: a character that it may, and that nobody prints.
ESCAPE = "\x7f"
# The longest reference to a character that is looked for: leading zeros are not.
MAX_REFERENCE_CHARS = 12

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BEGINS = re.compile(rb"<\?xml\s|<testsuites?[\s>/]")
_ENCODING = re.compile(rb"""^(?:\xef\xbb\xbf)?<\?xml[^>]{0,100}encoding=["']([\w.-]{1,40})""")
_VERSION = re.compile(rb"""^((?:\xef\xbb\xbf)?<\?xml\s{1,8}version=["'])1\.1""")
_SUSPECT = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|&#")
# Control characters, halves of characters, and bytes that are none (as `surrogateescape` keeps them).
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_REFERENCE = re.compile(r"&#(?:x([0-9a-fA-F]{1,8})|(\d{1,9}));")


class Source:
    """One report's bytes; ``skipped`` is how many stand before the document: what a tool printed in front of it."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.skipped = 0

    def chunks(self) -> Iterator[bytes]:
        """Yield the document in pieces, each as long as what it replaces."""
        first = self._stream.read(CHUNK_BYTES)
        if first.startswith(_UTF_16):
            yield from (first, *self._rest())
            return
        begins = None if first.lstrip().startswith((b"<", codecs.BOM_UTF8)) else _BEGINS.search(first)
        self.skipped = begins.start() if begins else len(first) - len(first.lstrip())
        first = _VERSION.sub(rb"\g<1>1.0", first[self.skipped :])
        yield from _mended((first, *self._rest()), _codec(first))

    def _rest(self) -> Iterator[bytes]:
        for _ in range(CHUNK_BYTES, MAX_FILE_BYTES, CHUNK_BYTES):
            chunk = self._stream.read(CHUNK_BYTES)
            if not chunk:
                return
            yield chunk


def _codec(first: bytes) -> str:
    """Return how to read a document as text: as UTF-8, or where it says that it is something else, byte for byte."""
    declared = _ENCODING.match(first)
    return "utf-8" if declared is None or declared[1].lower() in (b"utf-8", b"utf8", b"us-ascii") else "latin-1"


def _mended(chunks: Iterator[bytes] | tuple[bytes, ...], codec: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(codec)("surrogateescape")
    held, whole = "", True
    for chunk in chunks:
        if (
            whole
            and not held
            and chunk.isascii()
            and not _SUSPECT.search(chunk)
            and b"&" not in chunk[-MAX_REFERENCE_CHARS:]
        ):
            yield chunk
            continue
        text = held + decoder.decode(chunk)
        whole = not decoder.getstate()[0]
        begun = text.rfind("&", -MAX_REFERENCE_CHARS)
        held = text[begun:] if begun >= 0 and ";" not in text[begun:] else ""
        yield _mend(text[: len(text) - len(held)], codec)
    yield _mend(held + decoder.decode(b"", final=True), codec)


def _mend(text: str, codec: str) -> bytes:
    return _REFERENCE.sub(_kept, _FORBIDDEN.sub(_stand_in, text)).encode(codec)


def _stand_in(forbidden: re.Match[str]) -> str:
    if forbidden[0] == "\x1b":
        return ESCAPE
    return "???" if forbidden[0] in "\ufffe\uffff" else "?"


def _kept(reference: re.Match[str]) -> str:
    """Return a reference to a character as it is where XML allows that character."""
    code = int(reference[1], 16) if reference[1] else int(reference[2])
    allowed = code in (9, 10, 13) or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x110000
    if allowed:
        return reference[0]
    return (ESCAPE if code == 0x1B else "?") * len(reference[0])
