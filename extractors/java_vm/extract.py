"""A Java virtual machine that did not start or that crashed: the launcher's errors and the banner of a fatal error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 1024
MAX_NAME_BYTES = 160
# How far below its heading the rest of a banner is looked for.
BANNER_LINES = 24

_LAUNCHER = re.compile(
    r"^(?:Error: (?P<error>(?:Could not find or load main class|Main method not found in class|Main method is not static in class"
    r"|LinkageError occurred while loading main class|Unable to (?:access jarfile|initialize main class)) \S{1,400}?)(?:[,:] .*)?"
    r"|(?P<manifest>no main manifest attribute), in .{1,400})$"
)
# The class of what is at fault stands below.
_BECAUSE = re.compile(r"^(?:Caused by: |\t)(?P<type>[A-Za-z_$][\w$./]{0,400}(?:Exception|Error))(?:: (?P<said>.*))?$")
_STARTING = re.compile(r"^Error occurred during initialization of (?:VM|boot layer)$")
_REFUSED = "Error: Could not create the Java Virtual Machine."
_CRASHED = re.compile(r"^# A fatal error has been detected by the Java Runtime Environment:$")
_NO_MEMORY = re.compile(r"^# There is insufficient memory for the Java Runtime Environment to continue\.$")
_REASON = re.compile(
    r"^# {1,2}(?P<signal>SIG[A-Z]{2,6}|EXCEPTION_[A-Z_]{1,40}|Internal Error|Out of Memory Error)\b[^,]{0,300}, pid="
)
_DETAIL = re.compile(r"^#  (?P<said>(?:guarantee|assert|fatal error|Error)\b.{0,400})$")
_FRAME_HEAD = re.compile(r"^# Problematic frame:$")
_FRAME = re.compile(r"^# [A-Za-z]  ?(?:\d{1,9} )?(?P<frame>.{1,400})$")
_OFFSET = re.compile(r"\+0x[0-9a-f]{1,16}| ?@ ?0x.{0,60}| \(\d{1,9} bytes\)")
_PIECES = re.compile(r"^# Native memory allocation \((?P<how>\w{1,20})\) failed")

_CONFIG = ("config", "start", "correct the options that the virtual machine is started with")
_MISSING = ("deterministic", "start", "correct the class path, the class's name or how it was compiled")
_MEMORY = ("resource", "memory", "give the machine more memory, or let the virtual machine ask for less")
_RESERVE = re.compile(r"[Cc]ould not reserve|not enough space for|insufficient memory|Cannot allocate")


@dataclass(slots=True)
class Trouble:
    """One thing that went wrong: its name, its words, and what it says of the cause."""

    name: str
    said: str
    first: Line
    last: Line
    type: str | None = None
    cause: tuple[str, str, str] | None = None


def extract(request: Request) -> Answer:
    """Answer with each trouble, in the order in which they were printed, once."""
    answer = Answer()
    seen: set[tuple[str | None, str]] = set()
    for trouble in _troubles(request):
        if (trouble.type, trouble.name) in seen or len(answer.findings) >= request.max_findings:
            continue
        seen.add((trouble.type, trouble.name))
        cause = trouble.cause and {
            "kind": trouble.cause[0],
            "rule": f"java-vm-{trouble.cause[1]}",
            "evidence": cut_bytes(trouble.said, 500),
            "fix": trouble.cause[2],
        }
        answer.add(
            "crash",
            error_type=trouble.type,
            code=None if trouble.type else cut_bytes(trouble.name, MAX_NAME_BYTES),
            message=cut_bytes(trouble.said, MAX_MESSAGE_BYTES),
            evidence=[span(trouble.first, trouble.last)],
            cause=cause or None,
        )
    return answer


def _troubles(request: Request) -> Iterator[Trouble]:
    trouble: Trouble | None = None
    before: Line | None = None
    left = 0
    for line in request.lines():
        text = line.text.rstrip()
        if found := _launcher(text, line) or _banner(text, line) or _refused(text, line, before):
            if trouble is not None:
                yield trouble
            trouble, left = found, BANNER_LINES
        elif trouble is not None and left and line.source == trouble.first.source:
            left = left - 1 if _add_line(trouble, text, line) else 0
        before = line
    if trouble is not None:
        yield trouble


def _launcher(text: str, line: Line) -> Trouble | None:
    if said := _LAUNCHER.match(text):
        name = said["error"] or said["manifest"]
        return Trouble(name, name, line, line, cause=_MISSING)
    return None


def _banner(text: str, line: Line) -> Trouble | None:
    if _STARTING.match(text):
        return Trouble(text, text, line, line, cause=_CONFIG)
    if _CRASHED.match(text):
        return Trouble("fatal error of the virtual machine", "fatal error of the virtual machine", line, line)
    if _NO_MEMORY.match(text):
        return Trouble("insufficient memory", "insufficient memory", line, line, cause=_MEMORY)
    return None


def _refused(text: str, line: Line, before: Line | None) -> Trouble | None:
    """Return what stands before the line that says that nothing was started."""
    if text != _REFUSED or before is None or before.source != line.source or not before.text.strip():
        return None
    said = before.text.strip()
    return Trouble(said, said, before, line, cause=_CONFIG)


def _add_line(trouble: Trouble, text: str, line: Line) -> bool:
    """Read a line below a heading; return whether more may follow."""
    if not text.startswith("#"):
        return _explain(trouble, text, line)
    if reason := _REASON.match(text):
        trouble.name, trouble.said = reason["signal"], reason["signal"]
    elif pieces := _PIECES.match(text):
        trouble.said = f"{trouble.name}: {pieces['how']} failed"
    elif detail := _DETAIL.match(text):
        trouble.said = f"{trouble.name}: {detail['said']}"
    elif _FRAME_HEAD.match(text):
        trouble.last = line
        return True
    elif trouble.last.text.startswith("# Problematic") and (frame := _FRAME.match(text)):
        trouble.said += f" in {_OFFSET.sub('', frame['frame']).strip()}"
        trouble.last = line
        return False
    return True


def _explain(trouble: Trouble, text: str, line: Line) -> bool:
    if trouble.first.text.startswith("#"):
        return False
    if because := _BECAUSE.match(text):
        trouble.type = because["type"].replace("/", ".")
        # A class that is missing says its own name only.
        if because["said"] and because["said"] not in trouble.said:
            trouble.said = f"{trouble.said}: {because['said']}"
        trouble.last = line
    elif text and _STARTING.match(trouble.name):
        trouble.name, trouble.said, trouble.last = text, text, line
        if _RESERVE.search(text):
            trouble.cause = _MEMORY
    return False


if __name__ == "__main__":
    main(extract)
