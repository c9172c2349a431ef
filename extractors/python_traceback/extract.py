"""Exceptions from Python tracebacks in the output.

A program dies of the last one; what stands before was most likely handled and logged, so it is only a guess.
Of a chain the root cause is told, of an exception group every leaf. Where `unittest` heads a traceback, it is
that test's.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 2048
MESSAGE_LINES = 8
MAX_FRAMES = 64
MAX_PREFIX_CHARS = 160
# What a wrapper says after the program that died: more lines than this mean that it went on.
LAST_WORDS = 10

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
_REPORT_HEADING = re.compile(r"^={1,300} (FAILURES|ERRORS)? ?")
_FOREIGN = re.compile(r"^<|/(?:site|dist)-packages/|/lib/python\d[\d.]*/|\\lib\\", re.IGNORECASE)
# How `unittest` heads a traceback: `FAIL: test_x (tests.test_a.Case.test_x) (n=1)`.
_TEST = re.compile(r"^(?:FAIL|ERROR): ([\w.]{1,200}) \(([\w.]{1,400})\)")
_HTTP = re.compile(r"^(?:HTTP Error )?(408|425|429|500|502|503|504)\b")

# What the system says of itself, as `OSError` words it on any platform: kind, rule, what a human must do.
SYSTEM = {
    "Connection refused": ("transient", "connection-refused", None),
    "Connection reset by peer": ("transient", "connection-reset", None),
    "Connection timed out": ("transient", "connection-timeout", None),
    "Software caused connection abort": ("transient", "connection-aborted", None),
    "Network is unreachable": ("transient", "network-unreachable", None),
    "No route to host": ("transient", "network-unreachable", None),
    "Temporary failure in name resolution": ("transient", "name-resolution", None),
    "Name or service not known": ("transient", "name-resolution", None),
    "nodename nor servname provided, or not known": ("transient", "name-resolution", None),
    "Address already in use": ("transient", "address-in-use", None),
    "Resource temporarily unavailable": ("transient", "resource-busy", None),
    "Device or resource busy": ("transient", "resource-busy", None),
    "No space left on device": ("environment", "disk-full", "free disk space, or write to another disk"),
    "Disk quota exceeded": ("environment", "disk-full", "free disk space, or raise the quota"),
    "Read-only file system": ("environment", "read-only", "write to a directory that is not mounted read-only"),
    "Too many open files": ("resource", "open-files", "close files earlier, or raise the limit of open files"),
    "Cannot allocate memory": ("resource", "memory", "use less memory, or raise its limit"),
}
# Types that tell the cause by themselves.
TYPES = {
    "ConnectionResetError": ("transient", "connection-reset", None),
    "ConnectionRefusedError": ("transient", "connection-refused", None),
    "ConnectionAbortedError": ("transient", "connection-aborted", None),
    "RemoteDisconnected": ("transient", "connection-reset", None),
    "BlockingIOError": ("transient", "resource-busy", None),
    "MemoryError": ("resource", "memory", "use less memory, or raise its limit"),
    **dict.fromkeys(SYNTAX, ("deterministic", "syntax", "correct the syntax at the named line")),
    "ImportError": ("deterministic", "import", "correct the import, or install what it needs"),
    "ModuleNotFoundError": ("deterministic", "import", "install the missing module, or correct the import"),
}
_MODULE = re.compile(r"^No module named '([\w.]{1,200})'")
_ERRNO = re.compile(r"^\[Errno -?\d{1,5}\] ([^:]{1,100})")


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
    type: str = ""
    message: list[str] = field(default_factory=list)
    last: Line | None = None
    frames: deque[tuple[str, int]] = field(default_factory=lambda: deque(maxlen=MAX_FRAMES))


@dataclass(frozen=True, slots=True)
class Failure:
    """A chain of tracebacks, the root first; the test that it is of, if any; whether the program died of it."""

    chain: list[Trace]
    test: str
    ended: bool


class Reader:
    """Cuts the tracebacks out of one stream, line by line."""

    def __init__(self, limit: int) -> None:
        self.traces: deque[Trace] = deque(maxlen=max(1, limit) * 4)
        self.lines_since = 0
        self._open: Trace | None = None
        self._linked = False
        self._leaf_prefix: str | None = None
        self._in_test_report = False
        self._test = ""

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text
        if text.strip():
            self.lines_since += 1
        if text.startswith("=") and text.endswith("=") and (heading := _REPORT_HEADING.match(text)):
            self._in_test_report = bool(heading[1])
        if self._open is not None and self._continue(self._open, line):
            return
        self._begin(line)

    def _begin(self, line: Line) -> None:
        text = line.text
        # The margins of a test runner's own report: it names the test, and its own extractor reads it.
        if self._in_test_report or text.startswith(("E  ", "INTERNALERROR>")):
            return
        if text.endswith(LINKS):
            self._linked = True
        elif text.startswith("Ran "):
            self._test = ""
        elif test := _TEST.match(text):
            self._test = _test_id(test[1], test[2])
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
        if separator := _SEPARATOR.match(text):
            self._leaf_prefix = separator[1].replace("+", "|") + ("  " if separator[2] else "") + "| "
        elif self._leaf_prefix and text.startswith(self._leaf_prefix):
            self._start(line, self._leaf_prefix)
            self._continue(self._open, line)
        elif _RULE.search(text):
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
            trace.last, self.lines_since = line, 0
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
        self.traces.append(trace)
        self.lines_since = 0
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
        self.lines_since = 0
        return True


def extract(request: Request) -> Answer:
    """Answer with the exceptions of all streams, each once, the one that ended the program as likely."""
    readers: dict[str, Reader] = {}
    for line in request.lines():
        readers.setdefault(line.source, Reader(request.max_findings)).feed(line)
    deadly = next((s for s in ("stderr", *readers) if s in readers and readers[s].traces), None)
    answer = Answer()
    seen: dict[tuple[object, ...], bool] = {}
    for source, reader in readers.items():
        units = list(_units(reader.traces))
        for number, unit in enumerate(units, 1):
            ended = (
                source == deadly
                and number == len(units)
                and reader.lines_since <= LAST_WORDS
                and request.exit_code != 0
            )
            for chain in _causes(unit):
                _add(answer, request, Failure(chain, unit[0].test, ended), seen)
    answer.findings = answer.findings[-request.max_findings :]
    return answer


def _units(traces: Iterable[Trace]) -> Iterator[list[Trace]]:
    """Yield the tracebacks that were printed as one: a chain, or a group with its leaves."""
    unit: list[Trace] = []
    for trace in traces:
        if unit and not (trace.linked or trace.leaf):
            yield unit
            unit = []
        unit.append(trace)
    if unit:
        yield unit


def _causes(unit: list[Trace]) -> Iterator[list[Trace]]:
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


def _add(answer: Answer, request: Request, failure: Failure, seen: dict[tuple[object, ...], bool]) -> None:
    root, outer = failure.chain[0], failure.chain[-1]
    certain = failure.ended or bool(failure.test)
    message = _message(root)
    cause = _cause(root.type, message) if certain else None
    if (outer.type, _message(outer)) != (root.type, message):
        message = f"{message} (then {outer.type}: {outer.message[0]})".strip()
    message = cut_bytes(message, MAX_MESSAGE_BYTES) or root.type
    path, line = _location(request, root)
    key = (failure.test,) if failure.test else (root.type, message, path, line)
    if key in seen and (failure.test or not failure.ended):
        return
    if key in seen:
        # Logged before, and in the end the program died of it.
        answer.findings = [f for f in answer.findings if (f["error_type"], f["message"]) != (root.type, message)]
    seen[key] = failure.ended
    answer.add(
        "test" if failure.test else "crash",
        test_id=failure.test or None,
        error_type=root.type,
        message=message,
        path=path,
        line=line,
        evidence=[span(root.first, root.last)],
        confidence="likely" if certain else "guess",
        cause=cause,
    )


def _test_id(name: str, place: str) -> str:
    """Return the dotted name of a test; before Python 3.11 the place is only its class."""
    if place.startswith("unittest.loader._FailedTest"):
        return name
    return place if place.rpartition(".")[2] == name else f"{place}.{name}"


def _message(trace: Trace) -> str:
    """Return the message up to its last indented line: what follows at the margin is often another's."""
    kept = len(trace.message)
    while kept > 1 and not trace.message[kept - 1].startswith((" ", "- ", "+ ", "? ")):
        kept -= 1
    return "\n".join(line.rstrip() for line in trace.message[:kept]).strip()


