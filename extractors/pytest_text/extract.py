"""Failed tests from what pytest prints on a terminal, in any of its styles.

The last summary of a run says which tests failed; the blocks above it say why and where. Without a summary the
blocks alone tell. What a test printed may itself look like a report, so only known headings count, and a run
that starts inside another one is skipped.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 2048
MESSAGE_LINES = 8
MARGIN_LINES = 4 * MESSAGE_LINES
MAX_BLOCKS = 2000
MAX_ENTRIES = 2000
# Of a longer line the start is read: the rest is a message.
MAX_CHARS = 4000
MAX_PLACES = 64

REPORTS = ("FAILURES", "ERRORS")
OTHER_SECTIONS = (
    "PASSES",
    "XPASSES",
    "XFAILURES",
    "warnings summary",
    "slowest ",
    "rerun test summary",
    "tests coverage",
)
SYNTAX = ("SyntaxError", "IndentationError", "TabError")
IMPORTS = ("ImportError", "ModuleNotFoundError")
# What the system says of a passing state, as OSError words it.
TRANSIENT = (
    "Address already in use",
    "Connection refused",
    "Connection reset by peer",
    "Connection timed out",
    "Temporary failure in name resolution",
)

_FINAL = re.compile(r"^(?:\d{1,9} [a-z]{4,12}\b.{0,300}|no tests ran) in \d{1,9}\.\d{1,3}s")
_COUNT = re.compile(r"(\d{1,9}) (failed|passed|skipped|errors?)\b")
_SUMMARY = re.compile(r"^(FAILED|ERROR|SUBFAILED|SUBFAIL)(\[[^\]]{0,200}\])?(?: (\([^)]{0,200}\)))? (.{1,4000})$")
_WORKER = re.compile(r"^\[gw\d{1,4}\] \[ {0,2}\d{1,3}%\] (?:FAILED|ERROR) ")
_CAPTURED = re.compile(r"^-{1,400} (Captured|live) .{1,40} -{1,400}$")
_PLACE = re.compile(r"^([^\s:][^:]{0,400}):(\d{1,9})(?::(?: (.{0,4000}))?)?$")
_FILE = re.compile(r'^[\s|+]{0,64}File "([^"]{1,1000})", line (\d{1,9})')
_TYPED = re.compile(r"^((?:[^\W\d]\w{0,100}\.){0,16}[^\W\d]\w{0,100})(?:: ?(.*))?$")
_NATIVE = re.compile(r"^(?:[ |]{1,64}\| )?([^\W\d][\w.]{0,200}(?:: .*)?)$")
_PHASE = re.compile(r"^(?:ERROR (?:at (?:setup|teardown) of|collecting) |\[doctest\] )")
_SUBTEST = re.compile(r"^([\w.]{1,400}) [\[(]")
_FOREIGN = re.compile(r"^<|(?:site|dist)-packages/|/lib/python\d|/_pytest/")
_USAGE = re.compile(r"^ERROR: (.{1,2000})$")
_PATH_ID = re.compile(r"^[^\s:]{1,400}(?:\.\w{1,8}|/[^\s:]{0,200})$")
_ERRNO = re.compile(r"^\[Errno -?\d{1,5}\] ([^:]{1,100})")


@dataclass(slots=True)
class Block:
    """One failure as the report details it; ``title`` is None where the style gives it no heading."""

    section: str
    title: str | None
    first: Line
    last: Line
    margin: list[str] = field(default_factory=list)
    places: deque[tuple[str, int, str]] = field(default_factory=lambda: deque(maxlen=MAX_PLACES))
    native: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    in_margin: bool = False
    captured: bool = False
    used: bool = False

    def feed(self, line: Line) -> None:
        """Take the next line of the block."""
        text = line.text
        self.captured = self.captured or bool(_CAPTURED.match(text))
        if self.captured or not text.strip():
            return
        self.last = line
        margin = text == "E" or text.startswith("E   ")
        if margin:
            # A chain has several: the last one is what the test failed with.
            self.margin = self.margin if self.in_margin else []
            if len(self.margin) < MARGIN_LINES:
                self.margin.append(text[1:])
        elif place := _PLACE.match(text[:MAX_CHARS]) or _FILE.match(text):
            tail = place[3] or "" if place.re is _PLACE else ""
            self.places.append((place[1], int(place[2]), tail))
        elif self.places and not self.margin and (native := _NATIVE.match(text)) and _looks_typed(native[1]):
            self.native = [*self.native[: MESSAGE_LINES - 1], native[1]]
        elif not text.startswith((" ", ">", "_ _", "[gw")) and len(self.said) < MESSAGE_LINES:
            self.said.append(text)
        self.in_margin = margin


@dataclass(slots=True)
class Entry:
    """One line of the summary: what failed, and the start of its message."""

    word: str
    node_id: str
    about: str
    message: str
    line: Line


@dataclass(slots=True)
class Run:
    """One run of pytest."""

    sections: set[str] = field(default_factory=set)
    blocks: list[Block] = field(default_factory=list)
    entries: dict[tuple[str, str, str], Entry] = field(default_factory=dict)
    verbose: dict[str, Entry] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    started: bool = False
    closed: bool = False


class Reader:
    """Cuts one stream into runs, and those into blocks and summary lines."""

    def __init__(self, skip_nested: bool) -> None:
        self.runs = [Run()]
        self.troubles: list[tuple[Line, str, str]] = []
        self.internal: Block | None = None
        self.nested = False
        self.skipped = False
        self._skip_nested = skip_nested
        self._state = ""
        self._after = ""
        # Whether a test is printing something like a report.
        self._printed = False
        self._block: Block | None = None

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text
        if (title := self._main_title(text)) and self._heading(title):
            return
        if self.nested:
            self.nested = not _FINAL.match(text)
        elif text.startswith("INTERNALERROR> "):
            self.internal = self.internal or Block("internal", None, line, line)
            self.internal.feed(Line(text.removeprefix("INTERNALERROR> "), line.source, line.start, line.end))
        elif self._state in REPORTS:
            self._report(line)
        elif self._state == "summary":
            self._entry(line)
        elif self._state == "":
            self._progress(line)

    def _main_title(self, text: str) -> str:
        if " test session starts =" in text:
            # Without capturing, the run of a test starts behind the dots of the run that it is in.
            return _title(text[text.find("=") :], "=")
        if text[:1] in "0123456789n":
            return text if _FINAL.match(text) and not self._in_captured() else ""
        return _title(text, "=")

    def _in_captured(self) -> bool:
        return self._block is not None and self._block.captured

    def _heading(self, title: str) -> bool:
        """Act on a heading that pytest prints; return whether it was one."""
        run = self.runs[-1]
        begins, final = title == "test session starts", bool(_FINAL.match(title))
        if self.nested:
            self.nested = not final
            return True
        if begins and run.started and not run.closed and self._skip_nested:
            self.nested = self.skipped = True
        elif title in run.sections and self._in_captured():
            self._printed = True
        elif begins or title in REPORTS:
            if run.closed:
                self.runs.append(Run())
            self._enter("" if begins else title)
            self.runs[-1].sections.add(title)
            self.runs[-1].started = True
        elif title == "short test summary info":
            run.entries = {}
            # Where a test printed this, the report goes on after it.
            self._after = self._state if self._in_captured() else ""
            self._enter("summary")
        elif final:
            names = {"error": "errored", "errors": "errored"}
            run.totals = {names.get(word, word): int(count) for count, word in _COUNT.findall(title)}
            run.closed = True
            self._printed = False
            self._enter(self._after)
            self._after = ""
        elif title.startswith(OTHER_SECTIONS):
            self._enter("other")
        else:
            return False
        return True

    def _enter(self, state: str) -> None:
        self._state, self._block = state, None

    def _report(self, line: Line) -> None:
        run, text = self.runs[-1], line.text
        dashes = _title(text, "-")
        if (title := _title(text, "_")) and title.strip("_ ") and not self._printed:
            self._block = None
            if len(run.blocks) < MAX_BLOCKS:
                self._block = Block(self._state, title, line, line)
                run.blocks.append(self._block)
        elif dashes.startswith(("generated ", "coverage:")) or text.startswith("!!!!"):
            self._block = None
        elif self._block is not None:
            self._block.feed(line)
        elif (place := _PLACE.match(text[:MAX_CHARS])) and place[3] and len(run.blocks) < MAX_BLOCKS:
            block = Block(self._state, None, line, line, margin=[place[3]])
            block.places.append((place[1], int(place[2]), ""))
            run.blocks.append(block)

    def _entry(self, line: Line) -> None:
        if not (match := _SUMMARY.match(line.text[:MAX_CHARS])):
            return
        about = " ".join(part for part in (match[2], match[3]) if part)
        node_id, message = _split_entry(match[4])
        sub = match[1].startswith("SUB")
        known = self.runs[-1].entries
        if (
            len(known) < MAX_ENTRIES
            and (sub or not about)
            and ("::" in node_id or _PATH_ID.match(node_id))
            and node_id[0] != ":"
        ):
            entry = Entry("FAILED" if sub else match[1], node_id, about, message, line)
            known.setdefault((entry.word, node_id, about), entry)

    def _progress(self, line: Line) -> None:
        text = line.text
        if text.startswith("ImportError while loading conftest"):
            self._enter("FAILURES")
            self._block = Block("conftest", None, line, line)
            self.runs[-1].blocks.append(self._block)
        elif node_id := _verbose_id(text):
            self.runs[-1].verbose.setdefault(_key(node_id), Entry("FAILED", node_id, "", "", line))
        elif usage := _USAGE.match(text):
            self.troubles.append((line, usage[1], "usage"))
        elif ": error: " in text and self.troubles and self.troubles[-1][1].startswith("usage: "):
            self.troubles[-1] = (line, text.partition(": error: ")[2], "usage")
        elif (title := _title(text, "!")) and title.startswith(("KeyboardInterrupt", "_pytest.outcomes.Exit")):
            self.troubles.append((line, title, "interrupted"))


def extract(request: Request) -> Answer:
    """Answer with the failed tests, each once; without any, with what kept pytest from running them."""
    readers = _read(request, skip_nested=True)
    if any(reader.skipped and not reader.runs[-1].closed for reader in readers):
        # What looked like a run inside of the run was none, or the output is cut off.
        whole = _read(request, skip_nested=False)
        readers = whole if any(reader.runs[-1].closed for reader in whole) else readers
    answer = Answer()
    for reader in readers:
        _answer(answer, request, reader)
    answer.findings = answer.findings[: request.max_findings]
    return answer


def _read(request: Request, skip_nested: bool) -> list[Reader]:
    readers: dict[str, Reader] = {}
    for line in request.lines():
        if line.source not in readers:
            readers[line.source] = Reader(skip_nested)
        readers[line.source].feed(line)
    return list(readers.values())


def _answer(answer: Answer, request: Request, reader: Reader) -> None:
    seen: set[str] = {f["test_id"] for f in answer.findings if "test_id" in f}
    for run in reader.runs:
        for name, count in run.totals.items():
            answer.totals = {**(answer.totals or {}), name: (answer.totals or {}).get(name, 0) + count}
        for entry, block in _paired(run, request):
            if len(answer.findings) >= request.max_findings:
                break
            node_id = _completed(entry, run) if entry else _id_of(block, run, request) if block else ""
            if node_id not in seen:
                _add_test(answer, request, node_id, entry, block)
            seen.add(node_id)
        for block in run.blocks:
            if block.section == "conftest":
                _add_block(answer, request, "diagnostic", block)
    if reader.internal:
        _add_block(answer, request, "crash", reader.internal)
    ran = any("passed" in run.totals or "failed" in run.totals for run in reader.runs)
    if not answer.findings and request.exit_code != 0:
        _add_troubles(answer, reader, ran)


def _paired(run: Run, request: Request) -> Iterator[tuple[Entry | None, Block | None]]:
    """Yield what failed with its block: by the summary where there is one, else by the blocks."""
    titled: dict[str | None, list[Block]] = defaultdict(list)
    for block in run.blocks:
        titled[_PHASE.sub("", block.title) if block.title is not None else None].append(block)
    # Of a test that fails and then cannot be torn down, the failure counts.
    for entry in sorted(run.entries.values(), key=lambda entry: entry.word == "ERROR"):
        path = entry.node_id.partition("::")[0]
        key = f"{_key(entry.node_id)} {entry.about}".strip()
        named = [*titled[key], *titled[path], *(b for b in titled[None] if _agrees(b, entry))]
        free = [b for b in named if not b.used and b.section == ("ERRORS" if entry.word == "ERROR" else "FAILURES")]
        block_ = next((b for b in free if _names(b, path, request)), free[0] if free else None)
        if block_:
            block_.used = True
        yield entry, block_
    if not run.entries:
        told = [block for block in run.blocks if block.section in REPORTS and (block.title or block.places)]
        yield from ((None, block) for block in sorted(told, key=lambda block: block.section == "ERRORS"))
        known = {_PHASE.sub("", block.title or "") for block in run.blocks}
        yield from ((entry, None) for key, entry in run.verbose.items() if key not in known)


def _add_test(answer: Answer, request: Request, node_id: str, entry: Entry | None, block: Block | None) -> None:
    error_type, message, place = _told(block, request) if block else (None, "", None)
    if entry and not (error_type or message):
        error_type, message = _split_type(entry.message, "")
    path, names, _ = node_id.partition("::")
    evidence = [span(block.first, block.last)] if block else [span(entry.line)] if entry else []
    answer.add(
        "test",
        status="error" if (entry and entry.word == "ERROR") or (block and block.section == "ERRORS") else "failed",
        test_id=node_id,
        error_type=error_type,
        message=message or "failed",
        path=place[0] if place else path if _PATH_ID.match(path) else None,
        line=place[1] if place else None,
        evidence=evidence,
        cause=_cause(error_type, message, not names),
    )


def _add_block(answer: Answer, request: Request, kind: str, block: Block) -> None:
    error_type, message, place = _told(block, request)
    cause = _cause(error_type, message, kind == "diagnostic")
    path, line = place or (None, None)
    evidence = [span(block.first, block.last)]
    answer.add(
        kind, error_type=error_type, message=message or "failed", path=path, line=line, evidence=evidence, cause=cause
    )


def _add_troubles(answer: Answer, reader: Reader, ran: bool) -> None:
    """Add what pytest itself complained of, or that it found no test to run."""
    for line, text, code in reader.troubles[:8]:
        cause = {
            "kind": "deterministic",
            "rule": "pytest-usage",
            "evidence": line.text,
            "fix": "correct the arguments or the configuration of pytest",
        }
        interrupted = code != "usage"
        error_type = text.partition(":")[0].rpartition(".")[2] if interrupted else None
        answer.add(
            "diagnostic",
            code=f"pytest-{code}",
            error_type=error_type,
            message=text,
            evidence=[span(line)],
            cause=None if interrupted else cause,
        )
    if not reader.troubles and not ran and any(run.closed for run in reader.runs):
        cause = {
            "kind": "deterministic",
            "rule": "pytest-no-tests",
            "evidence": "no tests ran",
            "fix": "correct the selection: it matches no test",
        }
        answer.add("diagnostic", code="pytest-no-tests", message="no tests ran", cause=cause)


def _told(block: Block, request: Request) -> tuple[str | None, str, tuple[str, int] | None]:
    """Return the type, the message and the place that a block tells of."""
    hint = next((tail for _, _, tail in reversed(block.places) if tail.isidentifier()), "")
    lines = _dedent(block.margin) or block.native[-1:] or block.said
    places = list(block.places)
    for number, line in enumerate(lines):
        if file := _FILE.match(line):
            places.append((file[1], int(file[2]), ""))
        if number and line.startswith(tuple(f"{name}:" for name in SYNTAX)):
            lines = lines[number:]
            break
    error_type, message = _split_type("\n".join(lines[:MESSAGE_LINES]).strip(), hint)
    if len(block.native) > 1 and not block.margin and block.native[0].endswith(("sub-exceptions)", "sub-exception)")):
        # An exception group: the first line is its own, the rest are its leaves.
        error_type, message = _split_type(block.native[0], "")
        message = "\n".join([message, *block.native[1:]])
    own = [p for p in places if not _FOREIGN.search(p[0])]
    place = (request.relative(own[-1][0]), own[-1][1]) if own else None
    return error_type, cut_bytes(message, MAX_MESSAGE_BYTES), place


def _split_type(text: str, hint: str) -> tuple[str | None, str]:
    """Split ``Type: message``; ``hint`` is the type's bare name where the report gives it."""
    first, _, rest = text.partition("\n")
    if (match := _TYPED.match(first)) and (match[1].rpartition(".")[2] == hint or (not hint and _looks_typed(first))):
        return match[1], "\n".join(part for part in (match[2], rest) if part)
    if first.startswith("assert "):
        return hint or "AssertionError", text
    return hint or None, text


