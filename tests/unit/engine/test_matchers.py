"""What a document of problem matchers may say, and how faults in it are told."""

from __future__ import annotations

import pytest

from kos_retry.engine.matchers import read_matchers, settle_owners
from kos_retry.errors import InputError
from kos_retry.limits import MAX_EXPRESSION_CHARS, MAX_MATCHER_PATTERNS, MAX_MATCHERS

_LINE = {"regexp": r"^(\S+):(\d+): (.*)$", "file": 1, "line": 2, "message": 3}
_HEAD = {"regexp": r"^(\S+)$", "file": 1}
_LOOP = {"regexp": r"^ (\d+) (.*)$", "line": 1, "message": 2, "loop": True}


def _document(**fields):
    return {"problemMatcher": [{"owner": "lint", "pattern": [_LINE]} | fields]}


def test_matcher_is_read_with_its_defaults():
    assert [{"owner": "lint", "severity": "error", "fromPath": "", "pattern": [_LINE]}] == read_matchers(_document())


def test_expression_is_translated():
    pattern = {"regexp": r"(?<what>.+)\z", "message": 1}
    assert r"(?P<what>.+)\Z" == read_matchers(_document(pattern=[pattern]))[0]["pattern"][0]["regexp"]


def test_what_others_add_to_a_document_is_left_out():
    pattern = _LINE | {"endLine": 2, "kind": "location"}
    document = _document(pattern=[pattern], background={}, fileLocation="relative") | {"$schema": "x"}
    assert read_matchers(_document()) == read_matchers(document)


def test_null_is_not_set():
    assert read_matchers(_document()) == read_matchers(_document(severity=None, pattern=[_LINE | {"code": None}]))


@pytest.mark.parametrize("severity", ["warning", "WARNING"])
def test_severity_has_no_case(severity):
    assert "warning" == read_matchers(_document(severity=severity))[0]["severity"]


def test_whole_match_is_a_group_too():
    assert 0 == read_matchers(_document(pattern=[{"regexp": "^error", "message": 0}]))[0]["pattern"][0]["message"]


def test_document_may_be_empty():
    assert [] == read_matchers({"problemMatcher": []})


_WRONG = {
    "no-document": ([], "'problemMatcher' should be a list of matchers"),
    "other-key": ({"matchers": []}, "'problemMatcher' should be a list of matchers"),
    "no-table": ({"problemMatcher": ["lint"]}, "problemMatcher[0] should be a table"),
    "second-without-an-owner": (
        {"problemMatcher": [*_document()["problemMatcher"], {"pattern": [_LINE]}]},
        "problemMatcher[1].owner should be a text",
    ),
    "blank-owner": (_document(owner=" "), "problemMatcher[0].owner should be a text"),
    "long-owner": (_document(owner="x" * 257), "problemMatcher[0].owner should be a text"),
    "severity": (_document(severity="fatal"), "owner 'lint': severity: 'fatal' is not one of error, warning, notice"),
    "severity-is-no-text": (_document(severity=1), "owner 'lint': severity should be a text"),
    "path-is-no-text": (_document(fromPath=1), "owner 'lint': fromPath should be a text"),
    "no-pattern": (_document(pattern=[]), "owner 'lint': pattern should be a list of 1 to "),
    "pattern-that-is-none": (_document(pattern=_LINE), "owner 'lint': pattern should be a list of 1 to "),
    "many-patterns": (
        _document(pattern=[_HEAD] * (MAX_MATCHER_PATTERNS + 1)),
        "owner 'lint': pattern should be a list",
    ),
    "pattern-is-no-table": (_document(pattern=["x"]), "owner 'lint': pattern[0] should be a table"),
    "no-expression": (_document(pattern=[{"message": 1}]), "owner 'lint': pattern[0].regexp should be a regular"),
    "long-expression": (
        _document(pattern=[{"regexp": "x" * (MAX_EXPRESSION_CHARS + 1), "message": 0}]),
        f"owner 'lint': pattern[0].regexp: it is longer than {MAX_EXPRESSION_CHARS} characters",
    ),
    "construct": (
        _document(pattern=[_HEAD, {"regexp": r"(\p{L}+)", "message": 1}]),
        "owner 'lint': pattern[1].regexp: the Unicode property \\p{…} is not supported",
    ),
    "no-such-group": (
        _document(pattern=[_LINE | {"code": 4}]),
        "owner 'lint': pattern[0].code: 4 is not the number of a group, there are 3",
    ),
    "negative-group": (_document(pattern=[_LINE | {"code": -1}]), "pattern[0].code: -1 is not the number of a group"),
    "group-is-no-number": (_document(pattern=[_LINE | {"code": "1"}]), "pattern[0].code: '1' is not the number"),
    "group-is-true": (_document(pattern=[_LINE | {"code": True}]), "pattern[0].code: True is not the number"),
    "set-twice": (
        _document(pattern=[_HEAD, _LINE]),
        "owner 'lint': pattern[1].file: it is set by pattern[0] already",
    ),
    "no-message": (_document(pattern=[_HEAD]), "owner 'lint': one of the patterns should set message"),
    "loop-of-one": (_document(pattern=[_LOOP]), "pattern[0].loop: only the last of several patterns can loop"),
    "loop-in-the-middle": (
        _document(pattern=[{"regexp": "a"}, _LOOP, {"regexp": "b"}]),
        "pattern[1].loop: only the last of several patterns can loop",
    ),
    "loop-without-a-message": (
        _document(pattern=[{"regexp": "(a)", "message": 1}, {"regexp": "b", "loop": True}]),
        "pattern[1].loop: a pattern that loops should set message",
    ),
    "loop-is-no-flag": (_document(pattern=[_LINE | {"loop": 1}]), "pattern[0].loop should be true or false"),
}


@pytest.mark.parametrize(("document", "told"), _WRONG.values(), ids=_WRONG)
def test_fault_is_told_with_owner_and_pattern(document, told):
    with pytest.raises(InputError) as caught:
        read_matchers(document)
    assert told in str(caught.value)


_OWNERS = {
    "last-first": (["a", "b", "c"], ["c", "b", "a"]),
    "replaced": (["a", "b", "a"], ["a", "b"]),
    "replaced-in-another-case": (["Lint", "b", "LINT"], ["LINT", "b"]),
    "none": ([], []),
}


@pytest.mark.parametrize(("given", "settled"), _OWNERS.values(), ids=_OWNERS)
def test_later_matcher_comes_first_and_replaces_one_of_its_owner(given, settled):
    assert settled == [m["owner"] for m in settle_owners([{"owner": owner} for owner in given])]


def test_replacing_matcher_is_the_later_one():
    assert [{"owner": "a", "n": 2}] == settle_owners([{"owner": "a", "n": 1}, {"owner": "a", "n": 2}])


def test_too_many_matchers_are_refused():
    with pytest.raises(InputError, match=f"at most {MAX_MATCHERS} are supported"):
        settle_owners([{"owner": str(n)} for n in range(MAX_MATCHERS + 1)])
