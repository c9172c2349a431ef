"""Reading `extractor.toml`: what an extractor is called, how it is started and when it is worth asking.

Manifests are read before anything heavy is imported, so that extractors work while the core is still getting ready.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from kos_retry.adapters.extraction.hook_format import HookFormat, read_hook_format
from kos_retry.errors import ManifestError
from kos_retry.limits import EXTRACTOR_MAX_TIMEOUT_SECONDS, EXTRACTOR_PROTOCOL, EXTRACTOR_TIMEOUT_SECONDS
from kos_retry.text.durations import format_duration, parse_duration

MANIFEST = "extractor.toml"
_MAX_PRIORITY = 1000
_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


class Match(NamedTuple):
    """Cheap tests, done by the core: an extractor is asked when any of them holds; none means always.

    ``reports`` are globs for the paths of report files, ``argv`` words whose base name is one of the
    command's, ``contains`` strings that stand in the output; with ``options`` it is asked where the user's settings hold
    something for it. ``transcripts`` are the names of formats of transcripts: such an extractor is asked only where a
    transcript is to be read, and ``contains`` are then the marks by which its format is told.
    """

    reports: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()
    options: bool = False
    transcripts: tuple[str, ...] = ()

    @property
    def always(self) -> bool:
        """Return whether nothing has to hold."""
        return not (self.reports or self.argv or self.contains or self.options)


class Manifest(NamedTuple):
    """One extractor's manifest.

    ``command`` is an argument vector, never a shell's; ``{interpreter}`` and ``{dir}`` are filled in. ``hosted``
    names a script with a function ``extract(request)`` that a host process can load instead of starting the
    command. ``priority`` settles which of two findings is trusted: the lower number. A ``fallback`` is asked only
    where no other extractor found more than a guess; its findings name what failed, and the message stays the output's own.
    ``hook`` is the format in which the agent whose transcripts it reads asks its hooks, if it has any.
    """

    id: str
    version: str
    priority: int
    command: tuple[str, ...]
    directory: Path = Path()
    protocol: int = EXTRACTOR_PROTOCOL
    hosted: str | None = None
    fallback: bool = False
    timeout: float = EXTRACTOR_TIMEOUT_SECONDS
    description: str = ""
    match: Match = Match()
    hook: HookFormat | None = None

    def argv(self) -> list[str]:
        """Return the command with its placeholders filled in."""
        places = {"{interpreter}": sys.executable, "{dir}": str(self.directory)}
        return [_fill(word, places) for word in self.command]

    def script(self) -> Path | None:
        """Return the script that a host can load."""
        return self.directory / self.hosted if self.hosted else None

    @property
    def bundled(self) -> bool:
        """Return whether the extractor comes with the package: only those share a host."""
        return self.directory.parent == bundled_root()

    def as_json(self) -> dict[str, Any]:
        """Return what the manifest says."""
        fields = {name: value for name, value in self._asdict().items() if name != "directory"}
        return {**fields, "match": self.match._asdict(), "hook": self.hook._asdict() if self.hook else None}


def read_manifest(directory: Path) -> Manifest:
    """Read the manifest in ``directory``.

    Raises ManifestError with the file and the key when it is missing or not valid.
    """
    path = directory / MANIFEST
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ManifestError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: not valid TOML: {error}") from error
    try:
        _demand(data, ("id", "protocol", "version", "priority", "command"))
        return Manifest(**_fields(data, _KEYS), directory=Path(os.path.abspath(directory)))
    except ManifestError as error:
        raise ManifestError(f"{path}: {error}") from error


def bundled_directories() -> list[Path]:
    """Return the directories of the extractors that come with the package, in sorted order."""
    return sorted(path.parent for path in bundled_root().glob(f"*/{MANIFEST}"))


@cache
def bundled_root() -> Path:
    """Return where the bundled extractors are: inside the package, or beside it in a source checkout."""
    package = Path(__file__).resolve().parents[2]
    installed = package / "_extractors"
    return installed if installed.is_dir() else package.parent / "extractors"


@cache
def bundled() -> tuple[Manifest, ...]:
    """Return the manifests of the bundled extractors, sorted by id."""
    return tuple(sorted((read_manifest(directory) for directory in bundled_directories()), key=lambda m: m.id))


def hook_formats() -> Iterator[HookFormat]:
    """Yield the formats of hooks that bundled extractors describe; manifests without one are not parsed."""
    for directory in bundled_directories():
        if b"[hook]" in (directory / MANIFEST).read_bytes() and (known := read_manifest(directory).hook):
            yield known


def _fill(word: str, places: dict[str, str]) -> str:
    for place, value in places.items():
        word = word.replace(place, value)
    return word


def _demand(data: Mapping[str, Any], keys: Sequence[str]) -> None:
    for key in keys:
        if key not in data:
            raise ManifestError(f"{key}: the key is missing")


def _fields(data: Mapping[str, Any], known: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
    """Return the values of a table; raises ManifestError that names the key."""
    out = {}
    for key, value in data.items():
        if key not in known:
            raise ManifestError(f"{key}: there is no such key; known are {', '.join(known)}")
        try:
            out[key] = known[key](value)
        except (ValueError, ManifestError) as error:
            raise ManifestError(f"{key}{'.' if isinstance(value, dict) else ': '}{error}") from error
    return out


def _name(value: Any) -> str:
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise ManifestError("should be 1 to 64 of a-z, 0-9, '_' and '-', and start with a letter or digit")
    return value


def _protocol(value: Any) -> int:
    if value != EXTRACTOR_PROTOCOL or isinstance(value, bool):
        raise ManifestError(f"should be {EXTRACTOR_PROTOCOL}")
    return EXTRACTOR_PROTOCOL


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ManifestError("should be a string that is not empty")
    return value


def _priority(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _MAX_PRIORITY:
        raise ManifestError(f"should be a whole number from 0 to {_MAX_PRIORITY}")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ManifestError("should be true or false")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) and word for word in value):
        raise ManifestError("should be a list of strings that are not empty")
    return tuple(value)


def _command(value: Any) -> tuple[str, ...]:
    words = _texts(value)
    if not words:
        raise ManifestError("should have at least one word")
    return words


def _timeout(value: Any) -> float:
    seconds = parse_duration(value) if isinstance(value, str) else value
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise ManifestError("should be a duration like '5s'")
    if not 0 < seconds <= EXTRACTOR_MAX_TIMEOUT_SECONDS:
        raise ManifestError(f"should be more than 0s and at most {format_duration(EXTRACTOR_MAX_TIMEOUT_SECONDS)}")
    return float(seconds)


def _match(value: Any) -> Match:
    if not isinstance(value, dict):
        raise ManifestError("should be a table")
    texts = dict.fromkeys(("reports", "argv", "contains", "transcripts"), _texts)
    return Match(**_fields(value, {**texts, "options": _flag}))


_KEYS: dict[str, Callable[[Any], Any]] = {
    "id": _name,
    "protocol": _protocol,
    "version": _text,
    "priority": _priority,
    "command": _command,
    "hosted": _text,
    "fallback": _flag,
    "timeout": _timeout,
    "description": _text,
    "match": _match,
    "hook": read_hook_format,
}
