"""Why a Gradle build failed: its tasks, scripts and dependencies, or the daemon that ran it.

A task that only passes on what a compiler or a test said is not told beside it: others read those.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 1024
MAX_NAME_BYTES = 160
MAX_KEPT = 5000
# Of what went wrong; a build with many artifacts that are not there says a lot.
MAX_BLOCK_LINES = 2000

_WHERE = re.compile(r"^[A-Z][\w -]{2,40} '(?P<path>[^']{1,400})'(?: line: (?P<line>\d{1,9}))?$")
_WRONG = "* What went wrong:"
_BLOCK_END = re.compile(r"^(?:\* (?:Try|Exception is|Get more help)\b|={20}|BUILD FAILED|\d{1,6}: Task failed with)")
_TASK = re.compile(r"^Execution failed for task '(?P<task>:[^']{1,300})'")
_DETAIL = re.compile(r"^ {0,40}> (?P<said>.+)$")
_TEST = re.compile(r"^(?!> Task )[^\s>].{0,300}? > .{1,300} FAILED$")
_SCRIPT = re.compile(
    r"^ {1,8}(?:build|settings|script|initialization script)[\w ]{0,20} '(?P<path>[^']{1,400})': (?P<line>\d{1,9}): (?P<said>.+?) @ line \d{1,9}, column (?P<column>\d{1,9})\.?$"
)
_SCRIPT_LINE = re.compile(r"^ {1,8}Line (?P<line>\d{1,9}): ")
_SCRIPT_SAID = re.compile(r"^ {1,400}\^ (?P<said>.+)$")
_COORDINATES = r"[\w.-]{1,160}:[\w.-]{1,160}(?::[^\s:'>]{1,100})?"
_ARTIFACT = re.compile(
    rf"(?:Could not (?:resolve|find|download) |No cached version of |Cannot resolve external dependency )(?:[\w.@-]{{1,200}} \()?(?P<name>{_COORDINATES}?)\)?(?:\.$| available for offline| because)"
)
_TESTS_FAILED = re.compile(r"There were failing tests|There was a failing test|Test failed|Tests? failed")
_COMPILE_FAILED = re.compile(r"^Compilation (?:failed|error)|see (?:the )?(?:compiler|log|output)")
_COMPILED = re.compile(r"^\d{1,9} errors?$|: error: |^e: ")
_PROCESS = re.compile(
    r"^(?:A problem occurred starting process |Process '.{1,300}' finished with non-zero exit value \d{1,9})"
)
# Where a clause ends that says what; what follows explains, or differs every time.
_CLAUSE = re.compile(r"\. | \(| for arguments \[| in any of the following|; |:$")

# Why: kind, rule and what to do.
_REASONS: tuple[tuple[re.Pattern[str], tuple[str, str, str]], ...] = (
    (re.compile(r"daemon disappeared unexpectedly|Could not (?:receive a message from|dispatch a message to) the daemon|Connection to the Gradle daemon has been lost"), ("runner_lost", "daemon", "")),
    (re.compile(r"Timeout waiting to lock"), ("transient", "lock", "")),
    (re.compile(r"OutOfMemoryError|Java heap space|GC overhead limit|Metaspace$|Gradle Test Executor \d{1,9}' finished with non-zero exit value 137"), ("resource", "out-of-memory", "give the build more memory, or let it do less at once")),
    (re.compile(r"No space left on device"), ("resource", "disk-full", "free space on the disk")),
    (re.compile(r"status code (?:401|403|407)\b"), ("auth", "login", "correct the repository's credential")),
    (re.compile(r"PKIX path (?:building|validation) failed|unable to find valid certification path"), ("config", "certificate", "make the repository's certificate one that is trusted here")),
    (re.compile(r"available for offline mode"), ("deterministic", "offline", "fetch the artifact once without the offline option")),
    (re.compile(r"status code (?:408|425|429|50[0234])\b|Connection (?:refused|reset|timed out)|[Tt]imed out|Name or service not known|[Tt]emporary failure in name resolution"
                r"|UnknownHost|nodename nor servname|No route to host|Network is unreachable|Premature end of|Remote host terminated|peer shut down"), ("transient", "transfer", "")),
)  # fmt: skip
_ABSENT = ("deterministic", "artifact", "correct the artifact's coordinates, or name the repository that has it")
_WRONG_SCRIPT = ("config", "script", "correct the build's script")


@dataclass(slots=True)
class Block:
    """What went wrong, as the build says at its end, and where."""

    first: Line
    last: Line
    where: re.Match[str] | None
    lines: list[str] = field(default_factory=list)
    closed: bool = False


@dataclass(slots=True)
class Fault:
    """One thing to tell of a block."""

    name: str
    said: str
    kind: str = "diagnostic"
    path: str | None = None
    line: int | None = None
    column: int | None = None
    cause: tuple[str, str, str] | None = None


class Reader:
    """Collects what the build says went wrong in one stream."""

    def __init__(self) -> None:
        self.tested = False
        self.blocks: list[Block] = []
        self.compiled = False
        self._block: Block | None = None
        self._where: re.Match[str] | None = None

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text.rstrip()
        if text == _WRONG:
            self._open(line)
        elif self._block is not None:
            self._add_to_block(self._block, text, line)
        elif where := _WHERE.match(text):
            self._where = where
        elif text.endswith(" FAILED") and _TEST.match(text):
            self.tested = True
        self.compiled = self.compiled or bool(_COMPILED.search(text[:1000]))

    def _open(self, line: Line) -> None:
        self._block = Block(line, line, self._where)
        self._where = None
        if len(self.blocks) < MAX_KEPT:
            self.blocks.append(self._block)

    def _add_to_block(self, block: Block, text: str, line: Line) -> None:
        if _BLOCK_END.match(text) or len(block.lines) >= MAX_BLOCK_LINES:
            block.closed, self._block = True, None
        elif text:
            block.lines.append(text[:4096])
            block.last = line


def extract(request: Request) -> Answer:
    """Answer with what went wrong, in the order in which it was printed."""
    readers = request.read(Reader)
    answer = Answer()
    seen: set[tuple[object, ...]] = set()
    for reader in readers.values():
        tested = reader.tested or bool(request.reports)
        for block in reader.blocks:
            for fault in _faults(block, tested=tested, compiled=reader.compiled):
                _add(answer, request, block, fault, seen)
    answer.findings = answer.findings[: request.max_findings]
    answer.drop_mixed_transience()
    return answer


def _faults(block: Block, *, tested: bool, compiled: bool) -> Iterator[Fault]:
    """Yield what a block tells: artifacts, else a script's errors, else the task, else its words."""
    if not block.lines:
        return
    details = [found["said"] for text in block.lines if (found := _DETAIL.match(text))]
    if artifacts := _artifacts(block.lines):
        yield from artifacts
        return
    cause = _reason("\n".join(block.lines))
    head = block.lines[0]
    task = _TASK.match(head)
    said = next((text for text in details if not _passes_on(text)), details[0] if details else "")
    if task and said and ((tested and _TESTS_FAILED.search(said)) or (compiled and _COMPILE_FAILED.search(said))):
        return
    if scripts := list(_scripts(block)):
        yield from scripts
    elif task:
        # What became of a process it ran is best told by that process.
        yield Fault(
            task["task"], f"{head} {said}".strip(), "crash" if _PROCESS.match(said) else "diagnostic", cause=cause
        )
    elif cause and cause[0] != "deterministic":
        yield Fault(_clause(head), head, "infrastructure", cause=cause)
    elif block.closed:
        words = said if head.startswith("A problem occurred") and said else head
        yield Fault(_clause(words), words, cause=cause or _WRONG_SCRIPT)


