"""Which command it is, wherever and whenever it runs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import orjson

from kos_retry.engine.normalise import normalise
from kos_retry.limits import MAX_LINE_CHARS

# The way of masking stands in front, so that two are never mixed.
COMMAND_VERSION = "c0"


def command_fingerprint(argv: Sequence[str]) -> str:
    """Return the fingerprint of a redacted command line, ``c0:`` and 64 hexadecimal digits.

    Every word is normalised as a line of output is: workspaces, temporary paths, ids, seeds and times do not count, the order of
    the words does.
    """
    words = [_masked(word) for word in argv]
    return f"{COMMAND_VERSION}:{hashlib.sha256(orjson.dumps(words)).hexdigest()}"


def _masked(word: str) -> str:
    # A line is normalised up to a length; of two scripts that differ behind it, each keeps a fingerprint of its own.
    return word if any(len(line) > MAX_LINE_CHARS for line in word.splitlines()) else normalise(word)
