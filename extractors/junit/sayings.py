"""What is said of a failure: the type of the error, the message, and the place."""

from __future__ import annotations

import re

from reader import Case, Fault
from source import ESCAPE

from kos_retry.sdk import Request
from kos_retry.text.bounds import cut_bytes
from kos_retry.text.escapes import plain_text

MAX_MESSAGE_BYTES = 2048
MESSAGE_LINES = 8
# What is looked at to place a failure: its stack begins or ends with what counts.
MAX_PLACES = 200
MAX_ENDS_CHARS = 8 * 1024
# How far before a place what it belongs to is looked for.
MAX_LEAD_CHARS = 400

# A `type` or `message` that only repeats that the test failed.
SAYS_NOTHING = frozenset({"", "failed", "failure", "error", "testcodefailure", "collection failure", "test error"})

# How the line of an exception group ends.
GROUP = ("sub-exceptions)", "sub-exception)")

_TYPE = re.compile(
    r"^[ \t]{0,8}(?:E {3,12})?"
    r"((?:[^\W\d][\w.$\\]{0,160})?(?:Error|Exception|ExceptionGroup|Failure|Failed))(?: \[\w{1,64}\])?(?::|$)",
    re.MULTILINE,
)
_PYTHON_END = re.compile(r"^([^\s:][^:\n]{0,400}):(\d{1,9}): ?([^\W\d][\w.]{0,160})?$", re.MULTILINE)
_PHASE = re.compile(r'^failed on (?:setup|teardown|call) with "(.*?)"?$', re.DOTALL)
_LEAF = re.compile(r"^[ |]{1,64}\| ([^\W\d][\w.]{0,160}: .{0,400})", re.MULTILINE)
_MARGIN = re.compile(r"^E {3,12}(.*)", re.MULTILINE)
# A line that says where, and nothing else.
_PLACE = re.compile(
    r"^(?:\S{1,400}:\d{1,9}|unknown file|\(in test file .{1,400}, line \d{1,9}\)"
    r"|thread '.{0,400}' (?:\(\d{1,12}\) )?panicked at \S{1,400}:\d{1,9}:\d{1,9}:?)$"
)
# Lines of a failure's text that say nothing: a bare place, Go's own marks.
_NOISE = re.compile(r"^(?:\S{1,400}:\d{1,9}$|=== |--- FAIL|note: run with )")
# Where in a stack: `File "x", line 7`, `in test file x, line 7`, `(x:7:1)`, `at x:7`, `x:7:`.
_FRAME = re.compile(
    r"""(?:[Ff]ile "?(?P<a>[^\s",]{1,400})"?, line (?P<b>\d{1,9}))"""
    r"""|(?:(?:^|[\s(\[])(?:file://)?(?P<c>[^\s()\[\]:"']{1,400}\.\w{1,6}):(?P<d>\d{1,9})\b)""",
    re.MULTILINE,
)
_FOREIGN = re.compile(
    r"node_modules/|node:|site-packages/|dist-packages/|/lib/python\d|vendor/|<frozen "
    r"|\bat (?:[\w.@-]{1,80}/{1,2})?"
    r"(?:java|javax|jdk|sun|kotlin|scala|junit|org\.(?:junit|opentest4j|assertj|hamcrest|mockito|gradle|apache\.maven))\b"
)


def texts_of(fault: Fault) -> tuple[str, str]:
    """Return the message and the text of a fault as a terminal would show them, the text without its middle."""
    return _plain(fault.attributes.get("message", "")).strip(), _plain(_ends("".join(fault.text)))


def told_by(case: Case, fault: Fault, said: str, text: str) -> tuple[str | None, str]:
    """Return the type and the message of a fault."""
    if said.endswith(GROUP) and (leaves := [leaf for leaf in _LEAF.findall(text) if not leaf.endswith(GROUP)]):
        # What a group holds is what failed: one that is no assertion first.
        leaves.sort(key=lambda leaf: leaf.startswith("AssertionError"))
        error_type, _, first = leaves[0].partition(": ")
        return error_type, _bounded([first, *leaves[1:], said])
    given = fault.attributes.get("type", "").strip()
    error_type = _error_type(case, given, said, text)
    message = _message(case, said, text).removeprefix(f"{error_type}: ")
    # A type that is no name is all that some say.
    return error_type, message or (given if " " in given else "")


def _ends(text: str) -> str:
    return text if len(text) <= 2 * MAX_ENDS_CHARS else f"{text[:MAX_ENDS_CHARS]}\n{text[-MAX_ENDS_CHARS:]}"


def _plain(text: str) -> str:
    """Return ``text`` without terminal escapes, also those that were made printable for XML's sake."""
    return plain_text(text.replace("#x1B[", "\x1b[").replace(f"{ESCAPE}[", "\x1b["))


def _error_type(case: Case, given: str, said: str, text: str) -> str | None:
    if given.lower() not in SAYS_NOTHING and " " not in given:
        return given
    if case.tool == "pytest" and (ends := [m[2] for m in _PYTHON_END.findall(text) if m[2]]):
        qualified = _TYPE.match(said)
        return qualified[1] if qualified and qualified[1].endswith(ends[-1]) else str(ends[-1])
    found = _TYPE.search(said) or _TYPE.search(text)
    return found[1] if found else None


def _message(case: Case, said: str, text: str) -> str:
    """Return what the report says, bounded: the attribute, else the lines of the text before any stack."""
    if phase := _PHASE.match(said):
        said = phase[1] if phase[1].count("\n") == 0 else ""
    if said.lower() in SAYS_NOTHING or _PLACE.match(said):
        marked = "\n".join(_MARGIN.findall(text)).strip()
        typed = _TYPE.search(marked)
        said = marked[typed.start() if typed else 0 :].strip() or "\n".join(_before_stack(case, text))
    if not said and case.told_by_output:
        said = next((x for x in reversed(_plain(case.output).splitlines()) if x.strip()), "")
    lines = said.splitlines()
    return _bounded(lines[1:] if len(lines) > 1 and _PLACE.match(lines[0]) else lines)


def _bounded(lines: list[str]) -> str:
    return cut_bytes("\n".join(lines[:MESSAGE_LINES]).strip(), MAX_MESSAGE_BYTES)


def _before_stack(case: Case, text: str) -> list[str]:
    kept: list[str] = []
    for line in (x.strip() for x in text.splitlines()):
        # Some repeat the message with the type in front, before the stack.
        if kept and (line.startswith("at ") or line.endswith(": " + kept[0]) or len(kept) >= MESSAGE_LINES):
            break
        named = case.classname and line.startswith(case.classname) and case.name in line
        if line and not named and not _NOISE.match(line):
            kept.append(line)
    return kept


def location_of(request: Request, case: Case, text: str) -> tuple[str | None, int | None]:
    """Return the first own place that the text names (the last of pytest's), else what the attributes say."""
    places = list(_FRAME.finditer(text))
    if case.tool == "pytest":
        places.reverse()
    for place in places[:MAX_PLACES]:
        at = max(0, place.start() - MAX_LEAD_CHARS)
        lead = text[at : place.end()].rpartition("\n")[2]
        if not _FOREIGN.search(lead) and "://" not in lead.replace("file://", ""):
            return request.relative(place["a"] or place["c"]), int(place["b"] or place["d"])
    if not case.file:
        return None, None
    # pytest counts from 0 here.
    return request.relative(case.file), case.line + 1 if case.line is not None and case.tool else case.line
