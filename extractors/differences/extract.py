"""Files that differ: a diff is the whole failure of a check against what was expected."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_NAME_BYTES = 200
MAX_KEPT = 500

_OLD = re.compile(r"^(?:---|\*\*\*) (?:a/)?(\S[^\t]{0,400}?)(?:\t.{0,60}| \d{4}-\d\d-\d\d .{0,40})?$")
_NEW = re.compile(r"^(?:\+\+\+|---) (?:b/)?(\S[^\t]{0,400}?)(?:\t.{0,60}| \d{4}-\d\d-\d\d .{0,40})?$")
_HUNK = re.compile(r"^@@ -\d{1,9}(?:,\d{1,9})? \+\d{1,9}(?:,\d{1,9})? @@")
_EDIT = re.compile(r"^\d{1,9}(?:,\d{1,9})?[acd]\d{1,9}(?:,\d{1,9})?$")
_COMMAND = re.compile(r"^diff (?:-\S{1,40} ){0,8}(\S{1,400}) (\S{1,400})$")
_SAID = re.compile(
    r"^(?:Only in (?P<directory>\S.{0,400}?): (?P<only>\S.{0,300})|(?:Binary files|Files) (?P<old>\S.{0,400}?) and (?P<new>\S.{0,400}?) differ)$"
)


@dataclass(slots=True)
class Difference:
    """Two files, and the first line of each that the other has not."""

    old: str
    new: str
    first: Line
    last: Line
    gone: str = ""
    come: str = ""
    said: str = ""

    def name(self) -> str:
        """Return what differs, with the first lines that do."""
        alone = self.new in (self.old, "/dev/null")
        files = f"{self.old} differs" if alone else f"{self.old} and {self.new} differ"
        shown = " ".join(f"{sign}{text}" for sign, text in (("-", self.gone), ("+", self.come)) if text)
        return self.said or f"{files}: {shown}".rstrip(": ")


def extract(request: Request) -> Answer:
    """Answer with each pair of files that differ."""
    answer = Answer()
    seen: set[str] = set()
    for found in _differences(request)[: request.max_findings]:
        name = cut_bytes(found.name(), MAX_NAME_BYTES)
        if name not in seen:
            seen.add(name)
            path = request.relative(found.old) if found.old not in ("", "/dev/null") else None
            answer.add("diagnostic", code=name, message=name, path=path, evidence=[span(found.first, found.last)])
    return answer


def _differences(request: Request) -> list[Difference]:
    found: list[Difference] = []
    inside: Difference | None = None
    command: tuple[str, str] = _operands(request.argv)
    before: Line | None = None
    names: tuple[str, str, Line] | None = None
    for line in request.lines():
        text = line.text.rstrip()
        if len(found) >= MAX_KEPT:
            break
        if said := _SAID.match(text):
            found.append(Difference(said["old"] or said["only"], said["new"] or "", line, line, said=text))
            inside = None
        elif _HUNK.match(text) and names is not None:
            inside = Difference(names[0], names[1], names[2], line)
            found.append(inside)
            names = None
        elif called := _COMMAND.match(text):
            command, inside = (called[1], called[2]), None
        elif _EDIT.match(text) and all(command):
            inside = Difference(*command, line, line)
            found.append(inside)
            command = ("", "")
        elif inside is not None and text[:1] in "-<+>" and text[:3] not in ("---", "+++"):
            _take(inside, text, line)
        elif before is not None and (old := _OLD.match(before.text.rstrip())) and (new := _NEW.match(text)):
            names, inside = (old[1], new[1], before), None
        before = line
    return found


def _operands(argv: list[str]) -> tuple[str, str]:
    """Return the two files that a diff was asked for, as far as the command tells."""
    words = [word for word in argv[1:] if not word.startswith("-")]
    tool = argv[0].rpartition("/")[2] if argv else ""
    return (words[0], words[1]) if tool == "diff" and len(words) == 2 else ("", "")


def _take(found: Difference, text: str, line: Line) -> None:
    # What is not text says nothing.
    if "\ufffd" in text:
        return
    if text[:1] in "-<" and not found.gone:
        found.gone = text[1:].strip()
        found.last = line
    elif text[:1] in "+>" and not found.come:
        found.come = text[1:].strip()
        found.last = line


if __name__ == "__main__":
    main(extract)
