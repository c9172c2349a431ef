"""Choosing the lines that say what failed."""

from __future__ import annotations

import pytest
from builders import observed

from kos_retry.engine import evidence
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


_DECOYS = [
    "INFO: error rate is fine",
    "WARNING: error budget is low",
    "DEBUG: fatal flag is off",
    "ok 3 - error handling",
    "test error_path ... ok",
    "0 failures",
    "No errors found",
    "errors=0 warnings=0",
    "Compiling error-chain",
    "PASS error_test.go",
    "see error.log for details",
    "FAILED: 0",
    "error_count=0",
]


@pytest.mark.parametrize("decoy", _DECOYS)
def test_decoy_does_not_stand_beside_an_error(decoy):
    assert ["fatal: queue is gone"] == _texts(f"{decoy}\nfatal: queue is gone\n{decoy}\n")


def test_line_that_only_sums_up_says_more_than_the_end():
    assert ["make: *** [all] Error 1"] == _texts("compiling\nmake: *** [all] Error 1\nbye\n")


# --- what a line announces ---------------------------------------------------------------------------

_ANNOUNCED = {
    "next-lines": ("error: these are missing:\n  a.txt\n  b.txt\n", ["  a.txt", "  b.txt"]),
    "at-most-three": ("error: these are missing:\n a\n b\n c\n d\n", [" a", " b", " c"]),
    "blank-lines-between": ("error: these are missing:\n\n a\n\n b\n", [" a", " b"]),
    "not-far-away": ("error: these are missing:\n\n\n\n\n\n\n\n a\n", []),
    "blanks-behind-the-colon": ("error: these are missing:  \n a\n", [" a"]),
    "no-colon": ("error: these are missing\n a\n b\n", []),
    "nothing-behind-it": ("error: these are missing:", []),
}


@pytest.mark.parametrize(("output", "announced"), _ANNOUNCED.values(), ids=_ANNOUNCED)
def test_line_that_ends_in_a_colon_brings_what_it_announces(output, announced):
    chosen = choose_lines(output)
    assert announced == [line.text for line in chosen if line.marks == ("continued",)]


def test_what_is_announced_tells_failures_apart():
    one, other = (observed(f"error: these are missing:\n  {name}\n").signature for name in ("a.txt", "b.txt"))
    assert one != other


def test_announced_line_that_is_an_error_itself_is_told_once():
    assert ["error: this failed:", "error: no total"] == _texts("error: this failed:\nerror: no total\n")


def test_announced_lines_keep_the_bound():
    output = "".join(f"error: list_{chr(97 + n)} is wrong:\n  one {n}\n  two {n}\n  three {n}\n" for n in range(20))
    assert len(_texts(output)) <= MAX_EVIDENCE_LINES


# --- stacks ------------------------------------------------------------------------------------------

_FRAMES = {
    "file-line-in": '  File "/w/{0}.x", line 3, in {0}\n    call()\n',
    "at-with-place": "    at {0} (/w/src/{0}.js:3:4)\n",
    "at-class": "\tat com.shop.{0}.run({0}.java:9)\n",
    "from": "\tfrom {0} (/w/a.rb:3)\n",
    "hash-number": "#1  0x00007f01 in {0} () at /w/{0}.c:9\n",
    "index": "   1: shop::{0}\n",
    "call": "main.{0}(0xc0001)\n\t/w/{0}.go:9 +0x1d\n",
}


def _with_stack(frame: str, *names: str, below: bool = True) -> str:
    stack = "".join(frame.format(name) for name in names)
    return f"ValueError: bad total\n{stack}" if below else f"{stack}ValueError: bad total\n"


def _stack(output: str) -> str:
    return choose_lines(output)[-1].text


@pytest.mark.parametrize("frame", _FRAMES.values(), ids=_FRAMES)
def test_stack_below_the_error_is_told(frame):
    assert 1 == _stack(_with_stack(frame, "load", "parse")).count(" < ")


@pytest.mark.parametrize("frame", _FRAMES.values(), ids=_FRAMES)
def test_stack_is_the_last_line_and_marked(frame):
    assert ("stack",) == choose_lines(_with_stack(frame, "load", "parse"))[-1].marks


@pytest.mark.parametrize("frame", _FRAMES.values(), ids=_FRAMES)
@pytest.mark.parametrize("below", [True, False], ids=["below", "above"])
def test_stacks_in_another_order_are_another_failure(frame, below):
    one, other = (_with_stack(frame, *names, below=below) for names in (("load", "parse"), ("parse", "load")))
    assert observed(one).signature != observed(other).signature


@pytest.mark.parametrize("frame", _FRAMES.values(), ids=_FRAMES)
def test_same_stack_at_other_places_is_the_same_failure(frame):
    one = _with_stack(frame, "load", "parse")
    moved = one.replace(":9", ":11").replace("line 3", "line 5").replace("/w/", "/builds/a/b/").replace("7f01", "7e92")
    assert observed(one).signature == observed(moved).signature


def test_innermost_function_stands_first_wherever_the_stack_stands():
    below = _with_stack(_FRAMES["at-with-place"], "inner", "outer")
    above = _with_stack(_FRAMES["file-line-in"], "outer", "inner", below=False)
    assert ["stack: inner < outer"] * 2 == [_stack(below), _stack(above)]


@pytest.mark.parametrize(
    "foreign",
    [
        '  File "/usr/lib/x/site-packages/lib.x", line 3, in call\n',
        '  File "/w/v/site-packages/lib.x", line 3, in call\n',
        "    at call (/w/node_modules/lib/a.js:3:4)\n",
        "    at call (internal/a.js:3:4)\n",
        "   1: core::panicking::panic\n",
        "   1: std::rt::lang_start\n",
        "runtime.goexit(0x1)\n",
    ],
)
def test_frames_of_installed_code_and_the_runtime_are_left_out(foreign):
    output = "ValueError: bad total\n" + foreign + _FRAMES["at-with-place"].format("load")
    assert "stack: load" == _stack(output)


def test_stack_of_foreign_frames_alone_is_none():
    assert ["TypeError: no"] == _texts("TypeError: no\n    at call (/w/node_modules/lib/a.js:3:4)\n")


def test_stack_is_bounded():
    names = [f"f{chr(97 + n)}" for n in range(20)]
    assert names[:6] == _stack(_with_stack(_FRAMES["at-with-place"], *names)).removeprefix("stack: ").split(" < ")


def test_stack_of_another_paragraph_is_not_the_errors():
    output = "TypeError: no\n\none\ntwo\nthree\nfour\nfive\n" + _FRAMES["at-with-place"].format("load")
    assert ["TypeError: no"] == _texts(output)


def test_frame_is_no_error():
    assert [] == [t for t in _texts("    at failed (/w/error.js:3:4)\nfatal: no\n") if t.startswith("    at")]


def test_only_a_bounded_part_is_looked_at_closely(monkeypatch):
    """Normalising costs about 27 µs a character: of megabytes of errors not every line can have it."""
    looked_at = []
    monkeypatch.setattr(evidence, "_score", lambda line: (5, ("told",)))
    monkeypatch.setattr(evidence, "normalise_line", lambda line: looked_at.append(len(line)) or line)
    choose_lines("".join(f"error: thing {n} is gone, {'a b c ' * 600}\n" for n in range(1000)))
    assert sum(looked_at) <= 256 * 1024
