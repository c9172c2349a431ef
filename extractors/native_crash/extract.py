"""Memory errors, races and signals of native programs: sanitizers, Valgrind, the C library and the shell's notices.

What a checker says of an error is told with the first frame in the own code. A signal is told only where nothing
else explains it: an abort is how all of them end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from kos_retry.sdk import Answer, Line, Request, Watch, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 1024
MAX_NAME_BYTES = 160
# How far below an error its stack is looked for.
STACK_LINES = 40

_SANITIZER = re.compile(
    r"(?:ERROR|WARNING): (\w{1,20}Sanitizer): ([\w-][\w -]{0,120}?)(?: on (?:unknown )?address\b| on \w{1,40} stack| \(pid=|: | in |$)"
)
_SUMMARY = re.compile(r"^SUMMARY: \w{1,20}Sanitizer: .{0,120}? (/?[^\s:]{1,400}):(\d{1,9})(?::\d{1,9})? in (.{1,300})$")
_UNDEFINED = re.compile(r"^([^\s:]{1,400}):(\d{1,9}):(\d{1,9}): runtime error: (.+)$")
_VALGRIND = re.compile(
    r"^==\d{1,9}== (Invalid (?:read|write|free).{0,120}|Conditional jump or move depends on uninitialised value\(s\)"
    r"|Use of uninitialised value.{0,40}|Mismatched free.{0,60}|Jump to the invalid address|Syscall param .{1,120}"
    r"|Source and destination overlap in \w{1,40}|Possible data race.{0,20}|Process terminating with default action of .{1,60}"
    r"|.{0,80}\bare definitely lost in loss record.{0,40})"
)
_LOST = re.compile(r"definitely lost")
_ADDRESS = re.compile(r" at address 0x[0-9A-Fa-f]{1,16}| \(?0x[0-9A-Fa-f]{1,16}\)?")
# `#0 0x55 in f /a/b.c:8:3`, `#0 f /a/b.c:8 (app+0x1)`, and Valgrind's `at 0x55: f (b.c:8)`.
_FRAME = re.compile(
    r"^ {1,8}#\d{1,4} (?:0x[0-9a-f]{1,16} in )?(?P<call>.{1,300}?) (?P<path>[^\s:()]{1,400}):(?P<line>\d{1,9})(?::(?P<column>\d{1,9}))?(?: \(.{0,400})?$"
)
_VALGRIND_FRAME = re.compile(
    r"^==\d{1,9}== {2,8}(?:at|by) 0x[0-9A-F]{1,16}: (?P<call>.{1,300}?) \((?P<path>[^\s:()]{1,400}):(?P<line>\d{1,9})\)$"
)
_FOREIGN = re.compile(r"libsanitizer/|compiler-rt/|sysdeps/|/csu/|^/usr/|/bits/|vg_replace_|/glibc|^\.\./")

_LIBRARY = re.compile(
    r"^(?:\*\*\* )?((?:stack smashing|buffer overflow) detected|(?:free|malloc|realloc|calloc|munmap_chunk)\(\): .{1,80}"
    r"|malloc_consolidate\(\): .{1,80}|double free or corruption \(.{1,20}\)|corrupted .{1,60})(?: \*\*\*: terminated)?$"
)
_ASSERTION = re.compile(r"^(?:.{1,200}: )?([^\s:]{1,400}):(\d{1,9}): (.{1,300}): (Assertion `.{1,400}' failed)\.?$")
_TERMINATE = re.compile(
    r"^(?:terminate called after throwing an instance of '(?P<type>.{1,200})'|(?P<without>terminate called (?:without|recursively).{0,60})"
    r"|libc\+\+abi: terminating (?:due to|with) uncaught exception of type (?P<other>[^:]{1,200}(?:::[^:]{1,200}){0,4})(?:: (?P<what>.{1,400}))?)$"
)
_WHAT = re.compile(r"^ {1,4}what\(\): {1,2}(.*)$")

SIGNALS = {
    "Segmentation fault": "SIGSEGV",
    "Aborted": "SIGABRT",
    "Floating point exception": "SIGFPE",
    "Illegal instruction": "SIGILL",
    "Bus error": "SIGBUS",
    "Trace/breakpoint trap": "SIGTRAP",
    "Bad system call": "SIGSYS",
    "Killed": "SIGKILL",
}
_NOTICE = re.compile(
    r"^(?:[\w./+-]{1,200}: (?:line \d{1,9}: ?|\d{1,9}: )?|make(?:\[\d{1,3}\])?: \*\*\* \[.{1,300}\] )? {0,6}(?:\d{1,9} {1,4})?"
    rf"({'|'.join(SIGNALS)}|segmentation fault|abort)(?: {{1,4}}\(core dumped\))? {{0,40}}(.{{0,400}})$"
)
# Who else aborts, and says why in a way that others read.
_EXPLAINED = re.compile(
    r"^thread '.{1,300} (?:panicked at|has overflowed its stack)|^Fatal Python error: |^panic: |^fatal error: "
    r"|^# A fatal error has been detected by "
)

_READ = (_SANITIZER, _UNDEFINED, _VALGRIND, _LIBRARY, _ASSERTION, _TERMINATE, _NOTICE, _EXPLAINED)


@dataclass(slots=True)
class Fault:
    """One error: what it is called, what is said of it, and the first own frame."""

    name: str
    message: str
    first: Line
    last: Line
    rule: str = ""
    type: str | None = None
    path: str | None = None
    line: int | None = None
    column: int | None = None
    call: str = ""
    # How many more lines may hold its stack.
    left: int = 0


class Reader:
    """Collects the errors and the shell's notices of one stream."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.notices: list[tuple[str, str, Line]] = []
        self.explained = False
        self._watch = Watch(*_READ)

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        if not (self.faults and self.faults[-1].left) and not self._watch.sees(line):
            return
        text = line.text.rstrip()
        found = _checker(text, line) or _library(text, line)
        if found is not None:
            self.faults.append(found)
        elif notice := _NOTICE.match(text):
            self._notice(notice, line)
        elif _EXPLAINED.match(text):
            self.explained = True
        elif self.faults and self.faults[-1].left:
            _stack(self.faults[-1], text, line)

    def _notice(self, notice: re.Match[str], line: Line) -> None:
        name = {"segmentation fault": "Segmentation fault", "abort": "Aborted"}.get(notice[1], notice[1])
        alone = notice.start(1) == 0
        # A word at the start of a sentence is no notice.
        if not (alone and notice[2]):
            self.notices.append((name, notice[2].strip(), line))


