"""Which extractors are worth asking about an outcome: the cheap tests of their manifests."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from kos_retry.adapters.extraction.manifest import Manifest
from kos_retry.adapters.extraction.material import Material
from kos_retry.text.outline import in_outline, outline


def fitting(
    manifests: Sequence[Manifest], material: Material, asked: Collection[str], options: Mapping[str, Any]
) -> list[tuple[Manifest, tuple[str, ...]]]:
    """Return the extractors to ask, each with the report files it is handed.

    Those named in ``asked`` are asked whatever their selectors say; ``options`` are what the user's settings hold for each.
    """
    outputs = [Output(text) for text in material.streams.values() if text]
    out = []
    for manifest in manifests:
        if manifest.match.transcripts:
            continue
        reports = tuple(r for r in material.reports if _wants(manifest.match.reports, r, manifests))
        optional = manifest.match.options and options.get(manifest.id)
        if reports or optional or manifest.id in asked or _fits(manifest, material, outputs):
            out.append((manifest, reports))
    return out


class Output:
    """A text in which many strings are looked for.

    A long log says nearly the same over and over, and what it says it says in few words: lines that differ in numbers alone
    count once, and what holds a word that is in none of them is not looked for.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._words = b"\n".join(set(outline(text.encode("utf-8", "replace")).split()))

    def holds(self, wanted: str) -> bool:
        """Return whether a string stands in the text."""
        words = in_outline(wanted.encode("utf-8", "replace")).split()
        return all(word in self._words for word in words) and wanted in self._text


def _fits(manifest: Manifest, material: Material, outputs: Sequence[Output]) -> bool:
    match = manifest.match
    if match.always or {os.path.basename(word) for word in material.argv} & set(match.argv):
        return True
    return any(output.holds(text) for text in match.contains for output in outputs)


def _wants(globs: Sequence[str], report: str, manifests: Sequence[Manifest]) -> bool:
    """Return whether a report is for an extractor: by its name, or, where nobody knows the name, by its ending."""
    if any(_matches(glob, report) for glob in globs):
        return True
    unknown = not any(_matches(glob, report) for m in manifests for glob in m.match.reports)
    return unknown and any(os.path.splitext(glob)[1] == os.path.splitext(report)[1] for glob in globs)


def _matches(glob: str, path: str) -> bool:
    if glob.startswith("**/"):
        parts = glob.count("/")
        return fnmatchcase("/".join(path.split("/")[-parts:]), glob[3:])
    return fnmatchcase(path, glob)
