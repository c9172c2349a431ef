"""Choosing the lines of an output that say what failed, by generic means.

The error may stand anywhere: at the start of ten megabytes of noise, or at the end. Lines are found by plain
substring search over the whole text, scored by what makes a line an error message, and the best few
distinct ones are kept in the order in which they appeared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kos_retry.engine.normalise import normalise_line
from kos_retry.limits import FALLBACK_EVIDENCE_LINES, MAX_CANDIDATES, MAX_EVIDENCE_LINES, MAX_LINE_CHARS
from kos_retry.text.escapes import plain_text

# A line without any of these (in lower case) is not looked at again.
_TRIGGERS = (
    "error",
    "fail",
    "exception",
    "fatal",
    "panic",
    "abort",
    "traceback",
    "cannot",
    "can't",
    "could not",
    "unable to",
    "not found",
    "no such",
    "denied",
    "refused",
    "undefined",
    "unexpected",
    "expected",
    "invalid",
    "missing",
    "timed out",
    "timeout",
    "segmentation",
    "killed",
    "unresolved",
    "not ok",
    "assert",
    "conflict",
    "rejected",
    "violat",
    "mismatch",
    "syntax",
    "no space",
    "out of memory",
    "overflow",
    "unknown",
    "✗",
    "✘",
    "✕",
    "×",
)


class Mark(NamedTuple):
    """A trait of a line, and what it is worth as evidence."""

    name: str
    weight: int
    pattern: re.Pattern[str]


def _mark(name: str, weight: int, pattern: str) -> Mark:
    return Mark(name, weight, re.compile(pattern))


_MARKS = (
    _mark("error-type", 6, r"\b[A-Z]\w{1,64}(?:Error|Exception|Failure|Fault|Panic)\b(?::|\b)"),
    _mark(
        "error-prefix",
        5,
        r"(?i)^\W{0,6}(?:[\w./-]{1,64}: )?(?:fatal|error|panic|critical|exception)\b(?:\[\w{1,16}\])?(?:: |\b)",
    ),
    _mark(
        "located",
        5,
        r"(?i)^[^\s:]{1,255}[:(]\d{1,7}[,:)]?(?:\d{1,7})?\)?:? {0,2}(?:fatal |internal )?(?:error|fail|undefined|syntax)",
    ),
    _mark("error-code", 3, r"(?i)\berror[ :\[(]{1,2}[A-Z]{0,8}-?\d{1,6}\b"),
    _mark(
        "test-failed",
        4,
        r"(?:^\W{0,8}(?:FAILED|FAIL|ERROR|not ok|✗|✘|✕|×)\b|\b(?:FAILED|FAIL)\b\W{0,3}$|^\W{0,8}[✗✘✕×] )",
    ),
    _mark("assertion", 4, r"(?i)^E {2,}\S|\bassert(?:ion)?\b|\bexpected\b.{0,80}\b(?:got|but|actual|received|to)\b"),
    _mark(
        "system",
        4,
        r"(?i)\b(?:segmentation fault|core dumped|killed|out of memory|no space left|permission denied|connection (?:refused|reset|timed out)|command not found|no such file|cannot open|undefined reference)\b",
    ),
    _mark(
        "cannot",
        2,
        r"(?i)\b(?:cannot|can't|could not|unable to|not found|missing|invalid|unexpected|unknown|rejected|denied|conflict)\b",
    ),
    # What only passes a failure on, sums it up, or points elsewhere is not its cause.
    _mark(
        "wrapper",
        -6,
        r"(?i)(?:exit(?:ed)?(?: with)?(?: status| code)?|returned(?: non-zero)?(?: exit status)?|code)[ :=]{1,2}-?\d{1,3}\W{0,3}$|\*\*\* .{0,160}\bError \d|process completed|recipe for target|see (?:the )?(?:log|above|output)|for details|run with|rerun|re-run|aborting due to|could not compile|complete log of this run|short test summary",
    ),
    _mark(
        "summary",
        -5,
        r"(?i)^\W{0,8}\d{1,7}\s\w{0,16}\s?(?:errors?|warnings?|failed|failures?|passed|tests?)\b|\b(?:0|no) (?:errors?|failures?|failed|warnings?)\b|\b(?:tests?|failures?|errors?|suites?)\b\W{1,3}\d{1,7}\b",
    ),
    _mark("header", -4, r"(?i)^\W{0,8}(?:failures?|errors?|traceback \(most recent call last\)|failed tests?)\W{0,8}$"),
    _mark(
        "benign",
        -6,
        r"(?i)\b(?:warn(?:ing)?|info|debug|notice|deprecat\w{0,6}|retrying|ignored|skipp\w{0,4}|passed|ok|✓)\b\W{0,2}(?::|\s)",
    ),
    _mark(
        "source",
        -3,
        r"^\s{0,40}(?:\d{1,6}\s?[|│]|[|│]|>\s?\d|at\s\S{1,255}\s?\(|#\d{1,4}\s)|\b(?:raise|throw|return|except|catch|import|def|echo|printf?|console\.\w{1,8})\b.{0,200}[\"'({]",
    ),
)
_MIN_SCORE = 2


class EvidenceLine(NamedTuple):
    """A line that was chosen.

    ``source`` is the index of the output it stands in, ``number`` its number there (from 1); ``marks`` name
    the traits that made its score.
    """

    text: str
    source: int
    number: int
    score: int
    marks: tuple[str, ...]


def choose_lines(*outputs: str) -> tuple[EvidenceLine, ...]:
    """Return the lines of the outputs that say what failed, in their order, at most `MAX_EVIDENCE_LINES`.

    Where no line looks like an error, the last lines that are not blank stand for it, of the last output that
    has any; without any the tuple is empty.
    """
    texts = [plain_text(output) for output in outputs]
    best: dict[str, EvidenceLine] = {}
    for source, text in enumerate(texts):
        for number, line in _candidates(text):
            score, marks = _score(line)
            if score < _MIN_SCORE:
                continue
            key = normalise_line(line)
            if key and (key not in best or best[key].score < score):
                best[key] = EvidenceLine(line, source, number, score, marks)
    if not best:
        return next((lines for i, text in reversed(list(enumerate(texts))) if (lines := _last_lines(text, i))), ())
    chosen = sorted(best.values(), key=lambda line: (-line.score, line.source, line.number))[:MAX_EVIDENCE_LINES]
    return tuple(sorted(chosen, key=lambda line: (line.source, line.number)))


def _score(line: str) -> tuple[int, tuple[str, ...]]:
    hit = [mark for mark in _MARKS if mark.pattern.search(line)]
    return sum(mark.weight for mark in hit), tuple(mark.name for mark in hit)


def _candidates(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of every line with a trigger in it; of too many the middle is left out."""
    lowered = text.lower()
    if len(lowered) != len(text):
        # A few letters change their length in lower case; positions would no longer fit.
        lowered = text
    starts: set[int] = set()
    for trigger in _TRIGGERS:
        at = lowered.find(trigger)
        while at >= 0:
            starts.add(lowered.rfind("\n", 0, at) + 1)
            end = lowered.find("\n", at)
            at = lowered.find(trigger, end) if end >= 0 else -1
    ordered = sorted(starts)
    if len(ordered) > MAX_CANDIDATES:
        ordered = ordered[: MAX_CANDIDATES // 2] + ordered[-MAX_CANDIDATES // 2 :]
    number, counted_to, seen = 1, 0, set()
    for start in ordered:
        number += text.count("\n", counted_to, start)
        counted_to = start
        end = text.find("\n", start)
        line = text[start : end if end >= 0 else len(text)][:MAX_LINE_CHARS]
        if line not in seen:
            seen.add(line)
            yield number, line


def _last_lines(text: str, source: int) -> tuple[EvidenceLine, ...]:
    lines = text.splitlines()
    kept = [(n, line[:MAX_LINE_CHARS]) for n, line in enumerate(lines, 1) if line.strip()][-FALLBACK_EVIDENCE_LINES:]
    return tuple(EvidenceLine(line, source, n, 0, ("last",)) for n, line in kept)
