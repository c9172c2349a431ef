"""Failed tests, build errors, panics and data races of Go programs, from text or from `go test -json`.

A test that failed only because one of its subtests did is not told. Tests are named with their package, which
the output names behind them.
"""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kos_retry.sdk import Answer, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 1024
MAX_NAME_BYTES = 160
MESSAGE_LINES = 8
MAX_KEPT = 2000
MAX_TESTS = 200_000
MAX_REPORT_BYTES = 64 * 1024 * 1024
MAX_EVENT_BYTES = 64 * 1024

_FAILED = re.compile(r"^ {0,64}--- FAIL: (\S{1,400})(?: \(|$)")
_PASSED = re.compile(r"^ {0,64}--- (?:PASS|SKIP): ")
_CURRENT = re.compile(r"^=== (?:RUN|CONT|NAME) {1,3}(\S{1,400})$")
_PACKAGE = re.compile(r"^(FAIL|ok|\?) *\t(\S{1,300})(?:\t| \[|$)(.{0,80})")
_WORDS = re.compile(r"^ {4,64}(?:([\w.-]{1,200}\.go):(\d{1,9}): ?)?(.*)$")
_COMPILER = re.compile(r"^(?:vet: )?(\S{1,400}\.go):(\d{1,9}):(\d{1,9}): (.+?)(?: \(([A-Za-z][\w-]{1,40})\))?$")
_PANIC = re.compile(r"^\t?(panic|fatal error): (.+?)(?: \[recovered.{0,40})?$")
_CALL = re.compile(r"^ {0,2}(?:created by )?([\w./()*\[\]·~-]{1,300}?)(?:\([^()]{0,400}\)| in goroutine \d{1,9})?$")
_AT = re.compile(r"^(?:\t| {6})(\S{1,400}\.go):(\d{1,9})\b")
_GOROUTINE = re.compile(r"^(?:goroutine \d{1,9} |(?:Previous|Goroutine|Read|Write) )")
_FOREIGN = re.compile(r"/go(?:-[\d.]{1,12})?/src/|/pkg/mod/|/vendor/|_testmain\.go$|/toolchain@")
_TEST_CALL = re.compile(r"\.((?:Test|Fuzz|Example|Benchmark)\w{0,200})(?:\.func[\d.]{1,20})?$")
_GO = re.compile(r"^go: (?!downloading|finding|added|upgraded|downgraded|removed|warning|found|to |creating)(.+)$")
_MODULE = re.compile(r"^\S{1,300}@v\S{1,100}: ")
_NETWORK = re.compile(
    r"dial tcp|i/o timeout|no such host|connection (?:reset|refused)|TLS handshake timeout"
    r"|: (?:429|50[0234]) [A-Z]|unexpected EOF"
)
_NO_MESSAGE = ("Error Trace:", "Test:", "testing.go:")
RACE = "race detected during execution of test"
# What is said of a package that failed without a word.
NO_WORDS = "failed"
# What an event says of a test; one that was begun is running until another one follows.
RESULTS = {"run": "unfinished", "pass": "passed", "skip": "skipped", "fail": "failed"}

Place = tuple[str, int]


@dataclass(slots=True)
class Words:
    """What is said of a failed test, or of a program's end."""

    first: Any
    said: list[str] = field(default_factory=list)
    place: Place | None = None
    call: str = ""
    test: str = ""
    failed: bool = False
    stacked: bool = False