def _artifacts(lines: list[str]) -> list[Fault]:
    """Return a fault for each artifact that could not be had, with the reason that stands below its name."""
    found: dict[str, list[str]] = {}
    name = ""
    for text in lines:
        if artifact := _ARTIFACT.search(text):
            name = artifact["name"]
        if name:
            found.setdefault(name, []).append(text)
    return [_artifact(name, "\n".join(below)) for name, below in found.items()]


def _artifact(name: str, below: str) -> Fault:
    cause = _reason(below) or (_ABSENT if "Could not find " in below else None)
    words = next((match[0] for pattern, _ in _REASONS if (match := pattern.search(below))), "")
    words = "not here, and offline" if cause and cause[1] == "offline" else words
    said = words or ("could not be found" if cause is _ABSENT else "could not be resolved")
    return Fault(
        name,
        f"{name}: {said}",
        "infrastructure" if cause and cause[0] in ("transient", "auth") else "diagnostic",
        cause=cause,
    )


def _scripts(block: Block) -> Iterator[Fault]:
    """Yield the errors of a script that does not compile, in either of the languages that scripts are written in."""
    line: int | None = None
    for text in block.lines:
        if error := _SCRIPT.match(text):
            yield Fault(
                _clause(error["said"]),
                error["said"],
                "diagnostic",
                error["path"],
                int(error["line"]),
                int(error["column"]),
                _WRONG_SCRIPT,
            )
        elif at := _SCRIPT_LINE.match(text):
            line = int(at["line"])
        elif line is not None and (said := _SCRIPT_SAID.match(text)):
            path = block.where["path"] if block.where else None
            yield Fault(_clause(said["said"]), said["said"], "diagnostic", path, line, None, _WRONG_SCRIPT)


def _passes_on(said: str) -> bool:
    return said.startswith(("A failure occurred while executing ", "Could not resolve all "))


def _reason(text: str) -> tuple[str, str, str] | None:
    return next((cause for pattern, cause in _REASONS if pattern.search(text)), None)


def _clause(said: str) -> str:
    return cut_bytes(_CLAUSE.split(said, maxsplit=1)[0].strip(" .:"), MAX_NAME_BYTES)


def _add(answer: Answer, request: Request, block: Block, fault: Fault, seen: set[tuple[object, ...]]) -> None:
    path, line = fault.path, fault.line
    if path is None and block.where is not None:
        path, line = block.where["path"], int(block.where["line"] or 0)
    path = request.relative(path) if path else None
    if not fault.name or (fault.name, path, line) in seen:
        return
    seen.add((fault.name, path, line))
    cause = None
    if fault.cause:
        cause = {"kind": fault.cause[0], "rule": f"gradle-{fault.cause[1]}", "evidence": cut_bytes(fault.said, 500)}
        cause |= {"fix": fault.cause[2]} if fault.cause[2] else {}
    answer.add(
        fault.kind,
        code=cut_bytes(fault.name, MAX_NAME_BYTES),
        message=cut_bytes(fault.said, MAX_MESSAGE_BYTES),
        path=path,
        line=line,
        column=fault.column,
        evidence=[span(block.first, block.last)],
        cause=cause,
    )


if __name__ == "__main__":
    main(extract)
