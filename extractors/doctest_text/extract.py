"""Failed examples from what doctest prints, by itself, under `unittest` or under a builder of documentation."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kos_retry.sdk import Answer, Line, Request, main, one_line, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 2048
MAX_LINES = 40
MAX_EXAMPLES = 2000

_PLACE = re.compile(r'^File "([^"]{1,1000})", line (\d{1,9}|\?), in (\S.{0,400})$')
_PART = re.compile(r"^(Expected|Got|Exception raised|Differences \(.{1,60}\)):$|^Expected nothing$")
_RULE = re.compile(r"^(?:\*{10,400}|-{10,400})$")
_RAISED = re.compile(r"^ {4}((?:[^\W\d]\w{0,100}\.){0,16}[^\W\d]\w{0,100})(?:: (.{0,4000}))?$")


@dataclass(slots=True)
class Example:
    """One example that failed; ``parts`` is what is said below each heading."""

    name: str
    path: str
    number: int | None
    first: Line
    last: Line
    parts: dict[str, list[str]] = field(default_factory=dict)
    part: str = ""

    def feed(self, line: Line) -> bool:
        """Take the next line; return whether the example goes on."""
        text = line.text.rstrip()
        if text == "Failed example:" or _PART.match(text):
            self.part = text.removesuffix(":").partition(" (")[0]
            self.parts.setdefault(self.part, [])
        elif not self.part or (text and not text.startswith("    ")):
            return False
        elif text and len(self.parts[self.part]) < MAX_LINES:
            self.parts[self.part].append(text)
        self.last = line if text else self.last
        return True


class Reader:
    """Cuts the examples out of one stream."""

    def __init__(self) -> None:
        self.examples: list[Example] = []
        self._open: Example | None = None

    def feed(self, line: Line) -> None:
        """Take the next line of the stream."""
        if place := _PLACE.match(line.text):
            number = int(place[2]) if place[2].isdecimal() else None
            self._open = Example(place[3].strip(), place[1], number, line, line)
        elif self._open is not None and (_RULE.match(line.text) or not self._open.feed(line)):
            self._open = None
        elif self._open is not None and line.text == "Failed example:" and len(self.examples) < MAX_EXAMPLES:
            self.examples.append(self._open)


def extract(request: Request) -> Answer:
    """Answer with the failed docstrings of all streams, each with the first of its examples that failed."""
    answer = Answer()
    readers = request.read(Reader)
    seen: set[str] = set()
    for example in (example for reader in readers.values() for example in reader.examples):
        name = _test_id(request, example)
        if name not in seen:
            _add(answer, request, name, example)
        seen.add(name)
    answer.findings = answer.findings[: request.max_findings]
    return answer


def _test_id(request: Request, example: Example) -> str:
    """Return the dotted name of the docstring; a name that says little alone comes with its file."""
    if "." in example.name:
        return example.name
    return f"{request.relative(example.path)} > {example.name}"


def _add(answer: Answer, request: Request, name: str, example: Example) -> None:
    code = one_line(example.parts.get("Failed example", ()))
    raised = None
    if "Exception raised" in example.parts:
        raised = next((r for text in reversed(example.parts["Exception raised"]) if (r := _RAISED.match(text))), None)
        said = (raised[2] or "") if raised else "an exception was raised"
        message = f"{said} (in {code})".strip()
    elif "Differences" in example.parts:
        message = f"{code}: {one_line(example.parts['Differences'])}"
    else:
        expected = one_line(example.parts.get("Expected", ())) or "nothing"
        message = f"{code}: expected {expected}, got {one_line(example.parts.get('Got', ())) or 'nothing'}"
    answer.add(
        "test",
        status="error" if raised else "failed",
        test_id=name,
        error_type=raised[1] if raised else None,
        message=cut_bytes(message, MAX_MESSAGE_BYTES),
        path=request.relative(example.path),
        line=example.number,
        evidence=[span(example.first, example.last)],
    )


if __name__ == "__main__":
    main(extract)
