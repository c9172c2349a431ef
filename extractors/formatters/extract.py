"""Files that a formatter would change: named in a sentence, in a list, or only by the diff that is shown."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from kos_retry.sdk import Answer, Line, Request, Watch, main, span
from kos_retry.text.bounds import cut_bytes

MAX_NAME_BYTES = 200
# What is kept of a long output: its end, where the results stand.
MAX_LINES = 100_000

# Tools and options that print nothing but the names of such files.
_LISTERS = frozenset({"gofmt", "goimports", "gofumpt", "prettier", "terraform", "tofu", "shfmt", "stylua"})
_LISTING = frozenset({"-l", "-check", "--check", "--list", "--list-different", "-list"})

_SENTENCE = re.compile(
    r"^(?:(?P<would>[Ww]ould reformat):? (?P<path>\S.{0,400}?)|ERROR: (?P<sorted>\S.{0,400}?) Imports are incorrectly sorted and/or formatted\."
    r"|(?P<boxed>\S.{0,400}?) format \u2501{5,400})$"
)
_HEADING = "unformatted: File would be reformatted"
_ARROW = re.compile(r"^ {0,6}--> (\S.{0,400}?):(\d{1,9}):(\d{1,9})$")
_WARNED = re.compile(r"^\[warn\] (\S.{0,400})$")
_WARNED_END = re.compile(r"^(?:\[warn\] Code style issues|Error occurred when checking code style)")
_UNPARSED = re.compile(r"^\[error\] (\S.{0,400}?): (\w{0,40}Error: .{1,500}?) \((\d{1,9}):(\d{1,9})\)$")
_BROKEN = re.compile(
    r"^error: (cannot (?:parse|format)):? (?:for target version .{1,80}: )?(\S.{0,400}?):(?:(\d{1,9}):(\d{1,9})|\s(.{1,300}))$"
)
# The two names of a file in a diff that only a formatter makes.
_DIFF = re.compile(
    r"^\+\+\+ (?:(?:fixed|after|new)/(?P<below>\S.{0,400}?)|(?P<yapf>\S.{0,400}?)\t\(reformatted\)|(?P<isort>\S.{0,400}?):after\t.{0,60})$"
)
_ORIGINAL = re.compile(r"^diff (?:-\w{1,8} )?(\S{1,400})\.orig (\S{1,400})$")
_PLAIN_DIFF = re.compile(r"^\+\+\+ (\S[^\t]{0,400}?)$")
_COUNTED = re.compile(r"^\d{1,7} files? would be reformatted")
_LIST = re.compile(r"(?i)^.{0,120}\bfiles (?:had format violations|are not formatted(?: correctly)?|need formatting):$")
_LISTED = re.compile(r"^(?: {2,12}|\t)(?:[*-] )?([\w./@+-]{1,400}\.\w{1,12})$")
_FILE = re.compile(r"^[\w./@+-][\w ./@+-]{0,400}\.\w{1,12}$")

_READ = (
    *(
        _SENTENCE,
        _ARROW,
        _WARNED,
        _WARNED_END,
        _UNPARSED,
        _BROKEN,
        _DIFF,
        _ORIGINAL,
        _PLAIN_DIFF,
        _COUNTED,
        _LIST,
        _LISTED,
        _FILE,
    ),
    re.compile(f"^{_HEADING}$"),
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One file, what is said of it, and where."""

    path: str
    line: Line
    said: str = "would reformat"
    at: tuple[int | None, int | None] = (None, None)


def extract(request: Request) -> Answer:
    """Answer with each file once, in the words of its tool where it has any."""
    lines = list(deque(_spoken(request), maxlen=MAX_LINES))
    faults = [*_stated(lines), *_warned(lines), *_named_by_diff(lines), *_below_heading(lines)]
    if not faults and _lists(request):
        faults = [Fault(line.text.strip(), line) for line in lines if _FILE.match(line.text.strip())]
    answer = Answer()
    seen: set[str] = set()
    for fault in sorted(faults, key=lambda fault: (fault.line.source, fault.line.start)):
        path = request.relative(fault.path)
        if path not in seen and len(answer.findings) < request.max_findings:
            seen.add(path)
            _add(answer, path, fault)
    return answer