def _location(request: Request, trace: Trace) -> tuple[str | None, int | None]:
    """Return the innermost frame in the workspace, else in no library; where a library is installed varies."""
    frames = [(request.relative(path), line, path) for path, line in trace.frames if not path.startswith("<")]
    own = [f for f in frames if not _FOREIGN.search(f[0])]
    inside = [f for f in own if f[0] != f[2] or not f[2].startswith("/")]
    if trace.type in SYNTAX:
        own = inside = frames
    path, line, _ = next((found[-1] for found in (inside, own) if found), (None, None, None))
    return path, line


def _cause(error_type: str, message: str) -> dict[str, str] | None:
    """Return why it failed, where the type or the system's own words tell; never from words in a message."""
    name = error_type.rpartition(".")[2]
    if (errno := _ERRNO.match(message)) and errno[1].strip() in SYSTEM:
        known = SYSTEM[errno[1].strip()]
    elif name in TYPES:
        known = TYPES[name]
    elif name in ("TimeoutError", "timeout") and message in (
        "timed out",
        "The read operation timed out",
        "Read timed out",
    ):
        known = ("transient", "connection-timeout", None)
    elif name == "HTTPError" and _HTTP.match(message):
        known = ("transient", "http-status", None)
    elif name == "OperationalError" and message == "database is locked":
        known = ("transient", "database-locked", None)
    else:
        return None
    kind, rule, fix = known
    if module := _MODULE.match(message):
        fix = f"install the missing module '{module[1]}', or correct the import"
    evidence = f"{error_type}: {message}".partition("\n")[0].rstrip(": ")
    return {"kind": kind, "rule": f"python-{rule}", "evidence": evidence, **({"fix": fix} if fix else {})}


def _without(prefix: str, text: str) -> str:
    """Return ``text`` without the margin that the traceback's first line had: digits of a stamp may differ."""
    head = text[: len(prefix)]
    same = head == prefix or (
        len(head) == len(prefix)
        and all(a == b or (a.isdigit() and b.isdigit()) for a, b in zip(head, prefix, strict=True))
    )
    return text[len(prefix) :] if same else text


if __name__ == "__main__":
    main(extract)
