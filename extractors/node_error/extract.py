"""Errors that end a node process: what was thrown, its code, and where in the own code.

An error that nothing caught is printed below the line that threw it. One that was caught and printed is a guess,
unless it is the last thing that a failed run said.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field

from kos_retry.sdk import Answer, Line, Request, Watch, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 2048
MESSAGE_LINES = 8
# More lines than this before a stack are no message: some other text came between.
MAX_SAID = 60
MAX_LINES = 200
MAX_ERRORS = 400
MAX_SOURCE_LINES = 6
# What a wrapper says after the program that died: more lines than this mean that it went on.
LAST_WORDS = 10

IMPORTS = frozenset(
    {
        "MODULE_NOT_FOUND",
        "ERR_MODULE_NOT_FOUND",
        "ERR_REQUIRE_ESM",
        "ERR_PACKAGE_PATH_NOT_EXPORTED",
        "ERR_PACKAGE_IMPORT_NOT_DEFINED",
        "ERR_UNSUPPORTED_DIR_IMPORT",
        "ERR_UNKNOWN_FILE_EXTENSION",
    }
)
# What the system and the runtime say of themselves: kind, rule, what a human must do.
SYSTEM = {
    "ECONNREFUSED": ("transient", "connection-refused", ""),
    "ECONNRESET": ("transient", "connection-reset", ""),
    "ECONNABORTED": ("transient", "connection-aborted", ""),
    "EPIPE": ("transient", "connection-reset", ""),
    "ETIMEDOUT": ("transient", "connection-timeout", ""),
    "ENETUNREACH": ("transient", "network-unreachable", ""),
    "EHOSTUNREACH": ("transient", "network-unreachable", ""),
    "EAI_AGAIN": ("transient", "name-resolution", ""),
    "ENOTFOUND": ("transient", "name-resolution", ""),
    "EADDRINUSE": ("transient", "address-in-use", ""),
    "EBUSY": ("transient", "resource-busy", ""),
    "UND_ERR_CONNECT_TIMEOUT": ("transient", "connection-timeout", ""),
    "UND_ERR_HEADERS_TIMEOUT": ("transient", "connection-timeout", ""),
    "UND_ERR_BODY_TIMEOUT": ("transient", "connection-timeout", ""),
    "UND_ERR_SOCKET": ("transient", "connection-reset", ""),
    "ENOSPC": ("environment", "disk-full", "free disk space, or write to another disk"),
    "EROFS": ("environment", "read-only", "write to a directory that is not mounted read-only"),
    "EMFILE": ("resource", "open-files", "close files earlier, or raise the limit of open files"),
}
HEAP = "JavaScript heap out of memory"
RUNNER = r"^ ?(?:Exception during run: )?"

_HEADER = re.compile(RUNNER + r"((?:file://|node:|/|[A-Za-z]:[\\/]).{0,600}?):(\d{1,9})$")
_CARET = re.compile(r"^[ \t]{0,4000}\^{1,400} {0,8}$")
_HEADING = re.compile(
    RUNNER + r"\[?(?:Uncaught )?([A-Za-z_$][\w.$]{0,100})(?: \[(\w{1,60})\])?(?:: ([^\n]{0,4000}?))?\]?(?: \{)?$"
)
_FRAME = re.compile(r"^ {4,8}at (?:.{1,400} \()?(?:file://)?([^()\s]{1,600}):(\d{1,9}):(\d{1,9})\)?(?: \{|,)?$")
_AT = re.compile(r"^    at \S")
_CODE = re.compile(r"^ {2,24}code: '([A-Z][A-Z0-9_]{2,60})'")
_CAUSED = re.compile(r"^ {2,24}\[cause\]: (\S.{0,400}?)(?: \{)?$")
_VERSION = re.compile(r"^Node\.js v\d")
_OPTION = re.compile(r"^\S{1,300}: (bad option: \S{1,200})$")
_SPAWN = re.compile(r"^spawn (\S{1,200}) ENOENT")
_MODULE = re.compile(r"^Cannot find (?:module|package) '([^']{1,300})'")
_IMPORTER = re.compile(r" imported from (?:file://)?(/[^\s]{1,600})$")
_FOREIGN = re.compile(r"node_modules/|node:|^<|^evalmachine")


@dataclass(slots=True)
class Thrown:
    """One error as it was printed; ``thrower`` is the line that threw it, known where nothing caught it."""

    first: Line
    last: Line
    thrower: tuple[str, int] | None
    type: str = ""
    said: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    frames: list[tuple[str, int, int]] = field(default_factory=list)
    caused: str = ""
    stacked: bool = False
    lines: int = 0

    @property
    def code(self) -> str:
        """Return the code that the error itself has, or the first of those that caused it."""
        return next((code for code in self.codes if code != "Error"), "")


class Reader:
    """Cuts the errors out of one stream."""

    def __init__(self) -> None:
        self.errors: deque[Thrown] = deque(maxlen=MAX_ERRORS)
        self.troubles: list[tuple[Line, str]] = []
        self.lines_since = 0
        self._thrower: tuple[str, int] | None = None
        self._header: Line | None = None
        self._source_lines = 0
        self._pointed = False
        self._open: Thrown | None = None
        self._watch = Watch(re.compile(HEAP), _OPTION, _HEADER, _HEADING)

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text.rstrip()
        self.lines_since += bool(text)
        if self._open is None and self._header is None and not self._watch.sees(line):
            return
        if self._open is not None and self._continue(self._open, text, line):
            return
        self._open = None
        if self._header is None or not self._source(text, line):
            self._begin(text, line)

    def _begin(self, text: str, line: Line) -> None:
        if HEAP in text or _OPTION.match(text):
            self.troubles = [*self.troubles[:8], (line, text)]
        elif header := _HEADER.match(text):
            self._header, self._thrower = line, (header[1], int(header[2]))
            self._source_lines, self._pointed = 0, False
        elif heading := _HEADING.match(text):
            self._open = Thrown(line, line, None)
            self._head(self._open, heading)

    def _source(self, text: str, line: Line) -> bool:
        """Read the line that threw and the caret below it, then what was thrown; return whether it is one of these."""
        if self._pointed and text:
            error = Thrown(self._header or line, line, self._thrower, said=[text])
            if heading := _HEADING.match(text):
                self._head(error, heading)
            self._open, self._header = error, None
            self._keep(error, line)
            return True
        self._source_lines += 1
        # Below a long line node cuts the one with the caret, so that only blanks are left of it.
        self._pointed = self._pointed or line.text.isspace() or bool(_CARET.match(text))
        if self._source_lines > MAX_SOURCE_LINES or _HEADER.match(text) or _AT.match(text):
            self._header = None
        return self._header is not None

    def _head(self, error: Thrown, heading: re.Match[str]) -> None:
        error.type, error.said = heading[1], [heading[3] or ""]
        # Without a stack of its own the properties follow at once.
        error.stacked = heading[0].endswith(" {")
        error.codes = [heading[2]] if heading[2] else []

    def _continue(self, error: Thrown, text: str, line: Line) -> bool:
        """Return whether the line belongs to the open error."""
        error.lines += 1
        if _AT.match(text):
            error.stacked = True
        elif error.stacked or (error.thrower and (not text or text.startswith(("  [", "Node.js v")))):
            return error.lines <= MAX_LINES and self._property(error, text, line)
        elif error.lines > MAX_SAID or _HEADER.match(text) or (not error.thrower and _HEADING.match(text)):
            # Without a stack, what looked like an error was some other text.
            return False
        else:
            error.said.append(text)
            return True
        if (frame := _FRAME.match(text)) and len(error.frames) < MAX_LINES:
            error.frames.append((frame[1], int(frame[2]), int(frame[3])))
        self._keep(error, line)
        return True

    def _property(self, error: Thrown, text: str, line: Line) -> bool:
        """Take what stands behind the stack: the error's properties, the frames of its cause, node's version."""
        if code := _CODE.match(text):
            error.codes.append(code[1])
        elif caused := _CAUSED.match(text):
            error.caused = error.caused or caused[1]
        elif _VERSION.match(text):
            self.lines_since = 0
            return False
        elif text and not text.startswith((" ", "}", "Emitted ")):
            return False
        elif not error.frames and (frame := _FRAME.match(text)):
            error.frames.append((frame[1], int(frame[2]), int(frame[3])))
        if text:
            self._keep(error, line)
        return True

    def _keep(self, error: Thrown, line: Line) -> None:
        if not self.errors or self.errors[-1] is not error:
            self.errors.append(error)
        error.last, self.lines_since = line, 0


def extract(request: Request) -> Answer:
    """Answer with the errors of all streams, each once: those that nothing caught, and a last word, are likely."""
    answer = Answer()
    readers = request.read(Reader)
    deadly = next((s for s in ("stderr", *readers) if s in readers and readers[s].errors), None)
    seen: set[tuple[object, ...]] = set()
    for source, reader in readers.items():
        last = reader.errors[-1] if reader.errors and source == deadly and reader.lines_since <= LAST_WORDS else None
        for error in reversed(reader.errors):
            ended = error is last and request.exit_code != 0
            _add(answer, request, error, seen, certain=ended or error.thrower is not None)
        for line, text in reader.troubles:
            _add_trouble(answer, line, text)
    answer.findings = answer.findings[: request.max_findings][::-1]
    return answer


def _add(answer: Answer, request: Request, error: Thrown, seen: set[tuple[object, ...]], *, certain: bool) -> None:
    message = _message(error)
    path, line, column = _location(request, error)
    key = (error.type, message, path, line)
    if key in seen:
        return
    seen.add(key)
    unloadable = certain and (error.code in IMPORTS or _uncompiled(error))
    answer.add(
        "diagnostic" if unloadable else "crash",
        error_type=error.type or None,
        code=error.code or (error.type if unloadable else None),
        message=message or error.type or "thrown without a message",
        path=path,
        line=line,
        column=column,
        evidence=[span(error.first, error.last)],
        confidence="likely" if certain else "guess",
        cause=_cause(error, message) if certain else None,
    )


def _add_trouble(answer: Answer, line: Line, text: str) -> None:
    if option := _OPTION.match(text):
        cause = {"kind": "deterministic", "rule": "node-usage", "evidence": text, "fix": "correct the options of node"}
        answer.add("diagnostic", code="node-usage", message=option[1], evidence=[span(line)], cause=cause)
    else:
        fix = "use less memory, or raise --max-old-space-size"
        cause = {"kind": "resource", "rule": "node-memory", "evidence": HEAP, "fix": fix}
        message = cut_bytes(text.strip().removeprefix("FATAL ERROR: "), MAX_MESSAGE_BYTES)
        answer.add("crash", error_type="FATAL ERROR", message=message, evidence=[span(line)], cause=cause)


def _message(error: Thrown) -> str:
    said = [text.rstrip() for text in error.said if text.strip()][:MESSAGE_LINES]
    if error.caused:
        said.append(f"caused by {error.caused}")
    return cut_bytes("\n".join(said), MAX_MESSAGE_BYTES)


def _uncompiled(error: Thrown) -> bool:
    """Return whether a file could not be compiled: what threw is a line of it, while no own code was running."""
    return error.type == "SyntaxError" and bool(error.thrower) and all(_FOREIGN.search(f[0]) for f in error.frames)


def _location(request: Request, error: Thrown) -> tuple[str | None, int | None, int | None]:
    """Return the innermost frame in the workspace, else in no library, else the line that threw."""
    own = [frame for frame in error.frames if not _FOREIGN.search(frame[0])]
    inside = [frame for frame in own if request.relative(frame[0]) != frame[0]]
    for path, line, column in (*inside[:1], *own[:1]):
        return request.relative(path), line, column
    path, line = error.thrower or ("node:", 0)
    if _FOREIGN.search(path) and (importer := _IMPORTER.search(error.said[0])):
        return request.relative(importer[1]), None, None
    path = path.removeprefix("file://")
    return (None, None, None) if _FOREIGN.search(path) else (request.relative(path), line, None)


def _cause(error: Thrown, message: str) -> dict[str, str] | None:
    """Return why it failed, where a code of the system or the runtime tells; never from words in a message."""
    kind, rule, fix = "deterministic", "", ""
    if spawn := _SPAWN.match(message):
        kind, rule, fix = "command_not_found", "spawn", f"install '{spawn[1]}', or correct its name or PATH"
    elif _uncompiled(error):
        rule, fix = "syntax", "correct the syntax at the named line"
    elif error.code in IMPORTS:
        module = _MODULE.match(message)
        missing = f"the missing module '{module[1]}'" if module else "what is missing"
        rule, fix = "import", f"install {missing}, or correct the import"
    elif known := next((SYSTEM[code] for code in error.codes if code in SYSTEM), None):
        kind, rule, fix = known
    if not rule:
        return None
    evidence = f"{error.type}: {message}".partition("\n")[0].lstrip(": ")[:400]
    return {"kind": kind, "rule": f"node-{rule}", "evidence": evidence, **({"fix": fix} if fix else {})}


if __name__ == "__main__":
    main(extract)
