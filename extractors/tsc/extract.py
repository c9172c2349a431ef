"""Errors of the TypeScript compiler, plain or pretty, and of bundlers that report in its words."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kos_retry.sdk import Answer, Line, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 2048
MESSAGE_LINES = 8
MAX_ERRORS = 5000

MARK = "error TS"
_PLAIN = re.compile(r"^\s{0,16}(\S.{0,600}?)\((\d{1,9}),(\d{1,9})\): error (TS\d{1,6}): (.{1,4000})")
_PRETTY = re.compile(r"^\s{0,16}(\S.{0,600}?):(\d{1,9}):(\d{1,9}) - error (TS\d{1,6}): (.{1,4000})")
_GLOBAL = re.compile(r"^()()()error (TS\d{1,6}): (.{1,4000})")
# A bundler heads the compiler's words with the place, on a line of its own.
_PLACE = re.compile(r"^(?:\[tsl\] )?ERROR in (\S.{0,600}?)(?::(\d{1,9}):(\d{1,9})|\((\d{1,9}),(\d{1,9})\))$")
_EXCERPT = re.compile(r"^\s{0,16}>? {0,8}\d{0,7} \|")
_BARE = re.compile(r"^\s{0,8}(TS\d{1,6}): (.{1,4000})$")


@dataclass(slots=True)
class Error:
    """One error: where it is, its code, and what it says."""

    place: tuple[str, int, int]
    code: str
    said: list[str]
    first: Line
    last: Line


@dataclass(slots=True)
class Reader:
    """Collects the errors of one stream, each once."""

    errors: dict[tuple[object, ...], Error] = field(default_factory=dict)
    open: Error | None = None
    heading: tuple[str, int, int] | None = None

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        text = line.text.rstrip()
        if MARK in text and (found := _PLAIN.match(text) or _PRETTY.match(text) or _GLOBAL.match(text)):
            self._begin((found[1], int(found[2] or 0), int(found[3] or 0)), found[4], found[5], line)
        elif self.heading and (bare := _BARE.match(text)):
            self._begin(self.heading, bare[1], bare[2], line)
        elif self.open is not None and text.startswith("  ") and not _EXCERPT.match(text):
            self._continue(self.open, line)
        else:
            self.open = None
        place = _PLACE.match(text)
        self.heading = (place[1], int(place[2] or place[4]), int(place[3] or place[5])) if place else None

    def _begin(self, place: tuple[str, int, int], code: str, message: str, line: Line) -> None:
        self.open = Error(place, code, [message], line, line)
        if len(self.errors) < MAX_ERRORS:
            self.errors.setdefault((*place, code, message), self.open)

    def _continue(self, error: Error, line: Line) -> None:
        """Take a line that is indented below an error: it says more of why."""
        if len(error.said) < MESSAGE_LINES:
            error.said.append(line.text.rstrip())
            error.last = line


def extract(request: Request) -> Answer:
    """Answer with the errors of all streams."""
    answer = Answer()
    readers = request.read(Reader)
    errors = {key: error for reader in readers.values() for key, error in reader.errors.items()}
    for error in list(errors.values())[: request.max_findings]:
        _add(answer, request, error)
    return answer


def _add(answer: Answer, request: Request, error: Error) -> None:
    path, line, column = error.place
    answer.add(
        "diagnostic",
        code=error.code,
        message=cut_bytes("\n".join(error.said), MAX_MESSAGE_BYTES),
        path=request.relative(path) or None,
        line=line or None,
        column=column or None,
        evidence=[span(error.first, error.last)],
        cause={"kind": "deterministic", "rule": "tsc-error", "evidence": f"{error.code}: {error.said[0]}"[:400]},
    )


if __name__ == "__main__":
    main(extract)
