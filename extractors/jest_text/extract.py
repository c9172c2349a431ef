"""Failed tests and suites from what jest prints on a terminal.

A block that begins with a bullet tells of one failure; the list with crosses names the failed tests where no blocks
follow. What tests print is indented deeper than a heading of jest's own, and so never taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 2048
MESSAGE_LINES = 8
MAX_TITLE_CHARS = 400
MAX_BODY_LINES = 200
MAX_BLOCKS = 2000
MAX_REASON_CHARS = 160

SUITE = "Test suite failed to run"
JOINT = " › "
# Headings that tell of no failure of a test.
OTHER = ("Console", "Deprecation Warning", "Validation Warning", "Multiple configurations found")
USAGE = ("Unrecognized CLI Parameter", "Validation Error", "Multiple CLI Errors")
# What the runtime says of a passing state, after the call that it was in.
TRANSIENT = frozenset({"ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EADDRINUSE", "EAI_AGAIN", "EPIPE"})

_FILE = re.compile(r"^ ?(FAIL|PASS) {1,2}(\S.{0,1000})$")
_EXTRA = re.compile(r"(?: \([^()]{1,40}\)){1,3}$")
_HEADING = re.compile(r"^(?:  )?● (\S.{0,4000})$")
_CROSS = re.compile(r"^( {2,60})✕ (\S.{0,2000}?)(?: \(\d[\d.]{0,9} m?s\))?$")
_NAME = re.compile(r"^( {2,60})([^\s✓✕○✎›].{0,2000})$")
_END = re.compile(r"^(?:Test Suites: |Tests: {2}|Snapshots: {2}|Snapshot Summary|Summary of all failing tests| › \d)")
_FRAME = re.compile(r"^\s{4,16}at (?:.{1,400} \()?([^()\s]{1,600}):(\d{1,9}):(\d{1,9})\)?$")
_CODE_FRAME = re.compile(r"^\s{4,24}(?:> )?\d{0,7} \|")
_TYPED = re.compile(r"^([A-Z]\w{0,100}(?:Error|Exception)|Error)(?: \[\w{1,60}\])?: (.{0,4000})$")
_PARSER = re.compile(r"^(\S{1,600}): (.{1,1000}) \((\d{1,9}):(\d{1,9})\)$")
_SYSTEM = re.compile(r"^(?:connect|listen|read|write|bind|getaddrinfo) (E[A-Z_]{3,20})\b")
_FOREIGN = re.compile(r"node_modules/|^node:|^<")
_MODULE = re.compile(r"^Cannot find module '([^']{1,300})'")


@dataclass(slots=True)
class Block:
    """One failure: the file that it is in, its heading, and the lines below."""

    path: str
    title: str
    first: Line
    last: Line
    body: list[str] = field(default_factory=list)

    def feed(self, line: Line) -> None:
        """Take the next line of the block."""
        if len(self.body) < MAX_BODY_LINES:
            self.body.append(line.text.rstrip())
            if line.text.strip():
                self.last = line


class Reader:
    """Cuts one stream into blocks, and keeps the crossed tests of each file."""

    def __init__(self) -> None:
        self.blocks: dict[tuple[str, str], Block] = {}
        self.crossed: dict[tuple[str, str], Block] = {}
        self._path = ""
        self._suites: list[tuple[int, str]] = []
        self._block: Block | None = None

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text
        if file := _FILE.match(text):
            self._path = _path(file[2]) if file[1] == "FAIL" else ""
            self._suites, self._block = [], None
        elif heading := _HEADING.match(text):
            self._open(heading[1].strip(), line)
        elif _END.match(text):
            self._block = None
        elif self._block is not None:
            self._block.feed(line)
        else:
            self._list(line)

    def _open(self, title: str, line: Line) -> None:
        own = not line.text.startswith("●") or title.startswith(USAGE)
        self._block = Block(self._path, title, line, line)
        if own and not title.startswith(OTHER) and len(self.blocks) < MAX_BLOCKS:
            self.blocks.setdefault((self._path, title), self._block)

    def _list(self, line: Line) -> None:
        """Read a line of the list of tests, in which indentation tells the suites that one is in."""
        cross = _CROSS.match(line.text)
        found = cross or _NAME.match(line.text)
        if not found:
            return
        depth = len(found[1])
        self._suites = [suite for suite in self._suites if suite[0] < depth][-16:]
        if cross is None:
            self._suites.append((depth, found[2]))
        elif len(self.crossed) < MAX_BLOCKS:
            title = JOINT.join([*(name for _, name in self._suites), cross[2]])
            self.crossed.setdefault((self._path, title), Block(self._path, title, line, line))

    def failures(self) -> Iterator[Block]:
        """Yield the blocks, then the crossed tests of the files that have none."""
        yield from self.blocks.values()
        told = {path for path, _ in self.blocks}
        yield from (block for (path, _), block in self.crossed.items() if path not in told)


def extract(request: Request) -> Answer:
    """Answer with the failed tests and suites of all streams, and with why jest did not run any."""
    answer = Answer()
    readers = request.read(Reader)
    for line in request.lines():
        if line.text.startswith("No tests found, exiting with code"):
            _add_usage(answer, line, "jest-no-tests", line.text.strip())
    failures = {(b.path, b.title): b for reader in readers.values() for b in reader.failures()}
    files: dict[str, set[str]] = {}
    for block in failures.values():
        files.setdefault(block.title, set()).add(block.path)
    for block in list(failures.values())[: request.max_findings - len(answer.findings)]:
        _add(answer, request, block, ambiguous=len(files[block.title]) > 1)
    answer.drop_mixed_transience()
    return answer


def _add(answer: Answer, request: Request, block: Block, *, ambiguous: bool) -> None:
    suite, file = block.title == SUITE, request.relative(block.path)
    message, error_type = _message(block, suite=suite)
    if block.title.startswith(USAGE):
        return _add_usage(answer, block.first, "jest-usage", message or block.title)
    path, line, column = _location(request, block, file)
    if error_type == "SyntaxError" and (place := _PARSER.match(message.partition("\n")[0])):
        path, line, column = request.relative(place[1]), int(place[3]), int(place[4]) + 1
        message = place[2]
    name = f"{file}{JOINT}{block.title}" if ambiguous else block.title
    if suite:
        reason = message.partition("\n")[0][:MAX_REASON_CHARS]
        name = f"{file}: {reason}" if file and reason else file or reason or SUITE
    return answer.add(
        "diagnostic" if suite else "test",
        status="error" if suite else "failed",
        test_id=name,
        error_type=error_type,
        message=message or block.title,
        path=path,
        line=line,
        column=column,
        evidence=[span(block.first, block.last)],
        cause=_cause(error_type, message, suite=suite),
    )


def _add_usage(answer: Answer, line: Line, code: str, message: str) -> None:
    cause = {
        "kind": "deterministic",
        "rule": code,
        "evidence": message.partition("\n")[0][:MAX_TITLE_CHARS],
        "fix": "correct the arguments or the configuration of jest",
    }
    if not any(finding.get("code") == code for finding in answer.findings):
        answer.add("diagnostic", code=code, message=message, evidence=[span(line)], cause=cause)


def _message(block: Block, *, suite: bool) -> tuple[str, str | None]:
    """Return what a block says before its excerpt of the source and its stack, and the type of the error."""
    body = block.body
    if suite and "    Details:" in body:
        body = body[body.index("    Details:") + 1 :]
    said: list[str] = []
    for text in body:
        if _CODE_FRAME.match(text) or _FRAME.match(text) or len(said) >= MESSAGE_LINES:
            break
        if text.strip():
            said.append(text.removeprefix("    "))
    typed = _TYPED.match(said[0]) if said else None
    if typed:
        said[0] = typed[2]
    return cut_bytes("\n".join(said).strip(), MAX_MESSAGE_BYTES), typed[1] if typed else None


def _location(request: Request, block: Block, file: str) -> tuple[str | None, int | None, int | None]:
    """Return the innermost frame that is in no library, else the file alone."""
    for text in block.body:
        if (frame := _FRAME.match(text)) and not _FOREIGN.search(frame[1]):
            return request.relative(frame[1]), int(frame[2]), int(frame[3])
    return file or None, None, None


def _cause(error_type: str | None, message: str, *, suite: bool) -> dict[str, str] | None:
    first = message.partition("\n")[0][:MAX_TITLE_CHARS]
    if module := _MODULE.match(first):
        fix = f"install the missing module '{module[1]}', or correct the import"
        return {"kind": "deterministic", "rule": "jest-import", "evidence": first, "fix": fix}
    if suite and error_type == "SyntaxError":
        fix = "correct the syntax at the named line, or have jest transform the file"
        return {"kind": "deterministic", "rule": "jest-syntax", "evidence": f"{error_type}: {first}", "fix": fix}
    if suite and ("error TS" in message or first.startswith("Your test suite must contain at least one test")):
        return {"kind": "deterministic", "rule": "jest-suite", "evidence": first}
    if (system := _SYSTEM.match(first)) and system[1] in TRANSIENT:
        return {"kind": "transient", "rule": "jest-system-error", "evidence": first}
    return None


def _path(text: str) -> str:
    """Return the path in what follows FAIL: before it may stand a project's name, after it a duration."""
    words = _EXTRA.sub("", text.rstrip()).split(" ")
    return words[-1] if "/" in words[-1] or "." in words[-1] else " ".join(words)


if __name__ == "__main__":
    main(extract)
