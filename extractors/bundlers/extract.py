"""What JavaScript bundlers cannot resolve or parse: a message, and the place on a line near it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_NAME_BYTES = 200
MAX_MESSAGE_BYTES = 1024
MAX_KEPT = 1000
# How far below a message its place stands.
PLACE_LINES = 4

# Messages whose place follows: of esbuild, Rollup, Rolldown, Parcel and Bun.
_MESSAGE = re.compile(
    r"^(?:[\u2718X] \[ERROR\] (?P<boxed>\S.{0,600})|\[!\] (?:\([^)]{1,80}\) )?(?:RollupError: )?(?P<rollup>\S.{0,600})|\[[A-Z]{2,20}_[A-Z_]{2,40}\] (?P<coded>\S.{0,600})"
    r"|@parcel/[\w-]{1,60}: (?P<parcel>\S.{0,600})|error: (?P<bun>Could not resolve: .{1,400})"
    r"|\[vite(?:[:\w-]{0,60})\]:? (?P<vite>\S.{0,600})|(?P<plain>Could not resolve \".{1,300}\" from \".{1,300}\"))$"
)
_PLACE = re.compile(
    r"^\s{0,12}(?:\u256d\u2500\[ |file: |at )?(?P<path>[^\s:(][^\s:(]{0,400}\.\w{1,8})(?:(?::| \()(?P<line>\d{1,9}):(?P<column>\d{1,9})\)?)?:?(?: \])?$"
)
_LOCATED = re.compile(
    r"^\s{0,8}(?P<path>[^\s:][^:]{0,400}?):(?P<line>\d{1,9}):(?P<column>\d{1,9}): ERROR: (?P<said>\S.{0,600})$"
)
# Places whose message follows: of webpack, and of what is built on it.
_HEADING = re.compile(
    r"^(?:ERROR in )(?P<path>\S{1,400})(?:[ :](?P<line>\d{1,9}):(?P<column>\d{1,9})(?:-[\d:]{1,20})?)?$|^(?P<bare>\./\S{1,400}?)(?::(?P<at>\d{1,9}):\d{1,9})?$"
)
_RESOLVED = re.compile(
    r"^(?:Module not found|Module parse failed|Module build failed|Syntax ?Error|export '|TS\d{4}: |Failed to compile)"
)
_OWN_PLACE = re.compile(r"^(\S{1,400}\.\w{1,8}) \((\d{1,9}):(\d{1,9})\): ")
_SUGGESTED = re.compile(r" in '/[^']{1,400}'$| \[plugin [\w:@/.-]{1,80}\]$")
_FILE = re.compile(r"\.\w{1,8}$")
_NETWORK = re.compile(r"ECONN|ETIMEDOUT|EAI_AGAIN|fetch failed|ENOSPC|ENOMEM|heap out of memory")


@dataclass(slots=True)
class Fault:
    """One error of a bundler, and its place."""

    message: str
    first: Line
    last: Line
    path: str | None = None
    line: int | None = None
    column: int | None = None
    placed: bool = False
    from_zero: bool = False


def extract(request: Request) -> Answer:
    """Answer with the errors of all streams, each once."""
    answer = Answer()
    seen: set[tuple[object, ...]] = set()
    for fault in _faults(request):
        path = request.relative(fault.path) if fault.path else None
        key = (fault.message, path, fault.line)
        if fault.placed and fault.path is None:
            continue
        if key not in seen and len(answer.findings) < request.max_findings:
            seen.add(key)
            _add(answer, fault, path)
    return answer


def _faults(request: Request) -> Iterator[Fault]:
    fault: Fault | None = None
    heading: tuple[re.Match[str], Line] | None = None
    left = kept = 0
    for line in request.lines():
        text = line.text.rstrip()
        if heading is not None and (below := _below(heading, text, line)):
            kept += 1
            yield below
        elif said := _said(text, line):
            if fault is not None:
                yield fault
            fault, left, kept = said, PLACE_LINES, kept + 1
        elif fault is not None and text and (_at(fault, text, line) or not (left := left - 1)):
            yield fault
            fault = None
        place = _HEADING.match(text)
        heading = (place, line) if place else None
        if kept >= MAX_KEPT:
            break
    if fault is not None:
        yield fault


def _said(text: str, line: Line) -> Fault | None:
    if located := _LOCATED.match(text):
        return Fault(located["said"], line, line, located["path"], int(located["line"]), int(located["column"]) + 1)
    message = _MESSAGE.match(text)
    if message is None:
        return None
    said = next(said for said in message.group("boxed", "rollup", "coded", "parcel", "bun", "vite", "plain") if said)
    # Of anybody's `[SOME_CODE] message` only a place below makes an error of a bundler.
    fault = Fault(
        said, line, line, placed=bool(message["coded"]), from_zero=bool(message["boxed"] or message["rollup"])
    )
    if own := _OWN_PLACE.match(said):
        fault.message = said[own.end() :]
        fault.path, fault.line, fault.column = own[1], int(own[2]), int(own[3]) + 1
    return fault


def _at(fault: Fault, text: str, line: Line) -> bool:
    """Take the place of an error from a line below it; return whether it was there."""
    place = _PLACE.match(text)
    if place is None or fault.path is not None:
        return fault.path is not None
    fault.path, fault.last = place["path"], line
    if place["line"]:
        fault.line, fault.column = int(place["line"]), int(place["column"]) + fault.from_zero
    return True


def _below(heading: tuple[re.Match[str], Line], text: str, line: Line) -> Fault | None:
    place, first = heading
    if not text or (place["bare"] and not _RESOLVED.match(text)):
        return None
    path = place["bare"] or place["path"]
    at = place["at"] or place["line"]
    fault = Fault(text.strip(), first, line, path if _FILE.search(path) else None, int(at) if at else None)
    fault.column = int(place["column"]) + 1 if place["column"] else None
    return fault


def _add(answer: Answer, fault: Fault, path: str | None) -> None:
    message = _SUGGESTED.sub("", fault.message)
    cause = None
    if not _NETWORK.search(message):
        cause = {
            "kind": "deterministic",
            "rule": "bundlers-error",
            "evidence": cut_bytes(fault.first.text.strip(), 500),
            "fix": cut_bytes(f"correct what is reported in {path}" if path else "correct what is reported", 500),
        }
    answer.add(
        "diagnostic",
        code=cut_bytes(message, MAX_NAME_BYTES),
        message=cut_bytes(message, MAX_MESSAGE_BYTES),
        path=path,
        line=fault.line if path else None,
        column=fault.column if path else None,
        evidence=[span(fault.first, fault.last)],
        cause=cause,
    )


if __name__ == "__main__":
    main(extract)
