"""What problem matchers find: expressions that the user brings, tried on every line of the output.

The first matcher that fits a line has it, and all others forget what they were in the middle of. Of a matcher of several
lines the last pattern is tried first, and one line that does not fit ends what was begun. Errors are findings; a warning is
one that nobody should trust as the reason of a failure.

The expressions were checked and translated before. One may still take years on an unfortunate line, so the time of every
owner is sampled; one that takes too long is left out, as if it had never been there, and named.
"""

from __future__ import annotations

import posixpath
import re
import signal
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple, Self

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

# Of a longer stream only the end is read; `run` keeps less, and an honest expression needs a fraction of its time for so much.
MAX_STREAM_BYTES = 8 * 1024 * 1024
# A longer line is data; an expression with a few wildcards would need seconds for it.
MAX_LINE_CHARS = 4096
# With its escapes; a line of twice the size has been cut before it comes here.
MAX_RAW_BYTES = 32 * 1024
MAX_MESSAGE_BYTES = 1024
MAX_NAME_BYTES = 160
MAX_PATH_BYTES = 400
# CPU time that the expressions of one owner may take for the whole output, and how finely it is measured: an honest one needs
# microseconds a line.
OWNER_SECONDS = 2.0
SAMPLE_SECONDS = 0.02
# Beyond so many owners that take too long nothing is found in time.
MAX_LEFT_OUT = 3

ERROR, WARNING, NOTICE = "error", "warning", "notice"
VALUES = ("file", "fromPath", "line", "column", "severity", "code", "message")
_OMITTED = re.compile(r"\[\d{1,20} bytes omitted\]")
_ROOTED = re.compile(r"/|[A-Za-z]:[\\/]")


class SlowExpressionError(Exception):
    """The expressions of one owner take too long on this output."""


class Pattern(NamedTuple):
    """One pattern: its expression, which group says what, and whether it can fit one line after the other."""

    expression: re.Pattern[str]
    groups: dict[str, int]
    loop: bool


class Running(NamedTuple):
    """A match of several lines so far: what its groups said, and its first line (None where a finding has it already)."""

    values: dict[str, str]
    first: Line | None


class Matcher:
    """A matcher and what it is in the middle of: for every pattern but the last one the match that ends with it."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.owner: str = data["owner"]
        self.severity: str = data["severity"]
        self.from_path: str = data["fromPath"]
        self._patterns = [_pattern(entry) for entry in data["pattern"]]
        self._last = len(self._patterns) - 1
        self._running: list[Running | None] = []
        self.reset()

    def reset(self) -> None:
        """Forget what was begun."""
        self._begun = False
        self._running = [None] * self._last

    def match(self, line: Line) -> Running | None:
        """Take the next line; return the match that it completes."""
        if not self._last:
            return self._fit(0, line)
        if self._begun and (done := self._fit(self._last, line)):
            before = self._running[-1]
            self.reset()
            if before and self._patterns[self._last].loop:
                self._set([*self._running[:-1], before._replace(first=None)])
            return done
        # Later ones first: each goes on from what the line before has left.
        begun = [self._fit(i, line) for i in range(1, self._last)] if self._begun else self._running[1:]
        self._set([self._fit(0, line), *begun])
        return None

    def _set(self, running: list[Running | None]) -> None:
        self._running = running
        self._begun = any(running)

    def _fit(self, number: int, line: Line) -> Running | None:
        """Return what the match before a pattern becomes with this line, None where there is none or the line does not fit."""
        before = self._running[number - 1] if number else None
        if number and before is None:
            return None
        pattern = self._patterns[number]
        found = pattern.expression.search(line.text)
        if found is None:
            return None
        said = {key: found[group] or "" for key, group in pattern.groups.items()}
        return before._replace(values=before.values | said) if before else Running(said, line)


class Watch:
    """Samples which owner's expressions the CPU time goes to, and interrupts those that take too much of it."""

    def __init__(self) -> None:
        self.owner: str | None = None
        self._spent: dict[str, float] = {}

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, SAMPLE_SECONDS, SAMPLE_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, self._before)

    def _sample(self, _number: int, _frame: FrameType | None) -> None:
        if self.owner is None:
            return
        self._spent[self.owner] = self._spent.get(self.owner, 0.0) + SAMPLE_SECONDS
        if self._spent[self.owner] >= OWNER_SECONDS:
            owner, self.owner = self.owner, None
            raise SlowExpressionError(owner)


