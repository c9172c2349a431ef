"""Reading `extractor.toml`: what an extractor is called, how it is started and when it is worth asking."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from kos_retry.errors import ManifestError
from kos_retry.limits import EXTRACTOR_TIMEOUT_SECONDS
from kos_retry.model.base import Wire
from kos_retry.text.durations import parse_duration

MANIFEST = "extractor.toml"


def _seconds(value: Any) -> Any:
    return parse_duration(value) if isinstance(value, str) else value


class Match(Wire):
    """Cheap tests, done by the core: an extractor is asked when any of them holds; none means always.

    ``reports`` are globs for the paths of report files, ``argv`` words whose base name is one of the
    command's, ``contains`` strings that stand in the output; with ``options`` it is asked where the user's settings hold
    something for it. ``transcripts`` are the names of formats of transcripts: such an extractor is asked only where a
    transcript is to be read, and ``contains`` are then the marks by which its format is told.
    """

    model_config = ConfigDict(extra="forbid")

    reports: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()
    options: Annotated[bool, Field(strict=True)] = False
    transcripts: tuple[str, ...] = ()

    @property
    def always(self) -> bool:
        """Return whether nothing has to hold."""
        return not (self.reports or self.argv or self.contains or self.options)


class Manifest(Wire):
    """One extractor's manifest.

    ``command`` is an argument vector, never a shell's; ``{interpreter}`` and ``{dir}`` are filled in. ``hosted``
    names a script with a function ``extract(request)`` that the shared host may load instead of starting
    the command. ``priority`` settles which of two findings is trusted: the lower number. A ``fallback`` is asked only
    where no other extractor found more than a guess; its findings name what failed, and the message stays the output's own.
    """

    model_config = ConfigDict(extra="forbid")

    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")]
    protocol: Literal[1]
    version: Annotated[str, Field(min_length=1, max_length=64)]
    priority: Annotated[int, Field(strict=True, ge=0, le=1000)]
    command: Annotated[tuple[str, ...], Field(min_length=1)]
    hosted: str | None = None
    fallback: Annotated[bool, Field(strict=True)] = False
    timeout: Annotated[float, BeforeValidator(_seconds), Field(gt=0, le=300)] = EXTRACTOR_TIMEOUT_SECONDS
    description: str = ""
    match: Match = Match()
    directory: Path = Path()

    def argv(self) -> list[str]:
        """Return the command with its placeholders filled in."""
        places = {"{interpreter}": sys.executable, "{dir}": str(self.directory)}
        return [_fill(word, places) for word in self.command]

    def script(self) -> Path | None:
        """Return the script that the shared host may load."""
        return self.directory / self.hosted if self.hosted else None


def read_manifest(directory: Path) -> Manifest:
    """Read the manifest in ``directory``.

    Raises ManifestError with the file and the field when it is missing or not valid.
    """
    path = directory / MANIFEST
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        return Manifest.model_validate({**data, "directory": directory.resolve()})
    except OSError as error:
        raise ManifestError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: not valid TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ManifestError(f"{path}: {field}: {first['msg']}") from error


def bundled_directories() -> list[Path]:
    """Return the directories of the extractors that come with the package, in sorted order."""
    return sorted(path.parent for path in bundled_root().glob(f"*/{MANIFEST}"))


def bundled_root() -> Path:
    """Return where the bundled extractors are: inside the package, or beside it in a source checkout."""
    package = Path(__file__).resolve().parents[2]
    installed = package / "_extractors"
    return installed if installed.is_dir() else package.parent / "extractors"


def _fill(word: str, places: dict[str, str]) -> str:
    for place, value in places.items():
        word = word.replace(place, value)
    return word
