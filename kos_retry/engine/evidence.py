"""Choosing the lines of an output that say what failed, by generic means.

The error may stand anywhere: at the start of ten megabytes of noise, or at the end. Lines are found by plain
substring search over the whole text, scored by what makes a line an error message, and the best few
distinct ones are kept in the order in which they appeared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from kos_retry.engine.normalise import normalise_line
from kos_retry.limits import FALLBACK_EVIDENCE_LINES, MAX_CANDIDATES, MAX_EVIDENCE_LINES, MAX_LINE_CHARS
from kos_retry.text.escapes import plain_text
from kos_retry.text.lines import last_lines, lines_at
from kos_retry.text.outline import in_outline, outline

# A line without any of these (in lower case) is not looked at again.
_TRIGGERS = tuple(
    trigger.encode()
    for trigger in (
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
        "detected",
        "corrupt",
        "mismatch",
        "syntax",
        "no space",
        "out of memory",
        "overflow",
        "unknown",
        "critical",
        "severe",
        "err!",
        "✗",
        "✘",
        "✕",
        "✖",
        "×",
        "❌",
    )
)


# One frame of a stack, in the shapes that runtimes print; the group is the function.
_FRAME = re.compile(
    r"^\s{0,40}(?:at |from )(?:async )?(?P<at>[\w$.<>\[\]:/ -]{1,160}?)(?=\(|$|\s\()"
    r"|^\s{0,40}#\d{1,4}\s{1,4}(?:0x[0-9a-f]{1,16} in )?(?P<number>[\w:~<>*&., ]{1,160}?)(?=\s?[(/]|$)"
    r"|^\s{0,40}\d{1,4}:\s{1,4}(?:0x[0-9a-f]{1,16} - )?(?P<index>[\w<>{}]{1,80}(?:::[\w<>{}]{1,80}){1,12})$"
    r"|^\s{0,40}File \"[^\"]{1,400}\", line \d{1,7}, in (?P<file>[\w<>.]{1,160})"
    r"|^(?P<call>[\w./*-]{1,120}\.[\w.*()-]{1,80})\([^)]{0,200}\)$"
)
# Frames of the runtime and of installed code: the same for many failures.
_FOREIGN = re.compile(
    r"(?:^|[\s(/<:])internal/|_modules/|-packages/|/usr/|/lib/|\w\.base/|\b(?:core|std|alloc)::|\b(?:runtime|testing)\.|__libc|\b_start\b"
)
_STACK_FRAMES = 6
_STACK_REACH = 60
_CONTINUED_LINES = 3
# Below the name of a failed test a line may only open a block.
_DETAIL_REACH = 2
_WORD = re.compile(r"\w")


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
        "level",
        4,
        r"(?:^|[\s\]|:])\[?(?:ERROR|FATAL|CRITICAL|PANIC|SEVERE|ERR!)\]?(?::|\s-\s|\s{1,4}\S)|(?:^|[\s\]|:])(?:error|fatal)(?::|\s-\s)",
    ),
    _mark(
        "located",
        5,
        r"(?i)^[^\s:]{1,255}[:(]\d{1,7}[,:)]?(?:\d{1,7})?\)?:?(?: -)? {0,2}(?:fatal |internal )?(?:error|fail|undefined|syntax)",
    ),
    _mark("failed-to", 2, r"(?i)\bfailed to \w"),
    _mark("error-code", 3, r"(?i)\berror[ :\[(]{1,2}[A-Z]{0,8}-?\d{1,6}\b"),
    _mark(
        "test-failed",
        5,
        r"(?:^\W{0,8}(?:FAILED|FAIL|ERROR|not ok)\b|^\W{0,12}Failed test\b|\b(?:FAILED|FAIL)\b\W{0,3}$|^\s{0,40}[✗✘✕✖×❌] ?\S)",
    ),
    _mark(
        "assertion",
        4,
        r"(?i)^E {2,}\S|\bassert(?:ion)?\b|\bexpected\b.{0,80}\b(?:got|but|actual|received|to)\b|\b(?:mismatch|does not match)\b",
    ),
    _mark(
        "system",
        4,
        r"(?i)\b(?:segmentation fault|core dumped|killed|out of memory|no space left|permission denied|"
        r"connection (?:refused|reset|timed out)|command not found|no such file|cannot open|undefined reference)\b",
    ),
    _mark(
        "cannot",
        2,
        r"(?i)\b(?:cannot|can't|could not|unable to|not found|missing|invalid|unexpected|unknown|rejected|denied|conflict|detected|corrupt\w{0,5}|no \w{1,24} at)\b",
    ),
    # What only passes a failure on, sums it up, or points elsewhere is not its cause.
    _mark(
        "wrapper",
        -6,
        r"(?i)(?:exit(?:ed)?(?: with)?(?: status| code)?|returned(?: non-zero)?(?: exit status)?|code)[ :=]{1,2}-?\d{1,3}\W{0,3}$"
        r"|\*\*\* .{0,160}\b(?:Error \d|Waiting for)|process completed|recipe for target|see (?:the )?(?:log|above|output)|for details"
        r"|run with|rerun|re-run|aborting due to|could not compile|complete log of this run|short test summary|please refer|looks like",
    ),
    _mark(
        "summary",
        -5,
        r"(?i)^\W{0,8}\d{1,7}\s\w{0,16}\s?(?:errors?|warnings?|failed|failures?|passed|tests?)\b|\b(?:0|no) (?:errors?|failures?|failed|warnings?)\b"
        r"|\b(?:tests|failures|failed|errors|suites|files)\b\s?[:=]\s?\d{1,7}\b|^\W{0,4}result: |\bfound \d{1,7} (?:errors?|warnings?|problems?)\b",
    ),
    _mark(
        "header",
        -4,
        r"(?i)^\W{0,8}(?:failures?|errors?|traceback \(most recent call last\)|failed tests?|failing tests?|error: \|)\W{0,8}$",
    ),
    _mark(
        "told", -9, r"(?i)^\W{0,4}(?:\S{1,40}\s){0,3}\W{0,2}(?:warn(?:ing)?|info|debug|trace|notice|hint)\b\W{0,2}:\s"
    ),
    _mark(
        "benign",
        -6,
        r"(?i)(?:^|[\s\[(])(?:warn(?:ing)?|info|debug|notice|deprecat\w{0,6}|retrying|ignored|ignoring|skipp\w{0,4}|passed)\b\W{0,2}(?::|\s)|^\W{0,8}(?:ok|✓|✔)\s"
        r"|\bok\W{0,3}$",
    ),
    _mark("frame", -9, _FRAME.pattern),
    _mark(
        "source",
        -3,
        r"^\s{0,40}(?:\d{1,6}\s?[|│]|[|│]|>\s?\d|at\s\S{1,255}\s?\(|#\d{1,4}\s)"
        r"|\b(?:raise|throw|return|except|catch|import|def|echo|printf?|console\.\w{1,8})\b.{0,200}[\"'({]",
    ),
)
_MIN_SCORE = 2
# A line that only wraps or sums up a failure says more than the end of the output does, one that is benign does not.
_MAX_NOISE = -6
# Counters and hexadecimal ids: what is left is the shape of a line.
_SHAPE = bytes.maketrans(b"123456789abcdef", b"0" * 15)
# No character takes more than four bytes.
_MAX_LINE_BYTES = 4 * MAX_LINE_CHARS
_LINES_A_SHAPE = 16


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
    """Return the lines of the outputs that say what failed, in their order, at most `MAX_EVIDENCE_LINES` and their stack.

    Where no line looks like an error, those that at least pass one on stand for it, then the last lines that are not blank, of the
    last output that has any; without any the tuple is empty.
    """
    texts = [plain_text(output) for output in outputs]
    scored = [line for source, text in enumerate(texts) for line in _scored(text, source)]
    chosen = _best([line for line in scored if line.score >= _MIN_SCORE]) or _best(scored)
    if chosen:
        return _with_context(chosen, texts)
    return next((lines for i, text in reversed(list(enumerate(texts))) if (lines := _last_lines(text, i))), ())


def _scored(text: str, source: int) -> Iterator[EvidenceLine]:
    """Yield the candidates of one output that say anything, with their scores."""
    for number, line in _candidates(text):
        score, marks = _score(line)
        if score > _MAX_NOISE:
            yield EvidenceLine(line, source, number, score, marks)


def _best(lines: list[EvidenceLine]) -> list[EvidenceLine]:
    """Return the best lines that differ in more than circumstance, the first of each, best first."""
    chosen: dict[str, EvidenceLine] = {}
    for line in sorted(lines, key=lambda line: (-line.score, line.source, line.number)):
        key = normalise_line(line.text)
        if key:
            chosen.setdefault(key, line)
        if len(chosen) == MAX_EVIDENCE_LINES:
            break
    return list(chosen.values())


def _with_context(chosen: list[EvidenceLine], texts: list[str]) -> tuple[EvidenceLine, ...]:
    """Add what a chosen line only announces, and the stack of the most telling one; return all in their order."""
    kept = {(line.source, line.number): line for line in chosen}
    for line in chosen:
        announces = line.text.rstrip().endswith(":")
        if (announces or "test-failed" in line.marks) and len(kept) < MAX_EVIDENCE_LINES:
            read = _announced if announces else _indented_below
            told = read(texts[line.source], line.number)
            for number, text in told:
                kept.setdefault(
                    (line.source, number), EvidenceLine(text, line.source, number, line.score, ("continued",))
                )
    out = sorted(kept.values(), key=lambda line: (line.source, line.number))
    top = chosen[0]
    stack = _stack(texts[top.source], top.number)
    if stack:
        out.append(EvidenceLine("stack: " + " < ".join(stack), top.source, top.number, top.score, ("stack",)))
    return tuple(out)


def _announced(text: str, number: int) -> list[tuple[int, str]]:
    """Return the next few lines behind one that ends in a colon, without blank ones."""
    window = enumerate(lines_at(text, number + 1, 2 * _CONTINUED_LINES), number + 1)
    return [(n, line[:MAX_LINE_CHARS]) for n, line in window if line.strip()][:_CONTINUED_LINES]


def _indented_below(text: str, number: int) -> list[tuple[int, str]]:
    """Return the first line in words that stands indented right below the name of a failed test, unless it is a frame or source."""
    name, *below = [line[:MAX_LINE_CHARS] for line in lines_at(text, number, 1 + _DETAIL_REACH)]
    for at, line in enumerate(below, number + 1):
        if _indent(line) <= _indent(name):
            break
        if _WORD.search(line):
            return [] if {"frame", "source", "summary"} & set(_score(line)[1]) else [(at, line)]
    return []


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _stack(text: str, number: int) -> list[str]:
    """Return the functions of the stack that stands below a line, or above it, the runtime's own left out."""
    first = max(1, number - _STACK_REACH)
    above = lines_at(text, first, number - first)
    return _functions(lines_at(text, number + 1, _STACK_REACH)) or _functions(above[::-1])