def extract(request: Request) -> Answer:
    """Answer with what the matchers of the request find; owners that take too long are named as what is missing."""
    data: list[dict[str, Any]] = request.options.get("matchers") or []
    slow: list[str] = []
    while True:
        matchers = [Matcher(entry) for entry in data if entry["owner"] not in slow]
        try:
            with Watch() as watch:
                answer = _answer(request, matchers, watch)
        except SlowExpressionError as error:
            slow.append(str(error))
            if len(slow) > MAX_LEFT_OUT:
                raise TimeoutError(_missing(slow)) from None
        else:
            answer.incomplete = _missing(slow) if slow else None
            return answer


def _missing(slow: Sequence[str]) -> str:
    owners = ", ".join(f"'{owner}'" for owner in slow)
    return f"left out what takes too long on this output: the expressions of {owners}"


def _answer(request: Request, matchers: Sequence[Matcher], watch: Watch) -> Answer:
    """Return the findings, errors before warnings, each once; a notice is none."""
    found: dict[str, dict[tuple[Any, ...], dict[str, Any]]] = {ERROR: {}, WARNING: {}, NOTICE: {}}
    for severity, finding in _findings(request, matchers, watch):
        kept = found[severity]
        if len(kept) < request.max_findings:
            kept.setdefault((finding["path"], finding["line"], finding["column"], finding["message"]), finding)
        if len(found[ERROR]) == request.max_findings:
            break
    answer = Answer()
    for finding in [*found[ERROR].values(), *found[WARNING].values()][: request.max_findings]:
        answer.add("diagnostic", **finding)
    return answer


def _findings(request: Request, matchers: Sequence[Matcher], watch: Watch) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield severity and finding of every line that a matcher has."""
    source = ""
    for line in request.lines(MAX_STREAM_BYTES) if matchers else ():
        gap = _is_gap(line)
        if gap or line.source != source:
            # What stands on both sides does not belong together.
            _reset(matchers)
            source = line.source
        if not gap and (found := _first(request, matchers, line, watch)):
            yield found


def _is_gap(line: Line) -> bool:
    """Return whether a line is one that nothing may fit: too long, maybe cut, or the mark of what was left out."""
    long = len(line.text) > MAX_LINE_CHARS or line.end - line.start > MAX_RAW_BYTES
    return long or _OMITTED.fullmatch(line.text) is not None


def _first(
    request: Request, matchers: Sequence[Matcher], line: Line, watch: Watch
) -> tuple[str, dict[str, Any]] | None:
    """Return what the first matcher that has something to say makes of a line."""
    for matcher in matchers:
        watch.owner = matcher.owner
        done = matcher.match(line)
        watch.owner = None
        if done is not None:
            _reset([other for other in matchers if other is not matcher])
            if found := _finding(request, matcher, done, line):
                return found
    return None


def _reset(matchers: Sequence[Matcher]) -> None:
    for matcher in matchers:
        matcher.reset()


def _finding(request: Request, matcher: Matcher, done: Running, line: Line) -> tuple[str, dict[str, Any]] | None:
    """Return severity and finding of a match; None without a message, or of another severity than the known ones."""
    said = {key: done.values.get(key, "").strip() for key in VALUES}
    severity = (said["severity"] or matcher.severity).lower()
    if not said["message"] or severity not in (ERROR, WARNING, NOTICE):
        return None
    finding = {
        "code": cut_bytes(_name(matcher.owner, said), MAX_NAME_BYTES),
        "message": cut_bytes(said["message"], MAX_MESSAGE_BYTES),
        "path": _path(request, said["file"], said["fromPath"] or matcher.from_path),
        "line": _number(said["line"]),
        "column": _number(said["column"]),
        "evidence": [span(done.first or line, line)],
        "confidence": "likely" if severity == ERROR else "guess",
        "status": "failed" if severity == ERROR else severity,
    }
    return severity, finding


def _name(owner: str, said: dict[str, str]) -> str:
    """Return what a finding is called: a bare number says nothing without its owner."""
    code = said["code"]
    return f"{owner} {code}" if code.isdigit() else code or said["message"]


def _path(request: Request, file: str, base: str) -> str | None:
    """Return the path of a file, which is relative to the directory of ``base`` where there is one."""
    if not file:
        return None
    if base and not _ROOTED.match(file):
        file = posixpath.join(posixpath.dirname(base), file)
    return cut_bytes(request.relative(posixpath.normpath(file)), MAX_PATH_BYTES)


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else None


def _pattern(entry: dict[str, Any]) -> Pattern:
    groups = {key: entry[key] for key in VALUES if key in entry}
    return Pattern(re.compile(entry["regexp"], re.ASCII), groups, bool(entry.get("loop")))


if __name__ == "__main__":
    main(extract)
