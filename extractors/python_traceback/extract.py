"""Exceptions from Python tracebacks in the output.

A program dies of the last one; what stands before was most likely handled and logged, so it is only a guess. So is the last one
where it says so itself, or where the program went on and says what failed instead.
Of a chain the root cause is told, of an exception group every leaf. Where `unittest` heads a traceback, it is
that test's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from causes import cause_of
from traces import SYNTAX, Reader, Trace, chains, printed_together

from kos_retry.sdk import Answer, Request, main, span
from kos_retry.text.bounds import cut_bytes

MAX_MESSAGE_BYTES = 2048
# What a wrapper says after the program that died: more lines than this mean that it went on.
LAST_WORDS = 10

_FOREIGN = re.compile(r"^<|/(?:site|dist)-packages/|/lib/python\d[\d.]*/|\\lib\\", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Failure:
    """A chain of tracebacks, the root first; the test that it is of, if any; whether the program died of it."""

    chain: list[Trace]
    test: str
    ended: bool


def extract(request: Request) -> Answer:
    """Answer with the exceptions of all streams, each once, the one that ended the program as likely."""
    readers = request.read(lambda: Reader(request.max_findings))
    deadly = next((s for s in ("stderr", *readers) if s in readers and readers[s].traces), None)
    answer = Answer()
    seen: dict[tuple[object, ...], bool] = {}
    for source, reader in readers.items():
        units = list(printed_together(reader.traces))
        for number, unit in enumerate(units, 1):
            ended = (
                source == deadly
                and number == len(units)
                and reader.lines_since <= LAST_WORDS
                and not (reader.went_on or unit[-1].survived)
                and request.exit_code != 0
            )
            for chain in chains(unit):
                _add(answer, request, Failure(chain, unit[0].test, ended), seen)
    answer.drop_mixed_transience()
    answer.findings = answer.findings[-request.max_findings :]
    return answer


def _add(answer: Answer, request: Request, failure: Failure, seen: dict[tuple[object, ...], bool]) -> None:
    root, outer = failure.chain[0], failure.chain[-1]
    certain = failure.ended or bool(failure.test)
    message = _message(root)
    cause = cause_of(root.type, message) if certain else None
    if (outer.type, _message(outer)) != (root.type, message):
        message = f"{message} (then {outer.type}: {outer.message[0]})".strip()
    message = cut_bytes(message, MAX_MESSAGE_BYTES) or root.type
    path, line = _location(request, root)
    key = (failure.test,) if failure.test else (root.type, message, path, line)
    if key in seen and (failure.test or not failure.ended):
        return
    if key in seen:
        # Logged before, and in the end the program died of it.
        answer.findings = [f for f in answer.findings if (f["error_type"], f["message"]) != (root.type, message)]
    seen[key] = failure.ended
    answer.add(
        "test" if failure.test else "crash",
        test_id=failure.test or None,
        error_type=root.type,
        message=message,
        path=path,
        line=line,
        evidence=[span(root.first, root.last)],
        confidence="likely" if certain else "guess",
        cause=cause,
    )


def _message(trace: Trace) -> str:
    """Return the message up to its last indented line: what follows at the margin is often another's."""
    kept = len(trace.message)
    while kept > 1 and not trace.message[kept - 1].startswith((" ", "- ", "+ ", "? ")):
        kept -= 1
    return "\n".join(line.rstrip() for line in trace.message[:kept]).strip()


def _location(request: Request, trace: Trace) -> tuple[str | None, int | None]:
    """Return the innermost frame in the workspace, else in no library; where a library is installed varies."""
    frames = [(request.relative(path), line, path) for path, line in trace.frames if not path.startswith("<")]
    own = [f for f in frames if not _FOREIGN.search(f[0])]
    inside = [f for f in own if f[0] != f[2] or not f[2].startswith("/")]
    if trace.type in SYNTAX:
        own = inside = frames
    path, line, _ = next((found[-1] for found in (inside, own) if found), (None, None, None))
    return path, line


if __name__ == "__main__":
    main(extract)
