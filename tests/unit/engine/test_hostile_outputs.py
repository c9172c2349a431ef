"""Outputs that are made to hurt: the work stays bounded, and so does what is kept.

A pattern that backtracks would need years for one of these, so a test that ends has passed; how long they take is measured in
``benchmarks/signatures.py``.
"""

from __future__ import annotations

import random
import string
import tracemalloc

import pytest
from builders import observed

from kos_retry.limits import MAX_EVIDENCE_LINES, MAX_MESSAGE_BYTES
from kos_retry.text.escapes import plain_text

_MB = 1_000_000
_chosen = random.Random(7)


def _line_of(alphabet: str) -> str:
    return "error: " + "".join(_chosen.choices(alphabet, k=_MB))


HOSTILE = {
    "letters": _line_of(string.ascii_letters),
    "digits": _line_of(string.digits),
    "punctuation": _line_of(string.punctuation),
    "hexadecimal": _line_of("0123456789abcdef"),
    "letters-of-many-scripts": _line_of("aéßЖ中😀\u0301\u200b"),
    "path-characters": _line_of("a/.-_:"),
    "ten-megabytes-without-a-newline": "error " * (10 * _MB // 6),
    "nested-brackets": "error: " + "[({" * (_MB // 3),
    "nested-quotes": "error: {'" * (_MB // 9),
    "every-byte": bytes(range(256)).decode("latin-1") * (_MB // 256),
    "escapes-that-never-end": "\x1b]error" * (_MB // 7),
    "carriage-returns": "error 1%\r" * (_MB // 9),
    "backspaces": "error\b" * (_MB // 6),
    "hundred-thousand-different-errors": "".join(
        f"error: {name}{n} is missing\n" for n in range(50_000) for name in ("queue", "stack")
    ),
    "errors-of-random-words": "".join(
        f"error: {''.join(_chosen.choices(string.ascii_lowercase, k=12))} is missing\n" for _ in range(30_000)
    ),
    "frames": "QueueError: a\n" + "    at load (queue.js:7:3)\n" * 40_000,
    "clocks": "1:" * (_MB // 2),
    "versions": "1." * (_MB // 2),
    "urls": "error http://a?" * (_MB // 15),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_signature_of_a_hostile_output_is_bounded_and_repeatable(text):
    one, other = observed(text), observed(plain_text(text))
    assert (one.signature, True, True) == (
        other.signature,
        len(one.error_message.encode()) <= MAX_MESSAGE_BYTES,
        # The lines, what they announce, and their stack.
        len(one.error_message.splitlines()) <= 2 * MAX_EVIDENCE_LINES + 1,
    )


def test_memory_grows_with_the_output_and_no_faster():
    def peak(size: int) -> int:
        text = "".join(f"error: queue {n:x} is missing\n" for n in range(size))
        tracemalloc.start()
        observed(text)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most // len(text)

    # A set of places grows in steps; what grows with the square would be five times as much.
    assert peak(20_000) <= 2 * peak(4_000)
