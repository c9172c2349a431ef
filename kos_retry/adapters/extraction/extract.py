"""Asking the extractors that fit an outcome, and merging what they answer.

Asking imports nothing heavy: the extractors work while the core is still importing what it needs for their answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from kos_retry.adapters.extraction import child
from kos_retry.adapters.extraction.dispatch import Asked, Hosts, Task
from kos_retry.adapters.extraction.manifest import Manifest, bundled, read_manifest
from kos_retry.adapters.extraction.material import Material, Spool, request
from kos_retry.adapters.extraction.selection import fitting
from kos_retry.engine.redact import Redactor
from kos_retry.errors import ExtractorError, ManifestError, UnknownNameError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from kos_retry.adapters.extraction.merge import Extracted
    from kos_retry.model import ExtractorAnswer


class Extraction:
    """Runs extractors; one object serves many outcomes, one after the other, and is closed at the end.

    ``asked`` names extractors to ask whatever their selectors say.
    """

    def __init__(
        self,
        redactor: Redactor,
        manifests: Sequence[Manifest] | None = None,
        asked: Sequence[str] = (),
        *,
        host: child.Host | None = None,
    ) -> None:
        self._redactor = redactor
        self._manifests = tuple(sorted(manifests if manifests is not None else bundled(), key=lambda m: m.id))
        self._asked = frozenset(asked)
        self._hosts = Hosts(host)
        self._spool = Spool()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the hosts and remove what was spooled."""
        self._hosts.close()
        self._spool.close()

    def begin(self, material: Material) -> Inquiry:
        """Ask every extractor that fits, several at once; return what waits for their answers."""
        asked = [] if material.exit_code == 0 and not material.reports else self._fitting(material)
        return Inquiry(self._ask(asked, material), self._manifests, material, self._redactor)

    def run(self, material: Material) -> Extracted:
        """Ask every extractor that fits, and merge the answers in the sorted order of their ids.

        One that fails is recorded and the others are asked.
        """
        return self.begin(material).extracted()

    def ask(self, name: str, material: Material) -> ExtractorAnswer:
        """Ask one extractor by its id, whatever its selectors say.

        Raises UnknownNameError for an unknown id, ExtractorError when it fails.
        """
        from kos_retry.adapters.extraction.merge import Sources, checked

        found = by_name(name, self._manifests)
        asked = self._ask([(found, material.reports)], material)
        asked.wait()
        if name in asked.failures:
            raise ExtractorError(self._redactor.text(asked.failures[name]))
        return checked(asked.answers[name], Sources(material), self._redactor)

    def _fitting(self, material: Material) -> list[tuple[Manifest, tuple[str, ...]]]:
        return fitting(self._manifests, material, self._asked)

    def _ask(self, fits: Sequence[tuple[Manifest, tuple[str, ...]]], material: Material) -> Asked:
        if not fits:
            return Asked([], self._hosts)
        try:
            streams = self._spool.put(material.streams)
        except OSError as error:
            return Asked(
                [], self._hosts, dict.fromkeys((m.id for m, _ in fits), f"cannot spool the output: {error.strerror}")
            )
        return Asked([Task(m, request(material, streams, reports)) for m, reports in fits], self._hosts)


class Inquiry:
    """Extractors that were asked about one outcome."""

    def __init__(self, asked: Asked, manifests: Sequence[Manifest], material: Material, redactor: Redactor) -> None:
        self._asked = asked
        self._manifests = manifests
        self._material = material
        self._redactor = redactor

    def extracted(self) -> Extracted:
        """Wait for the answers and return them as one."""
        from kos_retry.adapters.extraction.merge import merged

        self._asked.wait()
        return merged(self._asked.answers, self._asked.failures, self._manifests, self._material, self._redactor)


def by_name(name: str, manifests: Sequence[Manifest]) -> Manifest:
    """Return the manifest of this id; raises UnknownNameError that names the known ones."""
    found = next((m for m in manifests if m.id == name), None)
    if found is None:
        raise UnknownNameError(f"extractor '{name}': there is none; known are {', '.join(m.id for m in manifests)}")
    return found


def chosen(wanted: Sequence[str]) -> tuple[tuple[Manifest, ...], tuple[str, ...]]:
    """Return the bundled manifests with those of the directories that a user names, and the ids to ask in any case.

    A word with a slash is a directory with a manifest, any other one a name. Raises UnknownNameError and ManifestError.
    """
    manifests, asked = list(bundled()), []
    for word in dict.fromkeys(wanted):
        if "/" not in word:
            asked.append(by_name(word, manifests).id)
            continue
        own = read_manifest(Path(word))
        taken = next((m for m in manifests if m.id == own.id), None)
        if taken is None:
            manifests.append(own)
        elif taken.directory != own.directory:
            raise ManifestError(f"{word}: id: '{own.id}' is the name of another extractor, {taken.directory}")
        asked.append(own.id)
    return tuple(sorted(manifests, key=lambda m: m.id)), tuple(asked)