class Reader:
    """Collects what one stream says, or in JSON one package."""

    def __init__(self, exact: bool = False) -> None:
        self.exact = exact
        self.tests: dict[str, Words] = {}
        self.done: list[tuple[str, Words]] = []
        self.errors: list[tuple[Any, Place | None, int | None, str, str]] = []
        self.crash: Words | None = None
        self.race: Words | None = None
        self._recent: deque[str] = deque(maxlen=MESSAGE_LINES)
        self._current = ""
        self._stack: Words | None = None
        self._call = ""

    def feed(self, text: str, evidence: Any, test: str = "") -> None:
        """Take the next line; ``test`` where the output says whose it is."""
        self._current = test or self._current
        if failed := _FAILED.match(text):
            self._current = failed[1]
            self._words(evidence).failed = True
        elif _PASSED.match(text):
            self._current = ""
        elif package := _PACKAGE.match(text):
            self._finish(package[1], package[2], package[3], evidence)
        elif current := _CURRENT.match(text):
            self._current = current[1]
        elif panic := _PANIC.match(text):
            self._panic(f"{panic[1]}: {panic[2]}", evidence)
        elif text == "WARNING: DATA RACE":
            self.race = self._stack = self.race or Words(evidence, ["data race"])
        elif error := _COMPILER.match(text):
            if error[4] != "too many errors":
                place = (error[1], int(error[2]))
                self.errors.append((evidence, place, int(error[3]), error[5] or "", error[4]))
        elif refusal := _GO.match(text):
            self.errors.append((evidence, None, None, "", refusal[1]))
        else:
            self._rest(text, evidence)

    def close(self) -> None:
        """Take what is still open where the output ends without a package's name."""
        self._finish("FAIL" if any(w.failed for w in self.tests.values()) else "?", "", "", None)

    def _words(self, evidence: Any) -> Words:
        if len(self.tests) >= MAX_KEPT and self._current not in self.tests:
            return Words(evidence)
        return self.tests.setdefault(self._current, Words(evidence))

    def _panic(self, message: str, evidence: Any) -> None:
        if self.crash is None:
            self.crash = self._stack = Words(evidence, [message])
            words = self.tests.get(self._current)
            self.crash.test = self._current if words and words.failed else ""

    def _rest(self, text: str, evidence: Any) -> None:
        if self._stack is not None and self._frame(self._stack, text):
            return
        if self._current and (words := _WORDS.match(text)):
            self._say(self._words(evidence), words)
        elif text.strip() and not text.startswith(("FAIL", "exit status", "===", "# ", "PASS", "-test.shuffle", "\t")):
            self._recent.append(text)

    def _say(self, test: Words, words: re.Match[str]) -> None:
        text = " ".join(words[3].split())
        if words[1] and words[1] != "testing.go":
            test.place = test.place or (words[1], int(words[2]))
        if text and len(test.said) < MESSAGE_LINES and not text.startswith(_NO_MESSAGE):
            test.said.append(text)

    def _frame(self, stack: Words, text: str) -> bool:
        """Read a line of a stack; keep the first frame in the own code, and the test that it is of."""
        if at := _AT.match(text):
            if stack.place is None and not _FOREIGN.search(at[1]):
                stack.place, stack.call = (at[1], int(at[2])), self._call
            elif stack.place is None:
                stack.call = ""
            return True
        if text.startswith("\t") and (running := re.match(r"^\t(\w{1,200}(?:/\S{1,200})?) \([\dhms.]{1,20}\)$", text)):
            stack.test = stack.test or running[1]
            return True
        if _GOROUTINE.match(text) or not text:
            stack.stacked = stack.stacked or bool(text)
            return True
        call = _CALL.match(text)
        if call is None or "." not in call[1]:
            return False
        self._call = call[1]
        # Output that was cut has functions without files.
        stack.call = stack.call or call[1]
        if not stack.test and (test := _TEST_CALL.search(call[1])):
            stack.test = test[1]
        return True

    def _finish(self, verdict: str, package: str, rest: str, evidence: Any) -> None:
        """Name the package's failed tests; where none failed, the package itself."""
        if verdict == "FAIL":
            if self.crash is not None and self.crash.test:
                words = self.tests.setdefault(self.crash.test, Words(self.crash.first))
                words.failed, words.place, words.call = True, self.crash.place, self.crash.call
                words.said = [self.crash.said[0], *words.said][:MESSAGE_LINES]
                self.crash = None
            failed = [(name, words) for name, words in self.tests.items() if words.failed]
            for name, words in failed:
                below = any(other.startswith(name + "/") for other, _ in failed[:MAX_KEPT])
                if not below or words.said:
                    self.done.append((f"{package}.{name}".lstrip("."), self._with_race(words)))
            if not failed and package and "failed]" not in rest:
                said = self.crash.said if self.crash else list(self._recent)
                self.done.append((package, Words(evidence, said, self.crash.place if self.crash else None)))
                self.crash = None
        self.tests.clear()
        self._recent.clear()
        self._current, self._stack = "", None

    def _with_race(self, words: Words) -> Words:
        if self.race is not None and RACE in words.said:
            words.said = [f"data race in {self.race.call}", *(text for text in words.said if text != RACE)]
            words.place, self.race = self.race.place, None
        return words


