"""Failed tests and panics of Rust programs.

A panic belongs to the test whose name its thread has. Of the panics of a program the one that ended it is
likely, the others are guesses: a thread's panic may have been handled.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 1024
MAX_NAME_BYTES = 160
MESSAGE_LINES = 8
# Panics and tests beyond this many are not kept; a test loop can print any number.
MAX_KEPT = 2000

_THREAD = r"^thread '(?P<thread>.{1,300}?)'(?: \(\d{1,12}\))? "
_PANIC = re.compile(
    _THREAD + r"panicked at (?:'(?P<said>.{0,2000})', )?(?P<path>[^:]{1,400}):(?P<line>\d{1,9}):(?P<column>\d{1,9}):?$"
)
_OVERFLOW = re.compile(_THREAD + "has overflowed its stack$")
_FRAME = re.compile(r"^ {1,40}at ([^:\s]{1,400}):(\d{1,9})(?::(\d{1,9}))?$")
_ARROW = re.compile(r"^ {1,12}--> ([^:\s][^:]{0,400}):(\d{1,9}):(\d{1,9})$")
_FOREIGN = re.compile(r"^/rustc/|/rustlib/|/\.cargo/|/registry/src/")
_TEST = re.compile(r"^test (.{1,400}?)(?: - (?:should panic|compile|compile fail))? \.\.\. FAILED\b")
_LISTED = re.compile(r"^ {4}(\S.{0,400})$")
_BLOCK = re.compile(r"^---- (.{1,400}) (?:stdout|stderr) ----$")
_EXPECTED_PANIC = re.compile(r"^note: (test did not panic as expected) at ([^:]{1,400}):(\d{1,9}):\d{1,9}$")
_DOCTEST = re.compile(r"^(\S{1,400}) - .{0,300}\(line (\d{1,9})\)$")
# A test that ended the whole process; the hash in the name of the program changes with every build.
_SIGNAL = re.compile(
    r"process didn't exit successfully: `(?P<program>\S{1,400}?)(?:-[0-9a-f]{16})?(?: [^`]{0,2000})?`"
    r" \((?P<how>signal: \d{1,3}, (?P<name>SIG\w{1,12}).{0,100})\)"
)
_RUNNER = ("test result:", "running ", "     Running ", "successes:")
_ASIDE = ("note: run with", "note: Some details", "stack backtrace:", "stderr:")

Place = tuple[str, int, int | None]


@dataclass(slots=True)
class Words:
    """What a panic or a failed test says, and where it points."""

    first: Line
    last: Line
    thread: str = ""
    panicked: bool = False
    said: list[str] = field(default_factory=list)
    place: Place | None = None
    complete: bool = False


class Reader:
    """Collects the failed tests and the panics of one stream."""

    def __init__(self) -> None:
        self.panics: list[Words] = []
        self.tests: dict[str, Line] = {}
        self.blocks: dict[str, Words] = {}
        self.signals: list[tuple[Line, re.Match[str]]] = []
        self.tested = False
        self._panic: Words | None = None
        self._block: Words | None = None
        self._listing = False

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text.rstrip()
        if self._of_runner(text, line):
            self._panic = None
            return
        if text.startswith("thread '") and self._of_thread(text, line):
            return
        if "process didn't exit" in text and (signal := _SIGNAL.search(text)):
            self.signals.append((line, signal))
        if self._panic is not None:
            _continue_panic(self._panic, text, line)
        if self._block is not None:
            _continue_block(self._block, text, line)

    def _of_thread(self, text: str, line: Line) -> bool:
        panic = _PANIC.match(text)
        overflow = None if panic else _OVERFLOW.match(text)
        if panic:
            place = (panic["path"], int(panic["line"]), int(panic["column"]))
            said = [panic["said"]] if panic["said"] else []
            self._panic = Words(line, line, panic["thread"], panicked=True, said=said, place=place)
        elif overflow:
            said = [f"thread '{overflow['thread']}' has overflowed its stack"]
            self._panic = Words(line, line, overflow["thread"], said=said, complete=True)
        if (panic or overflow) and self._panic and len(self.panics) < MAX_KEPT:
            self.panics.append(self._panic)
        if self._block is not None:
            self._block.last = line
        return bool(panic or overflow)

    def _of_runner(self, text: str, line: Line) -> bool:
        """Return whether the line is the test runner's own."""
        if text.startswith("test ") and (failed := _TEST.match(text)):
            self._failed(failed[1], line)
        elif block := _BLOCK.match(text) if text.startswith("---- ") else None:
            self._block = self.blocks.setdefault(block[1], Words(line, line))
        elif text == "failures:":
            self._listing, self._block = True, None
        elif self._listing and (listed := _LISTED.match(text)):
            self._failed(listed[1], line)
        elif text.startswith(_RUNNER):
            self.tested, self._block, self._listing = True, None, False
        else:
            self._listing = self._listing and not text
            return False
        return True

    def _failed(self, name: str, line: Line) -> None:
        self.tested = True
        if len(self.tests) < MAX_KEPT:
            self.tests.setdefault(name, line)


