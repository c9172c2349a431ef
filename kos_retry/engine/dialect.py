"""Translating the regular expressions of problem matchers into the dialect that runs here.

They are written for other engines. What means the same here is kept or spelt anew; what does not is refused by its name:
an expression that quietly means something else finds nothing, or the wrong thing.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# Character classes of the other dialect know ASCII only.
FLAGS = re.ASCII

_QUANTIFIER = re.compile(r"(?:[*+?]|\{\d{1,9}(?:,\d{0,9})?\})\??")
_NAMED_GROUP = re.compile(r"\(\?(?:<([A-Za-z_]\w{0,99})>|'([A-Za-z_]\w{0,99})')", re.ASCII)
_NAMED_REFERENCE = re.compile(r"\\k(?:<([A-Za-z_]\w{0,99})>|'([A-Za-z_]\w{0,99})')", re.ASCII)
_NUMBERED_REFERENCE = re.compile(r"\\([1-9]\d?)")
_OPTIONS = re.compile(r"\(\?[ims]{1,3}([:)])")
_CODED = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|c([A-Za-z]))")
_SAME_GROUPS = ("(?:", "(?=", "(?!", "(?<=", "(?<!")
# What groups that are refused are called, the longer beginnings first.
_REFUSED_GROUPS = (
    ("(?>", "the atomic group (?>"),
    ("(?#", "the comment (?#"),
    ("(?(", "the condition (?("),
    ("(?|", "the branch reset (?|"),
    ("(?P", "the group (?P"),
    ("(?R", "the recursion (?R"),
    ("(?<", "the balancing or numbered group (?<"),
    ("(?'", "the balancing or numbered group (?'"),
)
_SETS = "dDwWsS"
# Escapes of one character, and how they are spelt here.
_CHARACTERS = {"t": r"\t", "n": r"\n", "r": r"\r", "f": r"\f", "v": r"\v", "a": r"\a", "e": r"\x1b", "0": r"\x00"}
# Lines end without a line end, so that all ends are the same one.
_ANCHORS = {"b": r"\b", "B": r"\B", "A": r"\A", "Z": r"\Z", "z": r"\Z"}
_NEEDS_ESCAPE_IN_CLASS = frozenset("[]\\^-&~|")


class _Piece(NamedTuple):
    """A part of an expression as it is spelt here, and where the rest begins; ``is_set`` where it stands for several characters."""

    text: str
    end: int
    is_set: bool = False


def translate(expression: str) -> str:
    """Return an expression in the dialect of `re`, to be compiled with `FLAGS`.

    Raises ValueError that names the first construct which has no equal here.
    """
    out: list[str] = []
    at = 0
    while at < len(expression):
        piece = _next(expression, at)
        out.append(piece.text)
        at = piece.end
    translated = "".join(out)
    _check(translated)
    return translated


def _next(text: str, at: int) -> _Piece:
    char = text[at]
    if char == "\\":
        return _escape(text, at)
    if char == "[":
        return _class(text, at)
    if char == "(":
        return _group(text, at)
    if quantifier := _QUANTIFIER.match(text, at):
        if text.startswith("+", quantifier.end()):
            raise ValueError(f"the possessive quantifier {quantifier[0]}+ is not supported")
        return _Piece(quantifier[0], quantifier.end())
    # A brace that opens no quantifier is a character; here `{,3}` would be one.
    return _Piece("\\" + char if char in "{}" else char, at + 1)


def _check(translated: str) -> None:
    """Compile an expression to find out whether it is one; raises ValueError."""
    try:
        compiled = re.compile(translated, FLAGS)
    except re.error as error:
        if "fixed-width" in error.msg:
            raise ValueError("a look-behind of variable length is not supported") from error
        raise ValueError(f"it is not a regular expression: {error.msg}") from error
    except (RecursionError, OverflowError) as error:
        raise ValueError("it is not a regular expression: it is nested too deeply, or repeats too often") from error
    named = sorted(compiled.groupindex.values())
    if named and named[0] != compiled.groups - len(named) + 1:
        raise ValueError("a named group before one without a name is not supported: dialects number them differently")


def _escape(text: str, at: int) -> _Piece:
    """Translate an escape outside of a character class."""
    if reference := _NUMBERED_REFERENCE.match(text, at):
        # A group that took no part matches nothing at all there, here it matches never.
        return _Piece(f"(?({reference[1]})\\{reference[1]})", reference.end())
    if reference := _NAMED_REFERENCE.match(text, at):
        name = reference[1] or reference[2]
        return _Piece(f"(?({name})(?P={name}))", reference.end())
    if anchor := _ANCHORS.get(text[at + 1 : at + 2]):
        return _Piece(anchor, at + 2)
    return _character(text, at)


def _character(text: str, at: int) -> _Piece:
    """Translate an escape that stands for a character or a set of them."""
    char = text[at + 1 : at + 2]
    if char in _SETS and char:
        return _Piece("\\" + char, at + 2, is_set=True)
    if char in _CHARACTERS:
        if char == "0" and text[at + 2 : at + 3].isdigit():
            raise ValueError(f"the octal escape {text[at : at + 3]} is not supported")
        return _Piece(_CHARACTERS[char], at + 2)
    if coded := _CODED.match(text, at):
        code = ord(coded[3].upper()) ^ 64 if coded[3] else int(coded[1] or coded[2], 16)
        if 0xD800 <= code <= 0xDFFF:
            raise ValueError(f"the half character {coded[0]} is not supported")
        return _Piece(f"\\u{code:04x}", coded.end())
    if char in ("p", "P"):
        raise ValueError(f"the Unicode property \\{char}{{…}} is not supported")
    if not char:
        raise ValueError("it is not a regular expression: it ends in a backslash")
    if char.isascii() and char.isalnum():
        raise ValueError(f"the escape \\{char} is not supported")
    return _Piece("\\" + char, at + 2)


def _group(text: str, at: int) -> _Piece:
    """Translate the beginning of a group."""
    if not text.startswith("(?", at):
        return _Piece("(", at + 1)
    for start in _SAME_GROUPS:
        if text.startswith(start, at):
            return _Piece(start, at + len(start))
    if named := _NAMED_GROUP.match(text, at):
        return _Piece(f"(?P<{named[1] or named[2]}>", named.end())
    options = _OPTIONS.match(text, at)
    if options and (options[1] == ":" or at == 0):
        return _Piece(options[0], options.end())
    if options:
        raise ValueError(f"the options {options[0]} are supported at the start only")
    for start, name in _REFUSED_GROUPS:
        if text.startswith(start, at):
            raise ValueError(f"{name} is not supported")
    raise ValueError(f"the group {text[at : at + 3]} is not supported")


def _class(text: str, at: int) -> _Piece:
    """Translate a character class, one element after the other."""
    opening = "[^" if text.startswith("[^", at) else "["
    at += len(opening)
    if text.startswith("]", at):
        raise ValueError(f"the empty class {opening}] is not supported")
    out = [opening]
    while at < len(text) and text[at] != "]":
        if len(out) > 1 and text.startswith("-[", at):
            raise ValueError("the class subtraction -[ is not supported")
        element = _element(text, at)
        out.append(element.text)
        at = element.end
    if at >= len(text):
        raise ValueError("it is not a regular expression: a character class is not closed")
    return _Piece("".join(out) + "]", at + 1)


def _element(text: str, at: int) -> _Piece:
    """Translate one character of a class, a set, or a range."""
    low = _member(text, at)
    if text[low.end : low.end + 1] != "-" or text[low.end + 1 : low.end + 2] in ("]", ""):
        return low
    if text.startswith("-[", low.end):
        raise ValueError("the class subtraction -[ is not supported")
    if low.is_set:
        # Nothing starts a range here, so the hyphen is one.
        return _Piece(low.text + r"\-", low.end + 1)
    high = _member(text, low.end + 1)
    if high.is_set:
        raise ValueError(f"a range that ends in {high.text} is not supported")
    return _Piece(f"{low.text}-{high.text}", high.end)


def _member(text: str, at: int) -> _Piece:
    char = text[at]
    if char == "\\":
        if text.startswith(r"\b", at):
            return _Piece(r"\x08", at + 2)
        return _character(text, at)
    if text.startswith("[:", at):
        raise ValueError("the named class [: is not supported")
    return _Piece("\\" + char if char in _NEEDS_ESCAPE_IN_CLASS else char, at + 1)
