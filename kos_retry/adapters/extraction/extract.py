"""Asking the extractors that fit an outcome, and merging what they answer.

Asking imports nothing heavy: the extractors work while the core is still importing what it needs for their answers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kos_retry import limits
from kos_retry.adapters.config import nearest
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

    ``asked`` names extractors to ask whatever their selectors say; ``options`` are what the user's settings hold for single
    extractors, by their ids.
    """

    def __init__(
        self,
        redactor: Redactor,
        manifests: Sequence[Manifest] | None = None,
        asked: Sequence[str] = (),
        *,
        host: child.Host | None = None,
        options: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self.redactor = redactor
        self.manifests = tuple(sorted(manifests if manifests is not None else bundled(), key=lambda m: m.id))
        self._asked = frozenset(asked)
        self._options = options or {}
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
        """Ask every extractor that fits, several at once; return what waits for their answers.

        Those that are a fallback are asked behind the others, and only where these found nothing sure.
        """
        fits = [] if material.exit_code == 0 and not material.reports else self._fitting(material)
        try:
            tasks = self._tasks(fits, material)
        except OSError as error:
            return Inquiry(
                self, material, [], [], {m.id: f"cannot spool the output: {error.strerror}" for m, _ in fits}
            )
        last = [task for task in tasks if task.manifest.fallback and task.manifest.id not in self._asked]
        return Inquiry(self, material, [task for task in tasks if task not in last], last)

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

        found = by_name(name, self.manifests)
        asked = self.start(self._tasks([(found, material.reports)], material), _total())
        asked.wait()
        if name in asked.failures:
            raise ExtractorError(self.redactor.text(asked.failures[name]))
        return checked(asked.answers[name], Sources(material), self.redactor)

    def ask_reader(self, manifest: Manifest, material: Material, streams: Mapping[str, str | bytes]) -> ExtractorAnswer:
        """Ask one extractor about streams as they are; what it answers is redacted.

        A secret is found in a text, not in JSON in which a text is written. Raises ExtractorError when it fails.
        """
        from kos_retry.adapters.extraction.merge import Sources, checked

        try:
            spooled = self._spool.put(streams)
        except OSError as error:
            raise ExtractorError(f"cannot spool the output: {error.strerror}") from error
        task = Task(manifest, request(material, spooled, (), self._options.get(manifest.id, {})))
        asked = self.start([task], _total())
        asked.wait()
        if manifest.id in asked.failures:
            raise ExtractorError(asked.failures[manifest.id])
        return checked(asked.answers[manifest.id], Sources(material, streams), self.redactor)

    def start(self, tasks: Sequence[Task], until: float) -> Asked:
        """Set extractors to work."""
        return Asked(tasks, self._hosts, until)

    def _fitting(self, material: Material) -> list[tuple[Manifest, tuple[str, ...]]]:
        return fitting(self.manifests, material, self._asked, self._options)

    def _tasks(self, fits: Sequence[tuple[Manifest, tuple[str, ...]]], material: Material) -> list[Task]:
        streams = self._spool.put(material.streams) if fits else {}
        return [Task(m, request(material, streams, reports, self._options.get(m.id, {}))) for m, reports in fits]


class Inquiry:
    """Extractors that were asked about one outcome, and the fallbacks among them that were not yet."""

    def __init__(
        self,
        extraction: Extraction,
        material: Material,
        tasks: Sequence[Task],
        fallbacks: Sequence[Task],
        failures: Mapping[str, str] | None = None,
    ) -> None:
        self._extraction = extraction
        self._material = material
        self._fallbacks = fallbacks
        self._failures = failures or {}
        self._until = _total()
        self._asked = extraction.start(tasks, self._until)

    def extracted(self) -> Extracted:
        """Wait for the answers and return them as one."""
        from kos_retry.adapters.extraction.merge import Answers

        answers = Answers(self._material, self._extraction.redactor, self._failures)
        self._asked.wait()
        answers.add(self._asked.answers, self._asked.failures)
        for task in self._fallbacks:
            if answers.are_sure:
                break
            asked = self._extraction.start([task], self._until)
            asked.wait()
            answers.add(asked.answers, asked.failures)
        return answers.merged(self._extraction.manifests)


def _total() -> float:
    return time.monotonic() + limits.EXTRACTOR_TOTAL_SECONDS


def by_name(name: str, manifests: Sequence[Manifest]) -> Manifest:
    """Return the manifest of this id; raises UnknownNameError that names the nearest one."""
    found = next((m for m in manifests if m.id == name), None)
    if found is None:
        close = nearest(name, [manifest.id for manifest in manifests])
        raise UnknownNameError(f"extractor '{name}': there is none{close or ', see kos-retry extractors list'}")
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