def _continue_panic(panic: Words, text: str, line: Line) -> None:
    """Add a line of the message, or a frame where the panic was raised in a library."""
    frame = _FRAME.match(text)
    if frame and panic.place and _FOREIGN.search(panic.place[0]) and not _FOREIGN.search(frame[1]):
        panic.place = (frame[1], int(frame[2]), int(frame[3]) if frame[3] else None)
    elif panic.complete:
        return
    elif (not text and panic.said) or text.startswith(_ASIDE) or len(panic.said) >= MESSAGE_LINES:
        panic.complete = True
    elif text:
        panic.said.append(text)
        panic.last = line


def _continue_block(block: Words, text: str, line: Line) -> None:
    """Add a line of what a test printed."""
    if not text or len(block.said) >= MESSAGE_LINES or text.startswith(_ASIDE):
        return
    if arrow := _ARROW.match(text):
        block.place = block.place or (arrow[1], int(arrow[2]), int(arrow[3]))
    if expected := _EXPECTED_PANIC.match(text):
        block.place, text = (expected[2], int(expected[3]), None), expected[1]
    block.said.append(text)
    block.last = line


def extract(request: Request) -> Answer:
    """Answer with the failed tests by name; where no tests ran, with the panics of the program."""
    readers = request.read(Reader)
    tested = any(reader.tested for reader in readers.values())
    for reader in readers.values():
        for words in reader.panics:
            if tested and not words.panicked and words.thread != "main":
                # It takes the test runner down with it, which can say nothing more.
                reader.tests.setdefault(words.thread, words.first)
    answer = Answer()
    panics = [panic for reader in readers.values() for panic in reader.panics]
    of_threads = {panic.thread: panic for panic in panics}
    names: set[str] = set()
    for reader in readers.values():
        for name, line in reader.tests.items():
            if name not in names:
                names.add(name)
                _add_test(answer, request, name, line, of_threads.get(name) or _within(reader, name))
    if not names:
        _add_signals(answer, [signal for reader in readers.values() for signal in reader.signals])
    if not tested:
        _add_panics(answer, request, panics)
    answer.findings = answer.findings[: request.max_findings]
    return answer


def _within(reader: Reader, name: str) -> Words | None:
    """Return what was said in a test's block; a documentation test panics in a process of its own, in `main`."""
    block = reader.blocks.get(name)
    inside = (p for p in reader.panics if block and block.first.start <= p.first.start <= block.last.end)
    return next(inside, block)


def _add_test(answer: Answer, request: Request, name: str, line: Line, words: Words | None) -> None:
    place = words.place if words else None
    if (place is None or _FOREIGN.search(place[0])) and (doctest := _DOCTEST.match(name)):
        place = (doctest[1], int(doctest[2]), None)
    answer.add(
        "test",
        test_id=name,
        error_type="panic" if words and words.panicked else None,
        message=cut_bytes("\n".join(words.said), MAX_MESSAGE_BYTES) if words and words.said else "failed",
        path=request.relative(place[0]) if place else None,
        line=place[1] if place else None,
        column=place[2] if place else None,
        evidence=[span(words.first, words.last)] if words else [span(line)],
    )


def _add_signals(answer: Answer, signals: list[tuple[Line, re.Match[str]]]) -> None:
    """Add what killed a test program before any test could fail."""
    for line, signal in signals[:1]:
        answer.add(
            "crash", code=signal["name"], message=f"{signal['program']} ({signal['how']})", evidence=[span(line)]
        )


def _add_panics(answer: Answer, request: Request, panics: list[Words]) -> None:
    """Add the panics of a program: the last one is likely, or that of the thread whose end it only reports."""
    deadly = panics[-1] if panics else None
    if deadly is not None and len(panics) > 1 and "Any { .. }" in " ".join(deadly.said):
        deadly = panics[-2]
    seen: set[tuple[str, Place | None]] = set()
    for panic in panics:
        words = "\n".join(panic.said)
        message = f"panicked: {words}".rstrip(": ") if panic.panicked else words
        if (message, panic.place) in seen and panic is not deadly:
            continue
        seen.add((message, panic.place))
        answer.add(
            "crash",
            code=cut_bytes(message.partition("\n")[0], MAX_NAME_BYTES),
            message=cut_bytes(message, MAX_MESSAGE_BYTES),
            path=request.relative(panic.place[0]) if panic.place else None,
            line=panic.place[1] if panic.place else None,
            column=panic.place[2] if panic.place else None,
            evidence=[span(panic.first, panic.last)],
            confidence="likely" if panic is deadly else "guess",
        )


if __name__ == "__main__":
    main(extract)
