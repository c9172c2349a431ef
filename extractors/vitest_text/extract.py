"""Failed tests, suites and unhandled errors from what vitest prints on a terminal.

Its sections tell what failed and why. A run that was ended before it printed them has named the failed tests with
a cross while it went on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 2048
MESSAGE_LINES = 8
MAX_BODY_LINES = 200
MAX_BLOCKS = 2000
MAX_REASON_CHARS = 160

FAILED = re.compile(r"^Failed (?:Suites|Tests|Benchmarks|Typechecks) \d{1,9}$")
# Sections each of which is one failure that belongs to no test.
UNHANDLED = ("Unhandled Rejection", "Uncaught Exception", "Unhandled Error", "Unhandled Source Error")
STARTUP = "Startup Error"
RULE = "⎯"
# The pointer in front of a frame of the stack.
FRAME = " \u276f "
# What the runtime says of a passing state, after the call that it was in.
TRANSIENT = frozenset({"ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EADDRINUSE", "EAI_AGAIN", "EPIPE"})
UNPARSED = ("Parse fail", "Transform failed", "Unexpected token")

_HEADING = re.compile(r"^ FAIL {2}(?:\|[^|]{1,100}\| )?(\S.{0,2000})$")
_SUITE = re.compile(r"^(\S.{0,1000}) \[ \S.{0,1000} \]$")
_FILE = re.compile(r"^ \u276f (?:\|[^|]{1,100}\| )?(\S{1,1000}) \(\d{1,9} tests? \|")
_CROSS = re.compile(r"^ {1,60}[×✗] (\S.{0,2000}?)(?: \d[\d.]{0,9}m?s)?$")
_CLOSED = re.compile(r"⎯\[(\d{1,9})/(\d{1,9})\]⎯")
_TYPED = re.compile(r"^([A-Z]\w{0,100})(?: \[\w{1,60}\])?: (.{0,4000})$")
_FRAME = re.compile(r"^ \u276f (?:.{1,400} )?([^\s()]{1,600}):(\d{1,9}):(\d{1,9})$")
_CODE_FRAME = re.compile(r"^\s{0,24}\d{0,7} ?\|")
_ORIGIN = re.compile(r'^This error originated in "([^"]{1,600})" test file')
_FOREIGN = re.compile(r"node_modules/|node:|^<")
_SYSTEM = re.compile(r"^(?:connect|listen|read|write|bind|getaddrinfo) (E[A-Z_]{3,20})\b")
_MODULE = re.compile(
    r"^(?:Cannot find (?:module|package)|Failed to resolve import|Failed to load url) ['\"]?([^'\"\s]{1,300})"
)


@dataclass(slots=True)
class Block:
    """What one error says, and the tests that failed with it, or the heading of its section."""

    names: list[str]
    title: str
    first: Line
    last: Line
    body: list[str] = field(default_factory=list)


class Reader:
    """Cuts one stream into the blocks of its sections."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.crossed: dict[str, Line] = {}
        self.sections = False
        self.empty: Line | None = None
        self._in_failed = False
        self._file = ""
        self._block: Block | None = None

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text
        if title := _title(text):
            self._section(title, line)
        elif self._in_failed and (heading := _HEADING.match(text)):
            self._head(heading[1].rstrip(), line)
        elif self._block is not None:
            self._body(self._block, line)
        elif text.startswith("No test files found, exiting"):
            self.empty = line
        elif file := _FILE.match(text):
            self._file = file[1]
        elif (cross := _CROSS.match(text)) and len(self.crossed) < MAX_BLOCKS:
            name = cross[1] if " > " in cross[1] or not self._file else f"{self._file} > {cross[1]}"
            self.crossed.setdefault(name, line)

    def _section(self, title: str, line: Line) -> None:
        self._block = None
        self._in_failed = bool(FAILED.match(title))
        self.sections = self.sections or self._in_failed
        if title in (*UNHANDLED, STARTUP):
            self._open(Block([], title, line, line))

    def _head(self, name: str, line: Line) -> None:
        """Begin a block; headings that follow one another share what stands below."""
        if self._block is not None and not self._block.body:
            self._block.names.append(name)
        else:
            self._open(Block([name], "", line, line))

    def _open(self, block: Block) -> None:
        self._block = block if len(self.blocks) < MAX_BLOCKS else None
        if self._block is not None:
            self.blocks.append(self._block)

    def _body(self, block: Block, line: Line) -> None:
        closed = _CLOSED.search(line.text)
        if closed or (block.title and line.text.startswith(RULE * 8)):
            self._block = None
            # Behind the last failure a heading is somebody else's.
            self._in_failed = self._in_failed and not (closed and closed[1] == closed[2])
        elif len(block.body) < MAX_BODY_LINES:
            block.body.append(line.text.rstrip())
            if line.text.strip():
                block.last = line