def _looks_typed(text: str) -> bool:
    match = _TYPED.match(text)
    return bool(match) and ("." in match[1] or match[1][:1].isupper()) if match else False


def _cause(error_type: str | None, message: str, collecting: bool) -> dict[str, str] | None:
    """Return why a test failed, where that is beyond doubt."""
    name, first = (error_type or "").rpartition(".")[2], message.partition("\n")[0]
    evidence = f"{error_type}: {first}" if error_type else first
    if collecting and name in SYNTAX:
        return {
            "kind": "deterministic",
            "rule": "pytest-syntax",
            "evidence": evidence,
            "fix": "correct the syntax at the named line",
        }
    if collecting and name in IMPORTS:
        return {
            "kind": "deterministic",
            "rule": "pytest-import",
            "evidence": evidence,
            "fix": "install the missing module, or correct the import",
        }
    if not error_type and first.startswith("fixture '") and first.endswith("' not found"):
        return {
            "kind": "deterministic",
            "rule": "pytest-fixture",
            "evidence": evidence,
            "fix": "define the fixture, or correct its name",
        }
    if name.endswith(
        ("OSError", "ConnectionError", "gaierror", "ConnectionRefusedError", "ConnectionResetError", "TimeoutError")
    ):
        errno = _ERRNO.match(first)
        if errno and errno[1].strip() in TRANSIENT:
            return {"kind": "transient", "rule": "pytest-system-error", "evidence": evidence}
    return None


