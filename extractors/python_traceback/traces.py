"""Cutting the tracebacks out of a stream, and telling which of them were printed as one."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kos_retry.sdk import Line

MESSAGE_LINES = 8
MAX_FRAMES = 64
MAX_PREFIX_CHARS = 160

HEADER = "Traceback (most recent call last):"
GROUP_HEADER = "Exception Group " + HEADER
FATAL = "Fatal Python error: "
LINKS = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
SYNTAX = ("SyntaxError", "IndentationError", "TabError")

_FRAME = re.compile(r'^  File "([^"]{1,1000})", line (\d{1,9})(?:,? in .*)?$')
_LOOSE_FRAME = re.compile(r'^(.{0,160}?)  File "[^"]{1,1000}", line \d{1,9}$')
_EXCEPTION = re.compile(r"^([^\W\d][\w.]{0,200}(?:\.<locals>\.[\w.]{1,100})?)(?:: ?(.*))?$")
_SUB_EXCEPTIONS = re.compile(r"\(\d{1,9} sub-exceptions?\)$")
_SEPARATOR = re.compile(r"^(.{0,160}?)(\+-)?\+-{3,60} (?:\d{1,9}|\.{3}) -{3,60}$")
_RULE = re.compile(r"\+-{10,60}")
# What is printed above a traceback that nothing dies of, and what is said of one behind its message.
SURVIVED = ("Exception ignored in", "Exception ignored on", "--- Logging error ---")
_HANDLED = re.compile(
    r"[(,;] {0,2}(?:ignor(?:ed|ing)|handled|retrying|will retry|continuing|skipp(?:ed|ing)|non-fatal)\b[^()]{0,80}\)?$"
)
# What a program says that went on and failed at something else; who only passes on an exit code says nothing of its own.
_FAILED = re.compile(
    r"^(?!.{0,20}\b(?:[Jj]ob|[Cc]ommand|[Pp]rocess|[Ss]cript) failed)[A-Za-z][\w@/.' -]{1,80} failed: \S.{2,400}$"
)
_PASSED_ON = re.compile(r"(?i)\b(?:exit|exited|status|code|signal)\b")
_REPORT_HEADING = re.compile(r"^={1,300} (FAILURES|ERRORS)? ?")
# How `unittest` heads a traceback: `FAIL: test_x (tests.test_a.Case.test_x) [what] (n=1)`.
_TEST = re.compile(r"^(?:FAIL|ERROR): ([\w.]{1,200}) \(([\w.]{1,400})\)(?: ([\[(].{1,200}[\])]))?$")


@dataclass(slots=True)
class Trace:
    """One traceback: its frames, and the exception at its end."""

    first: Line
    prefix: str
    group: bool = False
    leaf: bool = False
    linked: bool = False
    test: str = ""
    # Without a heading, only what cannot be compiled is reported.
    loose: bool = False
    fatal: bool = False
    survived: bool = False
    type: str = ""
    message: list[str] = field(default_factory=list)
    last: Line | None = None
    frames: deque[tuple[str, int]] = field(default_factory=lambda: deque(maxlen=MAX_FRAMES))


class Reader:
    """Cuts the tracebacks out of one stream, line by line."""

    def __init__(self, limit: int) -> None:
        self.traces: deque[Trace] = deque(maxlen=max(1, limit) * 4)
        self.lines_since = 0
        # Whether it is said behind the last traceback that something else failed.
        self.went_on = False
        self._open: Trace | None = None
        self._above = ""
        self._linked = False
        self._leaf_prefix: str | None = None
        self._in_test_report = False
        self._test = ""

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text
        if text.strip():
            self.lines_since += 1
            self.went_on = self.went_on or (" failed: " in text and says_what_failed(text))
        if text.startswith("=") and text.endswith("=") and (heading := _REPORT_HEADING.match(text)):
            self._in_test_report = bool(heading[1])
        if self._open is None or not self._continue(self._open, line):
            self._begin(line)
        self._above = text

    def _belongs(self) -> None:
        """Count from here what follows the last traceback."""
        self.lines_since, self.went_on = 0, False

    def _begin(self, line: Line) -> None:
        text = line.text
        # The margins of a test runner's own report: it names the test, and its own extractor reads it.
        if self._in_test_report or text.startswith(("E  ", "INTERNALERROR>")):
            return
        if text.endswith(LINKS):
            self._linked = True
        elif text.startswith("Ran "):
            self._test = ""
        elif text.startswith(("FAIL: ", "ERROR: ")) and (test := _TEST.match(text)):
            self._test = _test_id(test[1], test[2], test[3])
        elif HEADER in text:
            group = GROUP_HEADER in text
            at = text.index(GROUP_HEADER if group else HEADER)
            self._start(line, text[:at].replace("+ ", "| ") if group else text[:at], group)
        elif FATAL in text:
            self._start(line, "")
            self._finish_fatal(line, text.partition(FATAL)[2])
        else:
            self._begin_without_heading(line)

    def _begin_without_heading(self, line: Line) -> None:
        """Begin a leaf of a group, which may have no traceback, or what cannot be compiled."""
        text = line.text
        ruled = "+-" in text
        if ruled and (separator := _SEPARATOR.match(text)):
            self._leaf_prefix = separator[1].replace("+", "|") + ("  " if separator[2] else "") + "| "
        elif self._leaf_prefix and text.startswith(self._leaf_prefix):
            self._start(line, self._leaf_prefix)
            self._continue(self._open, line)
        elif ruled and _RULE.search(text):
            self._leaf_prefix = None
        elif 'File "' in text and (loose := _LOOSE_FRAME.match(text)):
            self._start(line, loose[1])
            if self._open is not None:
                self._open.loose = True
            self._continue(self._open, line)

    def _start(self, line: Line, prefix: str, group: bool = False) -> None:
        leaf = bool(self._leaf_prefix) and prefix.startswith((self._leaf_prefix or "")[:-2])
        if len(prefix) <= MAX_PREFIX_CHARS:
            self._open = Trace(line, prefix, group, leaf, self._linked, self._test)
            self._open.survived = self._above.startswith(SURVIVED)
        if leaf:
            self._leaf_prefix = None
        self._linked, self._test = False, ""

    def _continue(self, trace: Trace | None, line: Line) -> bool:
        """Return whether the line belongs to the open traceback; close it where it does not."""
        if trace is None:
            return False
        if _RULE.search(line.text):
            self._open = None
            return False
        text = _without(trace.prefix, line.text)
        if trace.fatal:
            return self._fatal_frame(trace, line)
        if not trace.type:
            return self._frame(trace, text, line)
        if not text.strip() or len(trace.message) >= MESSAGE_LINES or HEADER in text or text.startswith(('"""', "===")):
            self._open = None
            return False
        trace.message.append(text)
        if text.startswith(" "):
            trace.last = line
            self._belongs()
        return True

    def _frame(self, trace: Trace, text: str, line: Line) -> bool:
        if frame := _FRAME.match(text):
            trace.frames.append((frame[1], int(frame[2])))
            return True
        if text.startswith(" "):
            return True
        self._open = None
        exception = _EXCEPTION.match(text)
        bare = not trace.frames and HEADER in trace.first.text
        if not exception or bare or (trace.loose and not exception[1].endswith(SYNTAX)):
            return False
        trace.type, trace.message, trace.last = exception[1], [exception[2] or ""], line
        trace.group = trace.group or bool(_SUB_EXCEPTIONS.search(text))
        trace.survived = trace.survived or bool(_HANDLED.search(text[-400:]))
        self.traces.append(trace)
        self._belongs()
        self._open = trace
        return True

    def _finish_fatal(self, line: Line, message: str) -> None:
        if trace := self._open:
            trace.fatal, trace.type, trace.message, trace.last = True, FATAL.rstrip(": "), [message], line
            self.traces.append(trace)

    def _fatal_frame(self, trace: Trace, line: Line) -> bool:
        """Read the stacks of a fatal error, which begin with the frame that was called last."""
        if line.text.startswith(("Current thread ", "Stack (most recent")):
            trace.frames.clear()
        elif frame := _FRAME.match(line.text):
            trace.frames.appendleft((frame[1], int(frame[2])))
        elif line.text.strip() and not line.text.startswith(("Thread ", "  ", "Python runtime state")):
            self._open = None
            return False
        self._belongs()
        return True