def _checker(text: str, line: Line) -> Fault | None:
    """Return what a sanitizer or Valgrind reports on the line."""
    if "Sanitizer: " in text and (report := _SANITIZER.search(text)):
        rule = "" if report[1] == "ThreadSanitizer" else "memory-error"
        return Fault(report[2].strip(), report[2].strip(), line, line, rule, report[1], left=STACK_LINES)
    if ": runtime error: " in text and (undefined := _UNDEFINED.match(text)):
        fault = Fault(undefined[4].partition(": ")[0], undefined[4], line, line, "undefined-behaviour")
        fault.path, fault.line, fault.column = undefined[1], int(undefined[2]), int(undefined[3])
        return fault
    if text.startswith("==") and (report := _VALGRIND.match(text)):
        message = "memory definitely lost" if _LOST.search(report[1]) else _ADDRESS.sub("", report[1])
        return Fault(message, message, line, line, "memory-error", "Valgrind", left=STACK_LINES)
    return None


def _library(text: str, line: Line) -> Fault | None:
    """Return what the C or the C++ library says before it aborts."""
    if said := _LIBRARY.match(text):
        return Fault(said[1], said[1], line, line, "memory-error")
    if "Assertion `" in text and (said := _ASSERTION.match(text)):
        fault = Fault(said[4], said[4], line, line, type="assertion")
        fault.path, fault.line, fault.call = said[1], int(said[2]), said[3]
        return fault
    if said := _TERMINATE.match(text):
        name = said["type"] or said["other"] or said["without"]
        return Fault(name, said["what"] or name, line, line, type=name, left=0 if said["what"] else 2)
    return None


