"""Failed tests from what the spec, dot and min reporters of mocha print: the numbered list below "N failing"."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 2048
MESSAGE_LINES = 8
MAX_BODY_LINES = 200
MAX_TITLE_LINES = 20
MAX_FAILURES = 2000
JOINT = " > "
NO_FILES = "Error: No test files found: "
# What the runtime says of a passing state, after the call that it was in.
TRANSIENT = frozenset({"ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "EADDRINUSE", "EAI_AGAIN", "EPIPE"})

_COUNT = re.compile(r"^  (\d{1,9}) failing$")
_FIRST = re.compile(r"^  (\d{1,9})\) (\S.{0,1000})$")
_NESTED = re.compile(r"^ {5,60}(\S.{0,1000})$")
_TYPED = re.compile(r"^([A-Z]\w{0,100})(?: \[\w{1,60}\])?: (.{0,4000})$")
_FRAME = re.compile(r"^\s{4,16}at (?:.{1,400} \()?(?:file://)?([^()\s]{1,600}):(\d{1,9}):(\d{1,9})\)?$")
_STOPS = re.compile(r"^\s{4,16}(?:at |\+ expected)")
_FOREIGN = re.compile(r"node_modules/|^node:|^<")
# A time limit's message ends with the file, as an absolute path.
_IN_FILE = re.compile(r" \(([^\s()]{1,600}\.\w{1,5})\)$")
_SYSTEM = re.compile(r"^(?:connect|listen|read|write|bind|getaddrinfo) (E[A-Z_]{3,20})\b")


@dataclass(slots=True)
class Failure:
    """One entry of the list: the names of the suites and the test, and what stands below."""

    names: list[str]
    first: Line
    last: Line
    named: bool = False
    body: list[str] = field(default_factory=list)


class Reader:
    """Reads the numbered lists of one stream; an entry begins where the next number in turn does."""

    def __init__(self) -> None:
        self.failures: list[Failure] = []
        self._next = 0
        self._last = 0
        self._open: Failure | None = None

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text.rstrip()
        if count := _COUNT.match(text):
            self._next, self._last, self._open = 1, int(count[1]), None
        elif self._next and (first := _FIRST.match(text)) and int(first[1]) == self._next <= self._last:
            self._next += 1
            self._begin(first[2], line)
        elif self._open is not None and not self._open.named:
            self._name(self._open, text)
        elif self._open is not None and len(self._open.body) < MAX_BODY_LINES:
            self._open.body.append(text)
            if text.startswith("     "):
                self._open.last = line

    def _begin(self, name: str, line: Line) -> None:
        self._open = None
        if len(self.failures) < MAX_FAILURES:
            self._open = Failure([], line, line)
            self.failures.append(self._open)
            self._take(self._open, name)

    def _name(self, failure: Failure, text: str) -> None:
        nested = _NESTED.match(text)
        if nested is None or len(failure.names) >= MAX_TITLE_LINES:
            failure.named = True
        else:
            self._take(failure, nested[1])

    def _take(self, failure: Failure, name: str) -> None:
        """Take the next of the names; the last one, that of the test, ends with a colon."""
        failure.named = name.endswith(":")
        failure.names.append(name.removesuffix(":") if failure.named else name)


def extract(request: Request) -> Answer:
    """Answer with the failed tests of all streams, each once, and with why there was none to run."""
    answer = Answer()
    readers = request.read(Reader)
    for line in request.lines():
        if line.text.startswith(NO_FILES):
            _add_usage(answer, line)
    failures: dict[str, Failure] = {}
    for reader in readers.values():
        for failure in reader.failures:
            failures.setdefault(JOINT.join(failure.names), failure)
    for name, failure in list(failures.items())[: request.max_findings - len(answer.findings)]:
        _add(answer, request, name, failure)
    answer.drop_mixed_transience()
    return answer


def _add(answer: Answer, request: Request, name: str, failure: Failure) -> None:
    message, error_type = _message(failure.body)
    path, line, column = _location(request, failure.body)
    if in_file := _IN_FILE.search(message):
        path, message = path or request.relative(in_file[1]), message[: in_file.start()]
    system = _SYSTEM.match(message)
    evidence = message.partition("\n")[0][:400]
    cause = {"kind": "transient", "rule": "mocha-system-error", "evidence": evidence}
    answer.add(
        "test",
        test_id=name,
        error_type=error_type,
        message=message or "failed without a message",
        path=path,
        line=line,
        column=column,
        evidence=[span(failure.first, failure.last)],
        cause=cause if system and system[1] in TRANSIENT else None,
    )


def _add_usage(answer: Answer, line: Line) -> None:
    message = line.text.strip().removeprefix("Error: ")[:400]
    fix = "correct the arguments or the configuration of mocha"
    cause = {"kind": "deterministic", "rule": "mocha-no-tests", "evidence": message, "fix": fix}
    if not answer.findings:
        answer.add("diagnostic", code="mocha-no-tests", message=message, evidence=[span(line)], cause=cause)


def _message(body: list[str]) -> tuple[str, str | None]:
    """Return what an entry says before its comparison and its stack, and the type of the error."""
    said: list[str] = []
    for text in body:
        if _STOPS.match(text) or len(said) >= MESSAGE_LINES:
            break
        if text.strip():
            said.append(text if said else text.strip())
    typed = _TYPED.match(said[0]) if said else None
    if typed:
        said[0] = typed[2]
    return cut_bytes("\n".join(said).strip(), MAX_MESSAGE_BYTES), typed[1] if typed else None


def _location(request: Request, body: list[str]) -> tuple[str | None, int | None, int | None]:
    """Return the innermost frame that is in no library."""
    for text in body:
        if (frame := _FRAME.match(text)) and not _FOREIGN.search(frame[1]):
            return request.relative(frame[1]), int(frame[2]), int(frame[3])
    return None, None, None


if __name__ == "__main__":
    main(extract)
