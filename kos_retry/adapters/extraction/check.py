"""Checking an extractor: its recorded cases, whether it always answers the same, and what hostile output does to it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

from kos_retry.adapters.extraction import child
from kos_retry.adapters.extraction.adversarial import Variant, differences, faults, variants
from kos_retry.adapters.extraction.cases import Case, cases_of, parts, sizes
from kos_retry.adapters.extraction.manifest import Manifest
from kos_retry.errors import ExtractorError, ExtractorTimeoutError, InputError
from kos_retry.limits import MAX_FINDINGS

_SEEDS = ("0", "0", "4711")
_SHOWN_CHARS = 80

Request = dict[str, Any]


class Problem(NamedTuple):
    """What is wrong, in which case; no case means the extractor as a whole."""

    case: str
    what: str


class Checker:
    """Checks one extractor; closed at the end. One that can be hosted is, for starting it anew takes most of the time."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._hosts = (child.Host(), child.Host())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for host in self._hosts:
            host.close()

    def problems(self, step: int = 1) -> Iterator[Problem]:
        """Yield what is wrong; outputs are cut off at every ``step`` percent."""
        cases = cases_of(self._manifest.directory)
        if not cases:
            yield Problem("", f"no cases: {self._manifest.directory / 'fixtures'} has no directory")
        for number, case in enumerate(cases):
            try:
                request, expected = case.request(), case.expected()
                problems = list(self._recorded(case, request, expected, first=number == 0))
                yield from problems
                # What does not even hold for the output as it was needs no torture.
                if not problems:
                    yield from self._hostile(case, request, expected, step)
            except InputError as error:
                yield Problem(case.name, str(error))
            except (OSError, KeyError, TypeError, AttributeError) as error:
                yield Problem(case.name, f"request.json: {type(error).__name__}: {error}")

    def _recorded(self, case: Case, request: Request, expected: Any, *, first: bool) -> Iterator[Problem]:
        """Ask several times, once with another hash seed, and compare with what was recorded."""
        yield from (
            Problem(case.name, f"expected.json: {fault}") for fault in faults(expected, sizes(request), _limit(request))
        )
        for ask in self._askers(also_by_command=first):
            try:
                answer = ask(request)
            except ExtractorError as error:
                yield Problem(case.name, str(error))
                return
            if different := difference(_normal(expected), _normal(answer)):
                yield Problem(case.name, f"not the expected answer: {different}")
                return

    def _askers(self, *, also_by_command: bool) -> list[Callable[[Request], Any]]:
        script = self._manifest.script()
        by_command = [self._command(seed) for seed in _SEEDS]
        if script is None:
            return by_command
        # Each host has a hash seed of its own.
        first, second = (self._hosted(host, script) for host in self._hosts)
        return [*by_command[: 1 if also_by_command else 0], first, first, second]

    def _command(self, seed: str) -> Callable[[Request], Any]:
        manifest, environment = self._manifest, {"PYTHONHASHSEED": seed}
        return lambda request: child.ask(
            manifest.argv(),
            json.dumps(request).encode(),
            directory=manifest.directory,
            seconds=manifest.timeout,
            environment=environment,
        )

    def _hosted(self, host: child.Host, script: Path) -> Callable[[Request], Any]:
        return lambda request: host.ask(script, request, self._manifest.timeout)

    def _hostile(self, case: Case, request: Request, expected: Any, step: int) -> Iterator[Problem]:
        ask = self._askers(also_by_command=False)[0]
        with tempfile.TemporaryDirectory(prefix="kos-retry-") as directory:
            for variant, changed in changes(request, Path(directory), step):
                try:
                    found = wrong(variant, changed, expected, ask(changed))
                    yield from (Problem(case.name, f"{variant.name}: {what}") for what in found)
                except ExtractorError as error:
                    yield Problem(case.name, f"{variant.name}: {error}")
                    if isinstance(error, ExtractorTimeoutError):
                        return


def changes(request: Request, directory: Path, step: int) -> Iterator[tuple[Variant, Request]]:
    """Yield every variant with the request for it; its files stand in ``directory`` until the next one is asked for."""
    request = json.loads(json.dumps(request))
    streams = list((request.get("streams") or {}).values())
    originals = [(part, Path(part["path"]).read_bytes()) for part in parts(request)]
    for number, variant in enumerate(variants(step)):
        for index, (part, data) in enumerate(originals):
            old, path = Path(part["path"]), directory / f"{number}-{index}"
            path.write_bytes(variant.change(data) if variant.reports or part in streams else data)
            if number:
                old.unlink()
            part["path"] = str(path)
        yield variant, request


def wrong(variant: Variant, request: Request, original: Any, answer: Any) -> list[str]:
    """Return what is wrong with an answer to a variant, given the answer to the original."""
    found = faults(answer, sizes(request), _limit(request))
    return found or differences(variant, original, answer)


def difference(expected: Any, actual: Any, place: str = "") -> str:
    """Return the first place in which two JSON values differ and what stands there, nothing where they are equal."""
    if isinstance(expected, dict) and isinstance(actual, dict) and expected.keys() == actual.keys():
        pairs = [(f"{place}.{key}".lstrip("."), expected[key], actual[key]) for key in expected]
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = [(f"{place}[{i}]", *pair) for i, pair in enumerate(zip(expected, actual, strict=True))]
    elif isinstance(expected, list) and isinstance(actual, list):
        return f"{place}: {len(expected)} are expected, {len(actual)} are there"
    else:
        return "" if expected == actual else f"{place}: {_shown(expected)} is expected, {_shown(actual)} is there"
    return next((told for name, a, b in pairs if (told := difference(a, b, name))), "")


def _normal(answer: Any) -> Any:
    """Return an answer with every field, so that what is left out equals what is null; one of another shape as it is."""
    from kos_retry.model import ExtractorAnswer

    try:
        return ExtractorAnswer.from_json(answer).as_json()
    except InputError:
        return answer


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"


def _limit(request: Request) -> int:
    return int((request.get("limits") or {}).get("findings", MAX_FINDINGS))