def extract(request: Request) -> Answer:
    """Answer with the failed tests and suites of all streams, and with errors that nothing caught."""
    answer = Answer()
    readers = request.read(Reader)
    seen: set[str] = set()
    for reader in readers.values():
        for block in reader.blocks:
            _add(answer, request, block, seen)
        if not reader.sections:
            for name in [name for name in reader.crossed if name not in seen]:
                seen.add(name)
                answer.add("test", test_id=name, message="failed", evidence=[span(reader.crossed[name])])
        if reader.empty is not None:
            _add_diagnostic(answer, "vitest-no-tests", reader.empty.text.strip(), span(reader.empty))
    answer.findings = answer.findings[: request.max_findings]
    answer.drop_mixed_transience()
    return answer


def _add(answer: Answer, request: Request, block: Block, seen: set[str]) -> None:
    message, error_type = _message(block.body)
    first = message.partition("\n")[0]
    if block.title == STARTUP:
        return _add_diagnostic(answer, "vitest-startup", f"{error_type or 'Error'}: {message}", span(block.first))
    names = block.names or [f"{block.title}: {error_type or 'Error'}: {first[:MAX_REASON_CHARS]}"]
    for name in names:
        suite = _SUITE.match(name)
        test_id = suite[1] if suite else name
        if test_id in seen:
            continue
        seen.add(test_id)
        path, line, column = _location(request, block.body)
        answer.add(
            "diagnostic" if suite else "test",
            status="error" if suite or block.title else "failed",
            test_id=test_id,
            error_type=error_type,
            message=message or "failed without a message",
            path=path or (test_id.partition(" > ")[0] if block.names else None),
            line=line,
            column=column,
            evidence=[span(block.first, block.last)],
            cause=_cause(error_type, first, suite=bool(suite)),
        )
    return None


def _add_diagnostic(answer: Answer, code: str, message: str, evidence: dict[str, object]) -> None:
    first = message.partition("\n")[0]
    fix = "correct the arguments or the configuration of vitest"
    cause = {"kind": "deterministic", "rule": code, "evidence": first[:400], "fix": fix}
    answer.add("diagnostic", code=code, message=message, evidence=[evidence], cause=cause)


def _message(body: list[str]) -> tuple[str, str | None]:
    """Return the first paragraph of an error, and its type."""
    said: list[str] = []
    for text in body:
        if text.startswith((FRAME, RULE, "  File: ")) or _CODE_FRAME.match(text) or len(said) >= MESSAGE_LINES:
            break
        if text.strip():
            said.append(text)
        elif said:
            break
    typed = _TYPED.match(said[0]) if said else None
    if typed:
        said[0] = typed[2]
    return cut_bytes("\n".join(said).strip(), MAX_MESSAGE_BYTES), typed[1] if typed else None


def _location(request: Request, body: list[str]) -> tuple[str | None, int | None, int | None]:
    """Return the innermost frame that is in no library, else the test file that an unhandled error names."""
    for text in body:
        if (frame := _FRAME.match(text)) and not _FOREIGN.search(frame[1]):
            return request.relative(frame[1]), int(frame[2]), int(frame[3])
    origin = next((found[1] for text in body if (found := _ORIGIN.match(text))), None)
    return origin, None, None


def _cause(error_type: str | None, first: str, *, suite: bool) -> dict[str, str] | None:
    evidence = f"{error_type or 'Error'}: {first}"[:400]
    if module := _MODULE.match(first):
        fix = f"install the missing module '{module[1]}', or correct the import"
        return {"kind": "deterministic", "rule": "vitest-import", "evidence": evidence, "fix": fix}
    if suite and (error_type == "SyntaxError" or first.startswith(UNPARSED)):
        fix = "correct the syntax at the named line"
        return {"kind": "deterministic", "rule": "vitest-syntax", "evidence": evidence, "fix": fix}
    if (system := _SYSTEM.match(first)) and system[1] in TRANSIENT:
        return {"kind": "transient", "rule": "vitest-system-error", "evidence": evidence}
    return None


def _title(text: str) -> str:
    """Return what stands between two rules, as in ``⎯⎯⎯ Failed Tests 1 ⎯⎯⎯``; empty where nothing does."""
    if not text.startswith(RULE * 2) or not text.endswith(RULE) or len(text) > 1000:
        return ""
    title = text.strip(RULE)
    return title.strip() if title.startswith(" ") and title.endswith(" ") else ""


if __name__ == "__main__":
    main(extract)