def _verbose_id(text: str) -> str:
    """Return the node id of a line that pytest or a worker of it prints when a test has failed, else nothing."""
    if worker := _WORKER.match(text):
        return text[worker.end() :].strip()
    for word in (" FAILED", " ERROR"):
        head, _, tail = text.rpartition(word)
        if "::" in head and not head[0].isspace() and tail[:1] in ("", " "):
            return head.strip()
    return ""


def _completed(entry: Entry, run: Run) -> str:
    """Return the node id, completed from the verbose lines or the headings where it was cut off."""
    if not entry.node_id.endswith("..."):
        return entry.node_id
    start = entry.node_id.removesuffix("...")
    path, _, rest = start.partition("::")
    whole = next((e.node_id for e in run.verbose.values() if e.node_id.startswith(start)), None)
    titles = (_PHASE.sub("", block.title or "") for block in run.blocks)
    title = next((t for t in titles if rest and t.startswith(_key(start))), None)
    return whole or (f"{path}::{_colons(title)}" if title else entry.node_id)


def _id_of(block: Block, run: Run, request: Request) -> str:
    """Return the node id of a block: the test's file is the first one it names that is called like one."""
    title = _PHASE.sub("", block.title or "")
    if subtest := _SUBTEST.match(title):
        title = subtest[1]
    if title in run.verbose:
        return run.verbose[title].node_id
    paths = [request.relative(path) for path, _, _ in block.places if not _FOREIGN.search(path)]
    tests = [p for p in paths if p.rpartition("/")[2].startswith("test_") or p.endswith("_test.py")]
    path = next(iter([*tests, *paths]), "")
    if not title or title == path or (block.title or "").startswith("ERROR collecting "):
        return title or path
    return f"{path}::{_colons(title)}" if path else title


