"""Checking problem matchers: how one line, or several, of a tool's output become a finding.

A document is `{"problemMatcher": [{"owner", "severity"?, "fromPath"?, "pattern": [{"regexp", "message"?, "file"?, …}]}]}`, in which the
values of a pattern are the numbers of groups. What is returned has the same form, with the expressions in the dialect that runs here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kos_retry.engine.dialect import FLAGS, translate
from kos_retry.errors import InputError
from kos_retry.limits import MAX_EXPRESSION_CHARS, MAX_MATCHER_PATTERNS, MAX_MATCHERS, MAX_NAME_BYTES

Matcher = dict[str, Any]

DOCUMENT_KEY = "problemMatcher"
MATCHER_KEYS = ("owner", "severity", "fromPath", "pattern")
# What a group of an expression can say.
VALUE_KEYS = ("file", "fromPath", "line", "column", "severity", "code", "message")
PATTERN_KEYS = ("regexp", *VALUE_KEYS, "loop")
SEVERITIES = ("error", "warning", "notice")


def read_matchers(document: Any) -> list[Matcher]:
    """Return the matchers of a document; keys that are not known are left out.

    Raises InputError that names the owner, the pattern and what is wrong with it.
    """
    entries = document.get(DOCUMENT_KEY) if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise InputError(f"'{DOCUMENT_KEY}' should be a list of matchers")
    return [_matcher(entry, number) for number, entry in enumerate(entries)]


def settle_owners(matchers: Sequence[Matcher]) -> list[Matcher]:
    """Return one matcher for each owner, in the order in which they are tried: the last one first.

    One replaces an earlier one of the same owner, whatever its case. Raises InputError where there are too many.
    """
    known: dict[str, Matcher] = {}
    for matcher in matchers:
        known.pop(matcher["owner"].lower(), None)
        known[matcher["owner"].lower()] = matcher
    if len(known) > MAX_MATCHERS:
        raise InputError(f"there are {len(known)} matchers, at most {MAX_MATCHERS} are supported")
    return list(known.values())[::-1]


def _matcher(entry: Any, number: int) -> Matcher:
    if not isinstance(entry, dict):
        raise InputError(f"{DOCUMENT_KEY}[{number}] should be a table")
    owner = entry.get("owner")
    if not isinstance(owner, str) or not owner.strip() or len(owner.encode("utf-8", "replace")) > MAX_NAME_BYTES:
        raise InputError(f"{DOCUMENT_KEY}[{number}].owner should be a text of 1 to {MAX_NAME_BYTES} bytes")
    try:
        return {
            "owner": owner,
            "severity": _severity(entry),
            "fromPath": _text(entry, "fromPath"),
            "pattern": _patterns(entry.get("pattern")),
        }
    except InputError as error:
        raise InputError(f"owner '{owner}': {error}") from error


def _severity(entry: Mapping[str, Any]) -> str:
    severity = _text(entry, "severity").lower() or SEVERITIES[0]
    if severity not in SEVERITIES:
        raise InputError(f"severity: '{severity}' is not one of {', '.join(SEVERITIES)}")
    return severity


def _patterns(entries: Any) -> list[Matcher]:
    if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_MATCHER_PATTERNS:
        raise InputError(f"pattern should be a list of 1 to {MAX_MATCHER_PATTERNS} patterns")
    patterns = []
    for number, entry in enumerate(entries):
        try:
            patterns.append(_pattern(entry))
        except InputError as error:
            raise InputError(f"pattern[{number}]{error}") from error
    _check_together(patterns)
    return patterns


def _pattern(entry: Any) -> Matcher:
    """Return one pattern; the text of an InputError follows the pattern's name."""
    if not isinstance(entry, dict):
        raise InputError(" should be a table")
    pattern: Matcher = {"regexp": _expression(entry.get("regexp"))}
    for key in VALUE_KEYS:
        group = entry.get(key)
        if group is not None:
            pattern[key] = _group(key, group, pattern["regexp"])
    loop = entry.get("loop")
    if not isinstance(loop, bool | None):
        raise InputError(".loop should be true or false")
    if loop:
        pattern["loop"] = True
    return pattern


def _expression(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(".regexp should be a regular expression")
    if len(value) > MAX_EXPRESSION_CHARS:
        raise InputError(f".regexp: it is longer than {MAX_EXPRESSION_CHARS} characters")
    try:
        return translate(value)
    except ValueError as error:
        raise InputError(f".regexp: {error}") from error


def _group(key: str, value: Any, expression: str) -> int:
    groups = re.compile(expression, FLAGS).groups
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= groups:
        raise InputError(f".{key}: {value!r} is not the number of a group, there are {groups}")
    return value


def _check_together(patterns: Sequence[Matcher]) -> None:
    """Check what holds for all patterns of a matcher together."""
    for key in VALUE_KEYS:
        setting = [number for number, pattern in enumerate(patterns) if key in pattern]
        if len(setting) > 1:
            raise InputError(f"pattern[{setting[1]}].{key}: it is set by pattern[{setting[0]}] already")
    if not any("message" in pattern for pattern in patterns):
        raise InputError("one of the patterns should set message")
    for number, pattern in enumerate(patterns):
        if "loop" not in pattern:
            continue
        if number == 0 or number < len(patterns) - 1:
            raise InputError(f"pattern[{number}].loop: only the last of several patterns can loop")
        if "message" not in pattern:
            raise InputError(f"pattern[{number}].loop: a pattern that loops should set message")


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str | None):
        raise InputError(f"{key} should be a text")
    return value or ""
