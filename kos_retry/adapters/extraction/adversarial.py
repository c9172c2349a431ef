"""What hostile circumstances do to a recorded output, and what an extractor's answer must be all the same.

`kos-retry extractors check` and the tests of the bundled extractors use the same ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from kos_retry.errors import InputError

# What other programs write between an output's lines: nothing that speaks of a failure.
_NOISE = (
    b"2026-03-01T08:15:42Z worker 7 handled request 4711 of queue orders\n",
    b"[12:00:01] step 3 of 9: compressing assets ... done\n",
    b"\n",
    b"  42% |#########             | 12.5 MiB/s\n",
)
_JUNK = b"\xff\xfe\xc3( \xe2\x82 \xed\xa0\x80 \xf4\x90\x80\x80\n"
# A word, but not one in an escape sequence, and no character that is cut through; and what a program writes for programs,
# which has no colours.
_WORD = re.compile(rb"(\x1b[^a-zA-Z]{0,64}[a-zA-Z])|([^\s\x1b]{1,200}(?![\x80-\xbf]))")
_FOR_PROGRAMS = (b"{", b"[{")
_TIMES = 10
_ALL = ("kind", "test_id", "error_type", "code")


class Variant(NamedTuple):
    """A changed output: ``streams`` are changed by ``change``, report files too if ``reports`` says so.

    ``equal`` says that exactly what was found in the original must be found, else nothing must that was not. ``names``
    are the fields that this holds for.
    """

    name: str
    change: Callable[[bytes], bytes]
    names: tuple[str, ...] = ("test_id",)
    equal: bool = False
    reports: bool = False


def variants(step: int) -> Iterator[Variant]:
    """Yield the variants of an output, among them the output cut off at every ``step`` percent."""
    for percent in range(0, 100, step):
        # What is left of an output can be another failure.
        yield Variant(f"cut off at {percent} %", _cut(percent), names=(), reports=True)
    yield Variant("CRLF", lambda data: re.sub(rb"\r?\n", b"\r\n", data), names=_ALL, equal=True, reports=True)
    yield Variant("colours", _coloured, names=_ALL, equal=True)
    # Another line in the middle of what belongs together can change what it says.
    yield Variant("invalid UTF-8", lambda data: _between(data, (_JUNK,)), names=())
    yield Variant("interleaved with other output", lambda data: _between(data, _NOISE), names=())
    yield Variant(
        "amid other output", lambda data: b"".join((*_NOISE, _JUNK, b"\n", _whole(data), b"\n", _JUNK, *_NOISE))
    )
    # Of tests that are called the same, the second may get another name.
    yield Variant(f"{_TIMES} times over", lambda data: _whole(data) * _TIMES, names=())


def faults(answer: Any, sizes: Mapping[str, int], limit: int) -> list[str]:
    """Return what is wrong with an answer whatever it was asked; ``sizes`` are those of the sources in bytes."""
    from kos_retry.model import ExtractorAnswer

    try:
        valid = ExtractorAnswer.from_json(answer)
    except InputError as error:
        return [f"the answer is not valid: {error}"]
    found = answer.get("findings", ())
    out = [f"findings: {len(found)} of them, {limit} are allowed"] if len(found) > limit else []
    for number, finding in enumerate(valid.findings):
        if not (finding.message or finding.test_id):
            out.append(f"findings.{number}: neither message nor test_id says what failed")
        out += [
            f"findings.{number}.evidence: bytes {span.start} to {span.end} of '{span.source}' are not there"
            for span in finding.evidence
            if not span.start <= span.end <= sizes.get(span.source, -1)
        ]
    return out


def differences(variant: Variant, original: Any, changed: Any) -> list[str]:
    """Return what an answer to a variant has that the answer to the original has not, or must have."""
    before, after = _named(original, variant.names), _named(changed, variant.names)
    out = [f"invents {_told(name)}" for name in sorted(after - before)]
    return out + ([f"misses {_told(name)}" for name in sorted(before - after)] if variant.equal else [])


def _named(answer: Any, names: tuple[str, ...]) -> set[tuple[str, ...]]:
    rows = {tuple(str(finding.get(name) or "") for name in names) for finding in answer.get("findings", ())}
    return {row for row in rows if any(row)}


def _told(name: tuple[str, ...]) -> str:
    return " ".join(part for part in name if part)


def _coloured(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join(line if line.lstrip().startswith(_FOR_PROGRAMS) else _WORD.sub(_colour, line) for line in lines)


def _colour(word: re.Match[bytes]) -> bytes:
    return word[0] if word[1] else b"\x1b[1;31m" + word[0] + b"\x1b[0m"


def _cut(percent: int) -> Callable[[bytes], bytes]:
    return lambda data: data[: len(data) * percent // 100]


def _whole(data: bytes) -> bytes:
    """Return an output that ends with a line end."""
    return data if data.endswith(b"\n") else data + b"\n"


def _between(data: bytes, lines: tuple[bytes, ...]) -> bytes:
    """Put other lines between all lines, in turn."""
    out = []
    for number, line in enumerate(data.splitlines(keepends=True)):
        out += [line, lines[number % len(lines)]]
    return b"".join(out)
