"""What a program or script itself states as its error: `error: …`, `x failed: …`, `name: …`.

Anybody may write such a line, and go on: among the last words of the output it is what ended it, elsewhere only one that
is marked as an error counts.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_NAME_BYTES = 200
# More lines than this behind a statement mean that the program went on.
LAST_WORDS = 5
# Statements that stand together, and errors that parallel work states.
MAX_TOGETHER = 5
MAX_MARKED = 10
# A longer one explains something, and is no error.
MAX_SAID = 300
# Where several streams say something, the first of these is read.
PREFERENCE = ("stderr", "output", "stdout")

_LEVEL = re.compile(
    r"^(?:\[[^\]]{1,60}\]:? ?|\d{4}-\d\d-\d\d[T ][\d:.,+Z-]{5,20}:? |[\d:.,]{8,15} |[\w@./+-]{1,40}(?:: | \| )){0,3}\W{0,3}"
    r"(?:ERROR|FATAL|CRITICAL|PANIC|SEVERE|[Ee]rror|[Ff]atal(?: error)?|[Pp]anic)(?:\[[\w.-]{1,20}\])?(?:\]?:| -|\])\s{1,4}(?P<said>\S.{3,600})$"
)
# What every one of these holds: most lines of a long log are not looked at again.
_MARKS = re.compile(r"rror|RROR|atal|ATAL|anic|ANIC|CRITICAL|SEVERE")
_FAILED = re.compile(
    r"^(?P<said>[\w@/.' -]{2,120} failed(?: with .{1,60})?: \S.{2,400}|(?:[\w@./+-]{1,40}: )?(?:Failed|Unable|Could not|Couldn't|Cannot|Can't) (?:to )?\S.{4,400})$"
)
_NAMED = re.compile(r"^(?P<said>[A-Za-z][\w@./+-]{0,60}(?: [\w@./+-]{1,30}){0,2}: \S.{3,400})$")
_REFUSES = re.compile(
    r"(?i)\b(?:can't|cannot|could not|unable to|not found|denied|refused|mismatch|unexpected|no such|does not exist|is not|has not been"
    r"|already exists|out of sync|not in|timed out|expired|exceeded|unknown|unrecognized|invalid|missing|required|failed)\b"
)
_USAGE = re.compile(
    r"(?i)\b(?:unknown (?:shorthand )?(?:flag|option|argument|command|subcommand)|unrecognized (?:arguments?|options?|subcommand)|invalid option"
    r"|no such (?:option|command)|unexpected argument|flag provided but not defined|the following (?:required )?arguments (?:are|were) )"
)
# What waits for something that is not there yet, or is not there now.
_AWAITED = re.compile(
    r"(?i)\bnot (?:yet )?(?:ready|healthy|responding|accepting connections|up)(?: yet)?\W{0,3}$|\bnot (?:yet )?(?:ready|healthy) (?:after|within|in|yet)\b"
    r"|\bdid(?: not|n't) (?:become|get|come|turn) (?:ready|healthy|available|up|online)\b|\btemporarily (?:unavailable|unreachable|offline|disabled)\b"
    r"|\b(?:timed out|gave up|giving up) (?:while )?waiting (?:for|on)\b|\b(?:is|still) (?:starting|warming|booting) up\b|\b(?:please )?try again later\b"
    r"|\bunder maintenance\b|\b(?:lock|resource|database) is (?:held|locked) by\b|\banother (?:instance|process) (?:is running|holds|has locked)\b"
)
# What is told all the same, and what only passes a failure on.
_BENIGN = re.compile(
    r"(?i)^\W{0,3}(?:warn(?:ing)?|info|notes?|debug|trace|hint|usage|done|ok|total|elapsed|time|real|user|sys|tip|notice|see|ran|finished|coverage|duration"
    r"|version|summary|results?|tests?|https?|file|line|running|building|checking|using|step|run|at|try|for)\b"
    # Headers of a protocol say something about an answer, and are no statement.
    r"|^(?:< ?)?(?:x-[\w-]{1,60}|content-\w{1,20}|retry-after|set-cookie|cf-ray|www-authenticate|etag|expires|location|server|via|age): "
    r"|\b(?:handled|ignor(?:ed|ing)|retrying|will retry|skipp(?:ed|ing)|continuing|non-fatal)\b|\bok\W{0,3}$"
)
_PASSED_ON = re.compile(
    r"(?i)\b(?:exit(?:ed)?|returned|status|code)\b.{0,40}[ :=(]-?\d{1,3}\W{0,3}$|not recoverable|delayed from previous errors|\bexiting\b|command failed"
    r"|^(?:build|run|job|task|process|script|step) failed\b.{0,16}$|\bsee (?:previous|.{0,40}\b(?:log|above))|\bre-?run\b|for (?:details|more information)"
    r"|please (?:read|see|refer)|\[Help \d|deprecat|\bfuture (?:versions?|releases?)\b"
)
# What runs a script says below that it failed; those are nobody's last words.
_TRAILER = re.compile(
    r"^(?:npm (?:error|ERR!|notice|warn|info)\b|error Command failed|info Visit |\s?(?:ELIFECYCLE|WARN)\s|g?make(?:\[\d{1,4}\])?: |Process completed)"
)
# A stack is its runtime's to read.
_FRAME = re.compile(r"^\s{1,40}(?:at |from |File \"|in )|^\s{0,8}#\d{1,4}\s|^Caused by: |^\s{1,20}\.\.\. \d{1,5} ")


@dataclass(slots=True)
class Stream:
    """The end of one stream, and the errors that are marked as such anywhere in it."""

    last: deque[Line] = field(default_factory=lambda: deque(maxlen=LAST_WORDS + MAX_TOGETHER))
    marked: dict[str, Line] = field(default_factory=dict)
    # Whether there is a stack; the last words are those below it.
    stack: bool = False

    def feed(self, line: Line) -> None:
        """Take the next line."""
        text = line.text.rstrip()
        if not text or _TRAILER.match(text):
            return
        self.last.append(line)
        if text[0] in " \t#." or text.startswith("Caused by: "):
            if _FRAME.match(text):
                self.stack = True
                self.last.clear()
        elif len(self.marked) < MAX_MARKED and _MARKS.search(text):
            level = _LEVEL.match(text)
            if level and _tells(text, level["said"]):
                self.marked.setdefault(level["said"], line)


def extract(request: Request) -> Answer:
    """Answer with what the first stream that states anything states."""
    streams = request.read(Stream)
    answer = Answer()
    for source in sorted(streams, key=lambda name: PREFERENCE.index(name) if name in PREFERENCE else len(PREFERENCE)):
        for said, line in _statements(streams[source]):
            _add(answer, said, line)
        if answer.findings:
            break
    return answer


def _statements(stream: Stream) -> list[tuple[str, Line]]:
    """Return the last words if they are marked as an error, else the marked ones anywhere, else the last words that refuse.

    Where there is a stack, only what is marked as an error below it.
    """
    lines = list(stream.last)
    strong = _last(lines, strong=True)
    if stream.stack:
        return strong
    return strong or [*stream.marked.items()] or _last(lines, strong=False)


def _last(lines: list[Line], *, strong: bool) -> list[tuple[str, Line]]:
    """Return the last statement, and those that stand right before it."""
    ends = range(len(lines) - 1, max(-1, len(lines) - 1 - LAST_WORDS), -1)
    end = next((n for n in ends if _stated(lines[n].text, strong=strong)), None)
    if end is None:
        return []
    together: list[tuple[str, Line]] = []
    for line in lines[end::-1]:
        said = _stated(line.text, strong=True) or _stated(line.text, strong=False)
        # One that only has the shape may tell of anything, as often as it liked.
        if not said or (together and not _refuses(line.text)) or len(together) == MAX_TOGETHER:
            break
        together.append((said, line))
    return together[::-1]


def _stated(text: str, *, strong: bool) -> str:
    """Return what a line states as an error, or nothing."""
    text = text.rstrip()
    found = (_LEVEL.match(text) or _FAILED.match(text)) if strong else _NAMED.match(text)
    said = found["said"] if found else text if not strong and text[:1].strip() and _REFUSES.search(text) else ""
    return said if said and _tells(text, said) else ""


def _refuses(text: str) -> bool:
    return bool(_REFUSES.search(text) or _stated(text, strong=True))


def _tells(text: str, said: str) -> bool:
    told = len(said.split()) > 1 and len(said) <= MAX_SAID and not said.endswith(":")
    return told and not any(words.search(part) for words in (_BENIGN, _PASSED_ON) for part in (text, said))


def _add(answer: Answer, said: str, line: Line) -> None:
    name = cut_bytes(said.strip(), MAX_NAME_BYTES)
    answer.add("diagnostic", code=name, message=name, evidence=[span(line)], cause=_cause(said, name))


def _cause(said: str, evidence: str) -> dict[str, str] | None:
    if _USAGE.search(said):
        fix = "correct the command line"
        return {"kind": "deterministic", "rule": "stated-usage", "evidence": evidence, "fix": fix}
    if _AWAITED.search(said):
        return {"kind": "transient", "rule": "stated-not-ready", "evidence": evidence}
    return None


if __name__ == "__main__":
    main(extract)
