"""What frameworks say of one failure is split into its type, its words and its place."""

from __future__ import annotations

import re

import pytest

from kos_retry.sdk import Request
from kos_retry.sdk.failures import bounded, told, typed

FOREIGN = re.compile("/lib/")
REQUEST = Request({"workspace": "/srv/app"})


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("ValueError: no such key", ("ValueError", "no such key")),
        ("java.io.IOException: gone", ("java.io.IOException", "gone")),
        ("A::B::NotMetError:\n\nexpected 3", ("A::B::NotMetError", "expected 3")),
        ("TypeError [ERR_ARG]: bad", ("TypeError", "bad")),
        ("KeyError", ("KeyError", "KeyError")),
        ("Error: expected 3", (None, "expected 3")),
        ("Error", ("Error", "Error")),
        ("expected 3 to be 4", (None, "expected 3 to be 4")),
        ("an Error: in the middle", (None, "an Error: in the middle")),
        ("", (None, "")),
    ],
)
def test_a_type_in_front_is_taken_off_unless_it_says_nothing(words: str, expected: tuple[str | None, str]) -> None:
    assert typed(words) == expected


@pytest.mark.parametrize(
    ("message", "trace", "expected"),
    [
        pytest.param(
            "assert 4 == 3",
            ">   assert f() == 3\nE   assert 4 == 3\n\ntests/t.py:9: \n_ _\nshop.py:2: AssertionError",
            ("AssertionError", "assert 4 == 3", "shop.py", 2),
            id="innermost step last",
        ),
        pytest.param(
            "",
            "/usr/lib/x.py:126: in load\n    y\n/srv/app/t.py:1: in <module>\n    import z\nE   ImportError: no z",
            ("ImportError", "no z", "t.py", 1),
            id="only a trace",
        ),
        pytest.param(
            "TypeError: x is undefined",
            "at g (/usr/lib/r.js:1:1)\nat f (/srv/app/cart.js:7:3)\nat main (/srv/app/run.js:1:1)",
            ("TypeError", "x is undefined", "cart.js", 7),
            id="innermost step first",
        ),
        pytest.param("/srv/app/t.py:46", "file t.py, line 46\nE   no x", (None, "no x", "t.py", 46), id="only a place"),
        pytest.param("boom", "see https://ex.org/a.html:80", (None, "boom", None, None), id="an address is no place"),
        pytest.param("", "", (None, "", None, None), id="nothing"),
    ],
)
def test_a_failure_is_read_from_message_and_trace(
    message: str, trace: str, expected: tuple[str | None, str, str | None, int | None]
) -> None:
    assert tuple(told(REQUEST, message, trace, FOREIGN)) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("not equal\n    at f (x.js:1:1)\n    at g", "not equal"),
        ("no module\n\n> 1 | import x\n    |  ^\n", "no module"),
        ("at once", "at once"),
        ("\n".join("abcdefghijkl"), "\n".join("abcdefgh")),
    ],
)
def test_a_message_ends_before_its_stack(words: str, expected: str) -> None:
    assert bounded(words) == expected


@pytest.mark.parametrize(
    "text", ["a:1: in " * 20_000, "Error" * 50_000, "E   " * 50_000, "(a.b:1" * 50_000, "at " * 50_000]
)
def test_hostile_text_is_survived(text: str) -> None:
    assert len(told(REQUEST, text, text, FOREIGN).message.encode()) <= 2048