class Results:
    """What JSON says became of each test: the last word counts."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], str] = {}
        self._began: dict[tuple[str, str], Any] = {}
        self._failed: set[tuple[str, str]] = set()

    def feed(self, event: dict[str, str], evidence: Any) -> None:
        """Take the next event."""
        test, result = (event["Package"], event["Test"]), RESULTS.get(event["Action"])
        if not event["Test"] or result is None or (test not in self._last and len(self._last) >= MAX_TESTS):
            return
        self._last[test] = result
        if result == "unfinished":
            self._began[test] = evidence
        elif result == "failed":
            self._failed.add(test)

    def settle(self, answer: Answer) -> None:
        """Add the totals, and what was started and never ended: that says more than that its package failed."""
        if not self._last:
            return
        numbers = Counter(self._last.values())
        numbers["flaky"] = sum(self._last[test] == "passed" for test in self._failed)
        answer.count_tests(numbers)
        running = [test for test, result in self._last.items() if result == "unfinished"]
        packages = {package for package, _ in running}
        names = {f"{package}.{test}" for package, test in running}
        bare = [f for f in answer.findings if f.get("test_id") in packages and f["message"] == NO_WORDS]
        answer.findings = [f for f in answer.findings if f not in bare]
        for finding in answer.findings:
            if finding.get("test_id") in names:
                finding["status"] = "unfinished"
        known = {finding.get("test_id") for finding in answer.findings}
        above = {(package, test.rpartition("/")[0]) for package, test in running}
        for package, test in running:
            if (package, test) not in above and f"{package}.{test}" not in known:
                answer.add_unfinished(f"{package}.{test}", evidence=[self._began[package, test]])


def extract(request: Request) -> Answer:
    """Answer with the failed tests, the errors of the build, and what ended a program."""
    answer = Answer()
    results = Results()
    seen: set[tuple[object, ...]] = set()
    for reader in _readers(request, results):
        for name, words in reader.done:
            if (name,) not in seen:
                seen.add((name,))
                message = "\n".join(words.said) or NO_WORDS
                kind = "timeout" if message.startswith("panic: test timed out") else "panic"
                error_type = kind if message.startswith("panic: ") else None
                _add(answer, request, "test", words, message, test_id=name, error_type=error_type, exact=reader.exact)
        for error in reader.errors:
            _add_error(answer, request, error, seen)
        for crash in (reader.crash, reader.race):
            # Other programs say `panic: ` too, without goroutines.
            if crash is not None and crash.stacked:
                message = f"{crash.said[0]} in {crash.call}" if crash.call else crash.said[0]
                _add(answer, request, "crash", crash, message, code=_name(crash.said[0]))
    results.settle(answer)
    answer.findings = answer.findings[: request.max_findings]
    return answer


def _readers(request: Request, results: Results) -> list[Reader]:
    """Return the readers, fed and closed: one for each stream and for each package that JSON tells of."""
    readers: dict[str, Reader] = {}
    for line in request.lines():
        event = _event(line.text)
        if event is not None:
            results.feed(event, span(line))
        reader = _reader(readers, f"{line.source} {event['Package']}" if event else line.source, bool(event))
        _feed(reader, event, line.text.rstrip(), span(line))
    for report in request.reports:
        for event, evidence in _events(report.path, f"report:{report.name}"):
            results.feed(event, evidence)
            _feed(_reader(readers, f"{report.name} {event['Package']}", True), event, "", evidence)
    for reader in readers.values():
        reader.close()
    return list(readers.values())


def _reader(readers: dict[str, Reader], name: str, exact: bool) -> Reader:
    if name not in readers and len(readers) < MAX_KEPT:
        readers[name] = Reader(exact)
    return readers.get(name) or Reader(exact)


def _feed(reader: Reader, event: dict[str, str] | None, text: str, evidence: Any) -> None:
    if event is None:
        reader.feed(text, evidence)
    elif event["Action"] in ("output", "build-output"):
        reader.feed(event["Output"].rstrip("\n"), evidence, event["Test"])


def _events(path: str, source: str) -> Iterator[tuple[dict[str, str], Any]]:
    at = 0
    with open(path, "rb") as lines:
        while at < MAX_REPORT_BYTES and (raw := lines.readline(MAX_EVENT_BYTES)):
            if event := _event(raw.decode("utf-8", "replace")):
                yield event, {"source": source, "start": at, "end": at + len(raw.rstrip())}
            at += len(raw)


def _event(text: str) -> dict[str, str] | None:
    if not text.startswith("{") or '"Action":"' not in text:
        return None
    try:
        event = json.loads(text)
    except (ValueError, RecursionError):
        return None
    fields = ("Action", "Package", "Test", "Output", "ImportPath")
    return {name: value if isinstance(value := event.get(name), str) else "" for name in fields}


def _add_error(answer: Answer, request: Request, error: Any, seen: set[tuple[object, ...]]) -> None:
    evidence, place, column, code, message = error
    name = code or _name(message)
    if (place, name) in seen:
        return
    seen.add((place, name))
    transient = _NETWORK.search(message) if place is None or _MODULE.match(message) else None
    kind = "infrastructure" if transient else "diagnostic"
    cause = {
        "kind": "transient" if transient else "deterministic",
        "rule": "go-network" if transient else "go-error",
        "evidence": cut_bytes(message, 500),
    }
    _add(answer, request, kind, Words(evidence, place=place), message, code=name, column=column, cause=cause)


def _add(
    answer: Answer, request: Request, kind: str, words: Words, message: str, *, exact: bool = False, **rest: Any
) -> None:
    answer.add(
        kind,
        message=cut_bytes(message, MAX_MESSAGE_BYTES),
        confidence="exact" if exact else "likely",
        path=request.relative(words.place[0]) if words.place else None,
        line=words.place[1] if words.place else None,
        evidence=[words.first] if words.first else [],
        **rest,
    )


def _name(message: str) -> str:
    return cut_bytes(message.partition("; ")[0].strip(), MAX_NAME_BYTES)


if __name__ == "__main__":
    main(extract)
