"""Normalising text: levelling presentation, keeping what is meaning, masking what is circumstance.

A pure function of the text, linear in its length, idempotent: what a mask leaves behind no class matches.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from kos_retry.engine.tokens import TOKEN_CLASSES, TokenClass
from kos_retry.limits import MAX_LINE_CHARS
from kos_retry.text.escapes import plain_line

_QUOTES = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "`": "'", "\u00a0": " ", "\u2026": "..."}
)
# Rules drawn across the width of a terminal; ten levels what a width changes.
_RULE = re.compile(r"([=_*~#─━═-])\1{3,}")
_SPACE = re.compile(r"\s+")
_CLASSES = {f"c{i}": token_class for i, token_class in enumerate(TOKEN_CLASSES)}
_TOKENS = re.compile("|".join(f"(?P<{group}>{c.pattern})" for group, c in _CLASSES.items()))
# Nearly every class wants a digit; this is what the others want, and what is in none of them holds no token at all.
_TELLTALE = re.compile(
    r"[\d<\[/\\]|[a-f]:[a-f]|[A-Fa-f]{8}-|[A-Fa-f]{24}"
    r"|^(?i:age|cf-ray|content-length|date|etag|expires|last-modified|retry-after|set-cookie|x-)"
)
# What some languages print of a set or a map comes in any order. Only values in quotes count as a set, so that code is left alone.
_SET = re.compile(
    r"(?<![\w$])\{((?:'[^'{}]{0,80}'|\"[^\"{}]{0,80}\")(?:, (?:'[^'{}]{0,80}'|\"[^\"{}]{0,80}\")){1,40})\}"
)
# A sign on its own between blanks; where the locale cannot show it a question mark stands there.
_SIGN = re.compile(r"(?<= )[^\x00-\x7f\w](?= )")
# Reporters write one and the same verdict in several ways, with or without the time it took.
_FAILED = re.compile(r"^(?:not ok \d{1,7}(?: -)?|[✗✘✕✖×]|FAILED:?|FAIL:?) (?=\S)")
_TIMED = re.compile(r" ?\(<duration>\)$")
_LOCATED = re.compile(r"(?<=:<n>) - (?=error|warning|fatal)")
_MAP = re.compile(r"\bmap\[([^\[\]]{1,400})\]")
# The lines of one failure are few, and many envelopes hold the same ones.
_CACHE_LINES = 4096
_MAX_PASSES = 8


class Token(NamedTuple):
    """One token that a class took: its place in the levelled line, and what stands there now."""

    token_class: str
    start: int
    end: int
    text: str
    mask: str | None


class OwnSpan(NamedTuple):
    """Where a rule of the configuration matched in a levelled line; ``mask`` is None where it keeps what it matched."""

    rule: str
    start: int
    end: int
    mask: str | None


class Normalised(NamedTuple):
    """A normalised line, the levelled line it was made from, and every token on the way."""

    text: str
    levelled: str
    tokens: tuple[Token, ...]


def level(line: str) -> str:
    """Return a line without its presentation: escapes, width, quote and Unicode form, blanks."""
    text = plain_line(line)[:MAX_LINE_CHARS]
    if not text.isascii():
        text = _SIGN.sub("?", unicodedata.normalize("NFC", text).translate(_QUOTES))
    elif "`" in text:
        text = text.replace("`", "'")
    text = _SPACE.sub(" ", _RULE.sub(r"\1\1\1\1", text)).strip()
    if "{" in text:
        text = _SET.sub(lambda match: "{" + ", ".join(sorted(match[1].split(", "))) + "}", text)
    if "map[" in text:
        text = _MAP.sub(lambda match: "map[" + " ".join(sorted(match[1].split(" "))) + "]", text)
    return text


@lru_cache(maxsize=_CACHE_LINES)
def normalise_line(line: str) -> str:
    """Return one line with its volatile tokens masked."""
    return explain_line(line).text


def normalise(text: str) -> str:
    """Return ``text`` with every line normalised and blank lines dropped."""
    lines = (normalise_line(line) for line in text.splitlines())
    return "\n".join(line for line in lines if line)


def explain_line(line: str, own: Sequence[OwnSpan] = ()) -> Normalised:
    """Normalise one line and say what every class did to it.

    ``own`` are spans in the levelled line that rules of the configuration decide, in order and apart from each other; the classes
    see what lies between them.
    """
    levelled = level(line)
    masked, tokens = _mask(levelled, own)
    text = _unified(masked)
    # A mask can bring two tokens together that make a new one; the fixed point is reached at once in
    # nearly every line, and the bound keeps the rest linear. What an own rule keeps would not outlive a second pass.
    passes = 0 if own or text == levelled else _MAX_PASSES
    for _ in range(passes):
        again = _unified(_mask(level(text))[0])
        if again == text:
            break
        text = again
    return Normalised(text, levelled, tuple(tokens))


def _unified(text: str) -> str:
    """Return a masked line with one form for what reporters write in several."""
    return _TIMED.sub("", _FAILED.sub("failed: ", _LOCATED.sub(": ", text)))


def _mask(line: str, own: Sequence[OwnSpan] = ()) -> tuple[str, list[Token]]:
    tokens: list[Token] = []
    at = 0
    for span in own:
        tokens += _tokens(line, at, span.start)
        tokens.append(Token(span.rule, span.start, span.end, line[span.start : span.end], span.mask))
        at = span.end
    tokens += _tokens(line, at, len(line))
    out, at = [], 0
    for token in tokens:
        out += [line[at : token.start], token.text if token.mask is None else token.mask]
        at = token.end
    out.append(line[at:])
    return "".join(out), tokens


def _tokens(line: str, start: int, end: int) -> Iterator[Token]:
    if not _TELLTALE.search(line):
        return
    for match in _TOKENS.finditer(line, start, end):
        token_class = _CLASSES[match.lastgroup or ""]
        yield Token(token_class.name, match.start(), match.end(), match[0], _replacement(token_class, match[0]))


def _replacement(token_class: TokenClass, text: str) -> str | None:
    if token_class.mask is None or isinstance(token_class.mask, str):
        return token_class.mask
    new = token_class.mask(text)
    return None if new == text else new
