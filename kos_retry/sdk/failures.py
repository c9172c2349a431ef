"""Reading what a test framework says of one failure: its type, its words and its place in the own code."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from kos_retry.sdk import Answer, Line, Request, span
from kos_retry.text.bounds import cut_bytes
from kos_retry.text.escapes import plain_text

MAX_MESSAGE_BYTES = 2048
# Of a failure that is read line by line.
MAX_SAID_BYTES = 1024
MAX_NAME_BYTES = 512
MESSAGE_LINES = 8
# A stack begins or ends with what counts.
MAX_ENDS_CHARS = 8 * 1024
MAX_PLACES = 200
# How far before a place what it belongs to is looked for.
MAX_LEAD_CHARS = 400

TYPED = re.compile(
    r"^[ \t]{0,8}((?:[^\W\d][\w.$\\:]{0,160})?(?:Error|Exception|ExceptionGroup|Failure|Failed))"
    r"(?: \[\w{1,64}\])?(?::[ \t]?|$)",
    re.MULTILINE,
)
# A type that says no more than that something failed.
SAYS_NOTHING = frozenset({"Error", "Failure", "Failed", "Exception"})
# The end of one step of a stack that has its innermost step last: the place, and the type where the stack ends.
_STEP_END = re.compile(r"^(?!<)([^\s:][^:\n]{0,400}):(\d{1,9}):(?: in | ?([^\W\d][\w.]{0,160})?$)", re.MULTILINE)
# How some mark the lines of a trace that are the error.
_MARGIN = re.compile(r"^E {3,12}(.*)", re.MULTILINE)
_FRAME = re.compile(
    r"""(?:[Ff]ile "?(?P<a>[^\s",]{1,400})"?, line (?P<b>\d{1,9}))"""
    r"""|(?:(?:^|[\s(\[])(?:file://)?(?P<c>[^\s()\[\]:"']{1,400}\.\w{1,6}):(?P<d>\d{1,9})\b)""",
    re.MULTILINE,
)
# A message may be followed by its stack, or by the lines of the source that it is about.
_STACK_BEGINS = re.compile(r"^[ \t]{0,8}at \S|^#\d{1,4} |^[ \t]{0,8}(?:> {0,4})?\d{1,6} \| ")
_ONLY_A_PLACE = re.compile(r"^\S{1,400}:\d{1,9}$")


@dataclass(slots=True)
class FailedTest:
    """A test as a runner prints it: its name, what was thrown, what that said, and the first frame in the own code."""

    name: str
    first: Line
    last: Line
    status: str = "failed"
    type: str | None = None
    said: list[str] = field(default_factory=list)
    path: str | None = None
    line: int | None = None

    def at(self, frame: re.Match[str], line: Line, foreign: re.Pattern[str]) -> None:
        """Take a frame of the stack, with groups ``call``, ``file`` and ``line``, where it is the first that is not ``foreign``."""
        if frame["file"] and self.path is None and not foreign.search(frame["call"]):
            self.path, self.line, self.last = frame["file"], int(frame["line"]), line

    def add_to(self, answer: Answer) -> None:
        """Add the finding."""
        answer.add(
            "test",
            status=self.status,
            test_id=cut_bytes(self.name, MAX_NAME_BYTES),
            error_type=self.type,
            message=cut_bytes("\n".join(self.said) or self.type or "failed without a message", MAX_SAID_BYTES),
            path=self.path,
            line=self.line,
            evidence=[span(self.first, self.last)],
        )


class Told(NamedTuple):
    """What is said of one failure."""

    error_type: str | None
    message: str
    path: str | None
    line: int | None


def told(request: Request, message: str, trace: str, foreign: re.Pattern[str]) -> Told:
    """Read a failure that a report tells in a message, a trace or both; ``foreign`` finds lines that are of a library."""
    said, trace = plain_text(ends(message)).strip(), plain_text(ends(trace))
    steps = _STEP_END.findall(trace)
    error_type, words = typed("" if _ONLY_A_PLACE.match(said) else said)
    if not words:
        error_type, words = _of_trace(trace)
    if error_type is None:
        error_type = next((kind for _, _, kind in reversed(steps) if kind), None)
    path, line = place(request, trace or said, foreign, last=bool(steps))
    return Told(error_type, bounded(words), path, line)


def _of_trace(trace: str) -> tuple[str | None, str]:
    """Return type and words of a failure that only its trace tells: the marked lines of it, where there are any."""
    marked = "\n".join(_MARGIN.findall(trace)).strip()
    found = TYPED.search(marked)
    return typed(marked[found.start() :].lstrip() if found else marked or trace.strip())


def typed(words: str) -> tuple[str | None, str]:
    """Return the error type that ``words`` begin with, if they do, and what follows it."""
    found = TYPED.match(words)
    if found is None:
        return None, words
    rest = words[found.end() :].lstrip()
    if found[1] in SAYS_NOTHING and rest:
        return None, rest
    return found[1], rest or words.strip()


def bounded(words: str) -> str:
    """Return the lines of a message before any stack, within the bounds of one."""
    kept: list[str] = []
    for line in words.splitlines():
        if len(kept) >= MESSAGE_LINES or (kept and _STACK_BEGINS.match(line)):
            break
        if line.strip():
            kept.append(line.rstrip())
    return cut_bytes("\n".join(kept), MAX_MESSAGE_BYTES)


def place(request: Request, stack: str, foreign: re.Pattern[str], *, last: bool) -> tuple[str | None, int | None]:
    """Return the first place in a stack that is in no library, or the last where the innermost step ends it."""
    found = list(_FRAME.finditer(stack))
    for frame in (found[::-1] if last else found)[:MAX_PLACES]:
        at = max(0, frame.start() - MAX_LEAD_CHARS)
        lead = stack[at : frame.end()].rpartition("\n")[2]
        if not foreign.search(lead) and "://" not in lead.replace("file://", ""):
            return request.relative(frame["a"] or frame["c"]), int(frame["b"] or frame["d"])
    return None, None


def ends(text: str) -> str:
    """Return a text without its middle, where it is long."""
    return text if len(text) <= 2 * MAX_ENDS_CHARS else f"{text[:MAX_ENDS_CHARS]}\n{text[-MAX_ENDS_CHARS:]}"