def _functions(lines: list[str]) -> list[str]:
    out: list[str] = []
    gap = 0
    for line in lines:
        match = _FRAME.match(line[:MAX_LINE_CHARS])
        if match is None:
            gap += 1
            # Source lines and notes stand between frames, another paragraph does not.
            if gap > 4:
                break
            continue
        gap = 0
        name = next(group for group in match.groups() if group is not None).strip()
        if name and not _FOREIGN.search(line):
            out.append(name)
        if len(out) == _STACK_FRAMES:
            break
    return out


def _score(line: str) -> tuple[int, tuple[str, ...]]:
    hit = [mark for mark in _MARKS if mark.pattern.search(line)]
    return sum(mark.weight for mark in hit), tuple(mark.name for mark in hit)


def _candidates(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of the lines with a trigger in them; of too many the middle is left out.

    All of it works on UTF-8, which is searched faster than text and keeps its length in lower case.
    """
    data = text.encode("utf-8", "surrogatepass")
    kept = _of_few_shapes(data, sorted(_triggered(data)))
    if len(kept) > MAX_CANDIDATES:
        kept = kept[: MAX_CANDIDATES // 2] + kept[-MAX_CANDIDATES // 2 :]
    number, counted_to = 1, 0
    for start, line in kept:
        number += data.count(b"\n", counted_to, start)
        counted_to = start
        yield number, line.decode("utf-8", "replace")[:MAX_LINE_CHARS]


def _triggered(data: bytes) -> set[int]:
    """Return where the lines start that hold a trigger."""
    lowered = data.lower()
    said = outline(lowered)
    starts: set[int] = set()
    for trigger in _TRIGGERS:
        if in_outline(trigger) not in said:
            continue
        at = lowered.find(trigger)
        while at >= 0:
            starts.add(lowered.rfind(b"\n", 0, at) + 1)
            end = lowered.find(b"\n", at)
            at = lowered.find(trigger, end) if end >= 0 else -1
    return starts


def _of_few_shapes(data: bytes, starts: list[int]) -> list[tuple[int, bytes]]:
    """Return the lines that start there, each once, and of those that differ in numbers alone a few.

    A log may hold a hundred thousand of them, and every one that is looked at costs as much as a kilobyte of log.
    """
    shapes: Counter[bytes] = Counter()
    seen: set[bytes] = set()
    kept = []
    for start in starts:
        end = data.find(b"\n", start)
        line = data[start : end if end >= 0 else len(data)][:_MAX_LINE_BYTES]
        if line in seen:
            continue
        shape = line.translate(_SHAPE)
        shapes[shape] += 1
        if shapes[shape] <= _LINES_A_SHAPE:
            seen.add(line)
            kept.append((start, line))
    return kept


def _last_lines(text: str, source: int) -> tuple[EvidenceLine, ...]:
    last = last_lines(text, FALLBACK_EVIDENCE_LINES)
    return tuple(EvidenceLine(line[:MAX_LINE_CHARS], source, n, 0, ("last",)) for n, line in last)
