"""Choosing the lines that say what failed."""

from __future__ import annotations

import pytest

from kos_retry.engine.evidence import choose_lines
from kos_retry.limits import MAX_EVIDENCE_LINES

_NOISE = "".join(f"  step {n}: copied asset-{n}.bin\n" for n in range(2000))


def _texts(*outputs: str) -> list[str]:
    return [line.text for line in choose_lines(*outputs)]


_FOUND = {
    "start-of-much-noise": ("ValueError: bad total\n" + _NOISE, ["ValueError: bad total"]),
    "end-of-much-noise": (_NOISE + "ValueError: bad total\n", ["ValueError: bad total"]),
    "middle-of-much-noise": (_NOISE + "fatal: bad object\n" + _NOISE, ["fatal: bad object"]),
    "log-level-behind-a-clock": (
        "2026-03-01 08:15:42,118 ERROR queue: message lost\n" + _NOISE,
        ["2026-03-01 08:15:42,118 ERROR queue: message lost"],
    ),
    "failed-to": (
        "fetch: (7) Failed to connect to db port 5432\n" + _NOISE,
        ["fetch: (7) Failed to connect to db port 5432"],
    ),
    "no-newline-at-the-end": ("error: no", ["error: no"]),
    "carriage-returns": ("10%\r20%\rerror: no\n", ["error: no"]),
    "colour": ("\x1b[31merror\x1b[0m: no\n", ["error: no"]),
    "in-capitals": ("FATAL: ROLE DOES NOT EXIST\n", ["FATAL: ROLE DOES NOT EXIST"]),
    "letters-that-grow-in-lower-case": ("İİİ\nerror: no\n", ["error: no"]),
    "same-line-many-times": ("error: no\n" * 500, ["error: no"]),
    "same-line-but-for-its-clock": (
        "error: no at 08:15:42\nerror: no at 08:15:43\n",
        ["error: no at 08:15:42"],
    ),
}


@pytest.mark.parametrize(("output", "lines"), _FOUND.values(), ids=_FOUND)
def test_error_is_found_wherever_it_stands(output, lines):
    assert lines == _texts(output)


_WRAPPED = {
    "build-tool": ("src/a.c:7:3: error: expected ';'\nmake: *** [Makefile:3: all] Error 1\n", 0),
    "exit-code": ("error: queue is gone\nError: Process completed with exit code 1.\n", 0),
    "pointer": ("error: queue is gone\nerror: build failed, see the log for details\n", 0),
    "summary": ("E   AssertionError: 41\n===== 1 failed, 3 passed in 0.2s =====\n", 0),
    "header": ("Traceback (most recent call last):\nKeyError: 'total'\n", 1),
    "source-line": ("  12 | throw new Error('unexpected')\nTypeError: total is not a number\n", 1),
    "raise-line": ("    raise ValueError('error: bad total')\nValueError: bad total 3\n", 1),
    "warning": ("warning: unused error type\nerror: queue is gone\n", 1),
    "zero-errors": ("0 errors, 0 failures\nfatal: queue is gone\n", 1),
    "passed-test": ("ok 12 - error handling\nnot ok 13 - total is 41\n", 1),
    "retrying": ("WARN: request failed, retrying: error 3\nfatal: queue is gone\n", 1),
}


@pytest.mark.parametrize(("output", "index"), _WRAPPED.values(), ids=_WRAPPED)
def test_what_wraps_or_looks_like_the_cause_loses_to_the_cause(output, index):
    best = max(choose_lines(output), key=lambda line: line.score)
    assert output.splitlines()[index] == best.text


@pytest.mark.parametrize(
    "output",
    [
        "all checks passed, 0 errors\ndone\n",
        "INFO: error rate is fine\ndone\n",
        "✓ reports an error\ndone\n",
    ],
)
def test_decoy_is_not_chosen_as_an_error(output):
    assert ("last",) == choose_lines(output)[-1].marks


def test_without_an_error_the_last_lines_stand_for_it():
    assert ["b", "c", "d"] == _texts("a\nb\n\nc\nd\n\n")


def test_fallback_prefers_the_last_output():
    assert ["from stderr"] == _texts("from stdout\n", "from stderr\n")


def test_fallback_skips_an_output_without_words():
    assert ["from stdout"] == _texts("from stdout\n", " \n")


def test_error_on_the_first_output_beats_the_fallback_of_the_last():
    assert ["error: no"] == _texts("error: no\n", "bye\n")


@pytest.mark.parametrize("outputs", [(), ("",), ("", "\n\n")], ids=["none", "empty", "blank"])
def test_nothing_printed_gives_no_lines(outputs):
    assert [] == _texts(*outputs)


def test_lines_keep_the_order_of_the_output():
    assert ["error: b", "error: a"] == _texts("error: b\nerror: a\n")


def test_number_of_lines_is_bounded():
    assert MAX_EVIDENCE_LINES == len(_texts("".join(f"error: thing_{chr(97 + n)} is gone\n" for n in range(26))))


def test_line_says_where_it_stands():
    (line,) = choose_lines("fine\n", "one\ntwo\nerror: no\n")
    assert (1, 3) == (line.source, line.number)


def test_line_length_is_bounded():
    assert 4096 == len(_texts("error: " + "x" * 10_000)[0])