def _stack(fault: Fault, text: str, line: Line) -> None:
    """Read a line below an error: the first own frame, or the words of an exception."""
    fault.left -= 1
    if what := _WHAT.match(text):
        fault.message, fault.last, fault.left = what[1] or fault.message, line, 0
        return
    frame = _FRAME.match(text) or _VALGRIND_FRAME.match(text)
    if frame and not _FOREIGN.search(frame["path"]):
        column = frame.groupdict().get("column")
        fault.path, fault.line, fault.column = frame["path"], int(frame["line"]), int(column) if column else None
        fault.call, fault.last, fault.left = frame["call"], line, 0
    elif summary := _SUMMARY.match(text):
        fault.path, fault.line, fault.call, fault.left = summary[1], int(summary[2]), summary[3], 0
    elif not text or (text.startswith("==") and text.endswith("==")):
        # The stack of the error itself ends; what follows is where the memory is from.
        fault.left = fault.left if fault.name.startswith("detected") else 0


def extract(request: Request) -> Answer:
    """Answer with the errors, each once, or with the signal that nothing explains."""
    readers = request.read(Reader)
    answer = Answer()
    seen: set[tuple[object, ...]] = set()
    faults = [fault for reader in readers.values() for fault in reader.faults]
    for fault in faults:
        if len(answer.findings) < request.max_findings:
            _add(answer, request, fault, seen)
    explained = bool(faults) or any(reader.explained for reader in readers.values())
    caught = any(fault.type in ("AddressSanitizer", "Valgrind") for fault in faults)
    for name, command, line in (notice for reader in readers.values() for notice in reader.notices):
        told = caught or (name == "Aborted" and explained) or (name, command) in seen
        if not told and len(answer.findings) < request.max_findings:
            seen.add((name, command))
            _add_signal(answer, name, command, line)
    return answer


def _add(answer: Answer, request: Request, fault: Fault, seen: set[tuple[object, ...]]) -> None:
    path = request.relative(fault.path) if fault.path else None
    if (fault.name, path, fault.line) in seen:
        return
    seen.add((fault.name, path, fault.line))
    cause: dict[str, Any] = {
        "kind": "deterministic",
        "rule": f"native-{fault.rule}",
        "evidence": cut_bytes(fault.message, 500),
    }
    answer.add(
        "diagnostic" if fault.rule or fault.type == "ThreadSanitizer" else "crash",
        error_type=fault.type,
        code=cut_bytes(fault.name, MAX_NAME_BYTES),
        message=cut_bytes(f"{fault.message} in {fault.call}" if fault.call else fault.message, MAX_MESSAGE_BYTES),
        path=path,
        line=fault.line,
        column=fault.column,
        evidence=[span(fault.first, fault.last)],
        cause=cause if fault.rule else None,
    )


def _add_signal(answer: Answer, name: str, command: str, line: Line) -> None:
    killed = {
        "kind": "resource",
        "rule": "native-killed",
        "evidence": cut_bytes(line.text.strip(), 500),
        "fix": "look for the out-of-memory killer in the system's log",
    }
    answer.add(
        "crash",
        error_type=SIGNALS[name],
        # Whoever kills a program from outside says nothing about it.
        code=None if name == "Killed" else name,
        message=cut_bytes(f"{name}: {command}".rstrip(": "), MAX_MESSAGE_BYTES),
        evidence=[span(line)],
        cause=killed if name == "Killed" else None,
    )


if __name__ == "__main__":
    main(extract)
