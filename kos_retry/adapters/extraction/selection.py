"""Which extractors are worth asking about an outcome: the cheap tests of their manifests."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

from kos_retry.adapters.extraction.manifest import Manifest
from kos_retry.adapters.extraction.material import Material


def fitting(
    manifests: Sequence[Manifest], material: Material, asked: Collection[str]
) -> list[tuple[Manifest, tuple[str, ...]]]:
    """Return the extractors to ask, each with the report files it is handed.

    Those named in ``asked`` are asked whatever their selectors say.
    """
    out = []
    for manifest in manifests:
        reports = tuple(r for r in material.reports if _wants(manifest.match.reports, r, manifests))
        if reports or manifest.id in asked or _fits(manifest, material):
            out.append((manifest, reports))
    return out


def _fits(manifest: Manifest, material: Material) -> bool:
    match = manifest.match
    if match.always or {os.path.basename(word) for word in material.argv} & set(match.argv):
        return True
    return any(text in stream for text in match.contains for stream in material.streams.values())


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