def says_what_failed(text: str) -> bool:
    """Return whether a line says that something failed, and why."""
    return bool(_FAILED.match(text)) and not _PASSED_ON.search(text[:500])


def printed_together(traces: Iterable[Trace]) -> Iterator[list[Trace]]:
    """Yield the tracebacks that were printed as one: a chain, or a group with its leaves."""
    unit: list[Trace] = []
    for trace in traces:
        if unit and not (trace.linked or trace.leaf):
            yield unit
            unit = []
        unit.append(trace)
    if unit:
        yield unit


def chains(unit: list[Trace]) -> Iterator[list[Trace]]:
    """Yield the chains of a unit, the root first: one, or one for each leaf of a group."""
    grouped = any(trace.leaf for trace in unit)
    chain: list[Trace] = []
    for trace in unit:
        if chain and not trace.linked:
            yield chain
            chain = []
        if not (grouped and (trace.group or not (trace.leaf or chain))):
            chain.append(trace)
    if chain:
        yield chain


def _test_id(name: str, place: str, subtest: str | None) -> str:
    """Return the dotted name of a test, with its subtest; before Python 3.11 the place is only its class."""
    if place.startswith("unittest.loader._FailedTest"):
        return name
    whole = place if place.rpartition(".")[2] == name else f"{place}.{name}"
    return whole if subtest in (None, "(<subtest>)") else f"{whole} {subtest}"


def _without(prefix: str, text: str) -> str:
    """Return ``text`` without the margin that the traceback's first line had: digits of a stamp may differ."""
    head = text[: len(prefix)]
    same = head == prefix or (
        len(head) == len(prefix)
        and all(a == b or (a.isdigit() and b.isdigit()) for a, b in zip(head, prefix, strict=True))
    )
    return text[len(prefix) :] if same else text
