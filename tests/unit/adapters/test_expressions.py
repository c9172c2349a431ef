"""Regular expressions of users, in a child that can be killed."""

from __future__ import annotations

import pytest

from kos_retry.adapters import expressions

# Years of work on a few dozen characters.
_CATASTROPHIC = r"(a+)+$"
_TRAP = "a" * 40 + "!"


@pytest.fixture
def brief(monkeypatch):
    """Give an expression a fraction of its time."""
    monkeypatch.setattr(expressions, "EXPRESSION_SECONDS", 0.3)


def _search(wanted, text):
    return expressions.search(wanted, [text], pytest.fail)


_TEXT = "first line\nerror: Connection reset\nlast line"
_MATCHES = {
    "word": ("reset", True),
    "no-word": ("refused", False),
    "other-case": ("connection", False),
    "case-ignored": ("(?i)connection", True),
    "start-of-a-line": ("^error", True),
    "middle-of-a-line": ("^Connection", False),
    "end-of-a-line": ("reset$", True),
    "whole-line": ("^first line$", True),
    "dot-stays-in-its-line": ("first.*reset", False),
    "across-lines": (r"line\nerror", True),
    "look-behind": ("(?<=error: )Connection", True),
    "empty-expression": ("", True),
    "end-of-the-text": (r"last line\Z", True),
}


def test_expressions_match_anywhere_and_anchors_at_lines():
    """One child answers for all."""
    found = _search([expression for expression, _ in _MATCHES.values()], _TEXT)
    assert dict(_MATCHES.values()) == found


def test_each_text_is_searched_for_itself():
    texts = ["end of one\n", "start of other\n"]
    found = expressions.search(["one", "other", r"one\s+start", r"\Astart"], texts, pytest.fail)
    assert [True, True, False, True] == list(found.values())


def test_without_expressions_nothing_is_started(monkeypatch):
    monkeypatch.setattr(expressions.subprocess, "Popen", pytest.fail)
    assert {} == _search([], _TEXT)


def test_expression_that_is_asked_for_twice_is_tried_once():
    assert {"reset": True} == _search(["reset", "reset"], _TEXT)


@pytest.mark.parametrize("text", ["", "é😀\u2028", "\ud800", "\x00\x1b"], ids=["empty", "letters", "half", "controls"])
def test_any_text_is_searched(text):
    assert {"^x$": False} == _search(["^x$"], text)


def test_catastrophic_expression_is_given_up_and_the_next_is_still_tried(brief):
    told = []
    found = expressions.search(["reset", _CATASTROPHIC, "refused", "!"], [_TRAP + "\nreset"], told.append)
    assert {"reset": True, _CATASTROPHIC: None, "refused": False, "!": True} == found
    assert [f"the expression '{_CATASTROPHIC}' was given up after 0.3s: it takes too long on this output"] == told


def test_two_catastrophic_expressions_are_both_given_up(brief):
    told = []
    assert [None, None] == list(expressions.search([_CATASTROPHIC, "(b|a+)+$"], [_TRAP], told.append).values())
    assert 2 == len(told)


_ENDS = {
    "head": ("needle" + "x" * 200, True),
    "tail": ("x" * 200 + "needle", True),
    "middle": ("x" * 100 + "needle" + "x" * 100, False),
    "short": ("x" * 50 + "needle", True),
}


@pytest.mark.parametrize(("text", "found"), _ENDS.values(), ids=_ENDS)
def test_of_a_long_text_head_and_tail_are_searched(monkeypatch, text, found):
    monkeypatch.setattr(expressions, "EXPRESSION_TEXT_BYTES", 64)
    assert {"needle": found} == _search(["needle"], text)


def test_text_is_bounded(monkeypatch):
    monkeypatch.setattr(expressions, "EXPRESSION_TEXT_BYTES", 64)
    assert len(expressions._bounded("x" * 1000)) <= 64 + 1