def _names(block: Block, path: str, request: Request) -> bool:
    return any(request.relative(place) == path for place, _, _ in block.places)


def _agrees(block: Block, entry: Entry) -> bool:
    said = entry.message.removesuffix("...")
    return bool(said) and block.margin[0].startswith(said)


def _key(node_id: str) -> str:
    """Return the heading under which the report details a node: its names joined by dots, or its file."""
    path, _, rest = node_id.partition("::")
    head, bracket, parameters = rest.partition("[")
    return head.replace("::", ".") + bracket + parameters if rest else path


def _colons(title: str) -> str:
    head, bracket, parameters = title.partition("[")
    return head.replace(".", "::") + bracket + parameters


def _split_entry(text: str) -> tuple[str, str]:
    """Split a summary line into node id and message: a `` - `` inside of parameters does not part them."""
    at = text.find(" - ")
    while at >= 0:
        left = text[:at]
        if "[" not in left.partition("::")[2] or left.endswith("]"):
            return left, text[at + 3 :].strip()
        at = text.find(" - ", at + 3)
    return text.strip(), ""


def _title(text: str, fill: str) -> str:
    """Return what stands between two runs of ``fill``, as in ``=== FAILURES ===``; empty where nothing does."""
    if len(text) < 5 or text[0] != fill or text[-1] != fill or len(text) > 2000:
        return ""
    left, _, rest = text.partition(" ")
    middle, _, right = rest.rpartition(" ")
    return middle.strip() if middle and not left.strip(fill) and not right.strip(fill) else ""


def _dedent(margin: list[str]) -> list[str]:
    """Return the lines of a margin without the indentation of the first one."""
    lead = len(margin[0]) - len(margin[0].lstrip()) if margin else 0
    return [line[lead:].rstrip() if not line[:lead].strip() else line.strip() for line in margin]


if __name__ == "__main__":
    main(extract)