def _spoken(request: Request) -> Iterator[Line]:
    """Yield the lines that can matter, and of those between them the first: it ends a list."""
    watch = Watch(*_READ)
    seen = False
    for line in request.lines():
        sees = watch.sees(line)
        if sees or seen:
            yield line
        seen = sees


def _stated(lines: list[Line]) -> Iterator[Fault]:
    previous = ""
    for line in lines:
        text = line.text.rstrip()
        if said := _SENTENCE.match(text):
            yield Fault(said["path"] or said["sorted"] or said["boxed"], line, _words(said))
        elif (arrow := _ARROW.match(text)) and previous == _HEADING:
            yield Fault(arrow[1], line, at=(int(arrow[2]), int(arrow[3])))
        elif broken := _BROKEN.match(text):
            at = (int(broken[3]), int(broken[4])) if broken[3] else (None, None)
            yield Fault(broken[2], line, broken[1], at)
        elif (original := _ORIGINAL.match(text)) and original[1] == original[2]:
            yield Fault(original[2], line)
        previous = text


def _words(said: re.Match[str]) -> str:
    return "imports are incorrectly sorted" if said["sorted"] else "would reformat"


def _warned(lines: list[Line]) -> Iterator[Fault]:
    """Yield the files of a list whose last line says what it is a list of."""
    pending: list[Fault] = []
    for line in lines:
        text = line.text.rstrip()
        if _WARNED_END.match(text):
            yield from pending
            pending = []
        elif unparsed := _UNPARSED.match(text):
            yield Fault(unparsed[1], line, unparsed[2], (int(unparsed[3]), int(unparsed[4])))
        elif warned := _WARNED.match(text):
            pending.append(Fault(warned[1], line, "Code style issues"))


def _named_by_diff(lines: list[Line]) -> Iterator[Fault]:
    plain: list[Fault] = []
    told = False
    for line in lines:
        text = line.text.rstrip()
        if marked := _DIFF.match(text):
            yield Fault(marked["below"] or marked["yapf"] or marked["isort"], line)
        elif name := _PLAIN_DIFF.match(text):
            plain.append(Fault(name[1], line))
        told = told or bool(_SENTENCE.match(text))
        if _COUNTED.match(text) and not told:
            yield from plain
            plain = []


def _below_heading(lines: list[Line]) -> Iterator[Fault]:
    listing = False
    for line in lines:
        text = line.text.rstrip()
        listed = _LISTED.match(text) if listing else None
        if listed:
            yield Fault(listed[1], line)
        listing = bool(_LIST.match(text)) or (listing and (listed is not None or not text))


def _lists(request: Request) -> bool:
    words = {word.rpartition("/")[2] for word in request.argv}
    return bool(words & _LISTERS and words & _LISTING)


def _add(answer: Answer, path: str, fault: Fault) -> None:
    broken = bool(fault.at[0]) and fault.said != "would reformat"
    joint = " in " if fault.said.startswith(("Code style", "imports")) else " "
    name = f"{fault.said}{joint}{path}" if not broken else f"{path}: {fault.said}"
    cause = {
        "kind": "deterministic",
        "rule": "formatters-file",
        "evidence": cut_bytes(fault.line.text.strip(), 500),
        "fix": cut_bytes(f"correct {path}" if broken else f"run the formatter on {path}", 500),
    }
    answer.add(
        "diagnostic",
        code=cut_bytes(name, MAX_NAME_BYTES),
        message=name,
        path=path,
        line=fault.at[0],
        column=fault.at[1],
        evidence=[span(fault.line)],
        cause=cause,
    )


if __name__ == "__main__":
    main(extract)
