"""Uncaught exceptions of Java, Kotlin and Scala programs, with what caused them.

What ended a thread is told, with its causes. A trace that was merely printed is told where nothing else is: the last
one, for a program logs what it survives, too. Test runners and build tools print traces of their own; those are left
to who knows them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from kos_retry.sdk import Answer, Line, Request, Watch, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 1024
MESSAGE_LINES = 8
# Of a chain the outermost exception and the ones nearest to the root.
MAX_CAUSES = 3
MAX_TRACES = 2000

_CLASS = r"(?P<type>[A-Za-z_$][\w$]{0,120}(?:[./][A-Za-z_$][\w$]{0,120}){0,16})"
# Build tools put the name of a task in front; an old one prints no line's end behind it.
_TASK = re.compile(r'^ {0,10}\[(?:java|exec)\] |^(?::[\w-]{1,80}){1,8}(?=Exception in thread ")')
_HEADED = re.compile(rf'^Exception in thread ".{{0,200}}" {_CLASS}(?P<said>: .*)?$')
_HANDLER = re.compile(rf"^Exception: {_CLASS} thrown from the UncaughtExceptionHandler in thread ")
_ENDED = re.compile(rf"^Terminating due to {_CLASS}(?P<said>: .*)?$")
_PRINTED = re.compile(rf"^{_CLASS}(?P<said>: .*)?$")
_CAUSE = re.compile(rf"^(?:Caused|Wrapped) by: {_CLASS}(?P<said>: .*)?$")
_FRAME = re.compile(
    r"^(?P<indent>[ \t]{1,16})at (?P<call>[^()\s]{1,600})\((?P<file>[\w$.-]{1,200}\.(?:java|kts?|scala|sc|groovy|gradle|cljc?|jsp)"
    r"|Native Method|Unknown Source|SourceFile|<[\w ]{1,20}>)(?::(?P<line>\d{1,9}))?\)"
)
_BELOW = re.compile(r"^[ \t]{1,16}(?:\.{3} \d{1,9} (?:more|common frames omitted)|Suppressed: |Caused by: |\[CIRCULAR)")
_TYPE_NAME = re.compile(r"(?:Exception|Error|Throwable|Failure)$")
_QUALIFIED = re.compile(r"^[a-z_][\w$]*[./].{0,2000}?(?:^|[./])[A-Z][\w$]{0,120}$")
# Who prints traces of what it ran, and says itself what failed.
_RUNNER = re.compile(
    r"^(?:\[INFO\] Scanning for projects|\[ERROR\] Failed to execute goal |FAILURE: Build |BUILD FAILED$|Tests run: "
    r"|There (?:was|were) \d{1,6} (?:failure|error)|Test run finished after |\[error\] )|<<< (?:FAILURE|ERROR)!"
)

_MODULE = re.compile(r"^(?:[\w.@-]{0,200}/){1,2}")
_RUNTIME = re.compile(r"^(?:java|javax|jdk|sun|com\.sun|kotlin|kotlinx|scala|clojure|groovy\.lang)\.|^\$Proxy")
_FRAMEWORK = re.compile(
    r"^(?:junit|org\.(?:junit|opentest4j|testng|hamcrest|assertj|mockito|springframework|apache|hibernate|eclipse|gradle"
    r"|codehaus|slf4j|jboss)|io\.(?:netty|micronaut|quarkus|vertx|grpc)|akka|reactor|okhttp3|com\.(?:google|fasterxml|zaxxer))\."
)

# What a type tells of the cause: its kind, the rule's name and, where one is known, what to do.
_NETWORK = ("transient", "network", None)
_LINKED = ("deterministic", "linkage", "make the class path hold what the program was compiled against")
_TYPES: dict[str, tuple[str, str, str | None]] = {
    **dict.fromkeys(
        (
            "UnknownHostException",
            "ConnectException",
            "NoRouteToHostException",
            "PortUnreachableException",
            "SocketTimeoutException",
            "ConnectTimeoutException",
            "HttpConnectTimeoutException",
            "HttpTimeoutException",
            "HttpHostConnectException",
            "SQLTransientConnectionException",
        ),
        _NETWORK,
    ),
    **dict.fromkeys(
        (
            "ClassNotFoundException",
            "NoClassDefFoundError",
            "UnsupportedClassVersionError",
            "NoSuchMethodError",
            "NoSuchFieldError",
            "AbstractMethodError",
            "IncompatibleClassChangeError",
            "UnsatisfiedLinkError",
            "VerifyError",
        ),
        _LINKED,
    ),
    "OutOfMemoryError": ("resource", "out-of-memory", "give the program more memory, or let it need less"),
    "StackOverflowError": ("deterministic", "stack-overflow", "end the recursion, or give the thread a larger stack"),
    "AccessDeniedException": (
        "permission_denied",
        "access-denied",
        "let the user that runs this read or write the file",
    ),
}
_MESSAGES: tuple[tuple[re.Pattern[str], tuple[str, str, str | None]], ...] = (
    (re.compile(r"PKIX path (?:building|validation) failed"), ("config", "certificate", "make the server's certificate one that is trusted here")),
    (re.compile(r"No space left on device"), ("resource", "disk-full", "free space on the disk")),
    (re.compile(r"Too many open files"), ("resource", "open-files", "close what is open, or raise the limit")),
    (re.compile(r"Connection (?:reset|timed out|refused)|Network is unreachable|Address already in use"), _NETWORK),
)  # fmt: skip


@dataclass(slots=True)
class Thrown:
    """One exception: its type, its words and the first frame in the own code."""

    type: str
    said: list[str]
    first: Line
    last: Line
    path: str | None = None
    line: int | None = None
    # How little is known to be own: 0 is own code, 1 a framework's.
    rank: int = 2
    framed: bool = False


@dataclass(slots=True)
class Trace:
    """An exception and its causes, in the order in which they were printed."""

    outer: Thrown
    headed: bool
    causes: list[Thrown] = field(default_factory=list)
    indent: str | None = None

    @property
    def current(self) -> Thrown:
        """The exception that the next line belongs to."""
        return self.causes[-1] if self.causes else self.outer

    @property
    def whole(self) -> bool:
        """Whether it is a trace at all: what is cut off in its name is none."""
        return self.outer.framed or (self.headed and bool(self.outer.said or _TYPE_NAME.search(self.outer.type)))


class Reader:
    """Collects the traces of one stream."""

    def __init__(self) -> None:
        self.headed: list[Trace] = []
        self.printed: Trace | None = None
        self.ran_by_others = False
        self._open: Trace | None = None
        self._watch = Watch(_TASK, _HEADED, _HANDLER, _ENDED, _PRINTED, _RUNNER)

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        if self._open is None and not self._watch.sees(line):
            return
        text = _TASK.sub("", line.text).rstrip()
        if text.startswith((" ", "\t")):
            self._indented(text, line)
        elif header := _HEADED.match(text) or _HANDLER.match(text) or _ENDED.match(text):
            self._start(header, line, headed=True)
        elif self._open is not None and (cause := _CAUSE.match(text)):
            trace = self._open
            del trace.causes[: len(trace.causes) - MAX_CAUSES + 1]
            trace.causes.append(_thrown(cause, line))
        elif (printed := _PRINTED.match(text)) and _is_type(printed["type"]):
            self._start(printed, line, headed=False)
        else:
            self._plain(text, line)

    def close(self) -> None:
        """Keep what is still open where the stream ends."""
        trace, self._open = self._open, None
        if trace is None or not trace.whole:
            return
        if trace.headed and len(self.headed) < MAX_TRACES:
            self.headed.append(trace)
        elif not trace.headed:
            self.printed = trace

    def _start(self, header: re.Match[str], line: Line, *, headed: bool) -> None:
        self.close()
        self._open = Trace(_thrown(header, line), headed)

    def _indented(self, text: str, line: Line) -> None:
        trace = self._open
        if trace is None:
            return
        if frame := _FRAME.match(text):
            trace.indent = trace.indent or frame["indent"]
            # What is further in belongs to an exception that was suppressed.
            if frame["indent"] == trace.indent:
                _take_frame(trace.current, frame, line)
        elif not _BELOW.match(text):
            self._plain(text.strip(), line)

    def _plain(self, text: str, line: Line) -> None:
        """Take a further line of a message, or the end of a trace."""
        self.ran_by_others = self.ran_by_others or bool(_RUNNER.search(text[:400]))
        if self._open is None:
            return
        thrown = self._open.current
        if thrown.framed or not text or len(thrown.said) >= MESSAGE_LINES:
            self.close()
        else:
            thrown.said.append(text)
            thrown.last = line


def _thrown(said: re.Match[str], line: Line) -> Thrown:
    words = (said.groupdict().get("said") or "").removeprefix(": ").strip()
    return Thrown(said["type"].replace("/", "."), [words] if words else [], line, line)


def _is_type(name: str) -> bool:
    return bool(_TYPE_NAME.search(name) or _QUALIFIED.match(name))


def _take_frame(thrown: Thrown, frame: re.Match[str], line: Line) -> None:
    call = _MODULE.sub("", frame["call"])
    rank = 2 if _RUNTIME.search(call) else 1 if _FRAMEWORK.search(call) else 0
    if not thrown.framed or (rank < thrown.rank and frame["line"]):
        thrown.last = line
    thrown.framed = True
    if rank < thrown.rank and frame["line"]:
        thrown.rank, thrown.path, thrown.line = rank, frame["file"], int(frame["line"])


def extract(request: Request) -> Answer:
    """Answer with what ended threads, else with the trace that was printed last; each with its causes."""
    readers = request.read(Reader)
    for reader in readers.values():
        reader.close()
    traces = [trace for reader in readers.values() for trace in reader.headed]
    if not traces and not any(reader.ran_by_others for reader in readers.values()):
        traces = [reader.printed for reader in readers.values() if reader.printed][-1:]
    answer = Answer()
    seen: set[tuple[object, ...]] = set()
    for trace in traces:
        cause = _cause(trace)
        for thrown in (trace.outer, *trace.causes):
            if len(answer.findings) < request.max_findings:
                _add(answer, thrown, cause, seen)
    answer.drop_mixed_transience()
    return answer


def _add(answer: Answer, thrown: Thrown, cause: dict[str, Any] | None, seen: set[tuple[object, ...]]) -> None:
    key = (thrown.type, thrown.path, thrown.line)
    if key in seen:
        return
    seen.add(key)
    answer.add(
        "crash",
        error_type=thrown.type,
        message=cut_bytes("\n".join(thrown.said) or thrown.type, MAX_MESSAGE_BYTES),
        path=thrown.path,
        line=thrown.line,
        evidence=[span(thrown.first, thrown.last)],
        cause=dict(cause) if cause else None,
    )


def _cause(trace: Trace) -> dict[str, Any] | None:
    """Return the cause that the chain tells, the root first."""
    for thrown in (*reversed(trace.causes), trace.outer):
        words = " ".join(thrown.said)
        known = next((cause for pattern, cause in _MESSAGES if pattern.search(words)), None)
        known = known or _TYPES.get(thrown.type.rpartition(".")[2])
        if known:
            evidence = f"{thrown.type}: {words}".rstrip(": ")
            fix = {"fix": known[2]} if known[2] else {}
            return {"kind": known[0], "rule": f"java-{known[1]}", "evidence": cut_bytes(evidence, 500), **fix}
    return None


if __name__ == "__main__":
    main(extract)
