"""Extractors that are a fallback: asked where no other one is sure of anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kos_retry.adapters.extraction.extract import Extraction
from kos_retry.adapters.extraction.manifest import Manifest, read_manifest
from kos_retry.adapters.extraction.material import Material
from kos_retry.engine.observe import Evidence, observe
from kos_retry.engine.redact import Redactor

MATERIAL = Material(1, 1, None, False, ("tool",), "/srv/app", {"output": "it failed\n"})


def _extractor(root: Path, name: str, confidence: str | None, *, fallback: bool = False) -> Manifest:
    """Return the manifest of an extractor that answers with one finding of its own name, or with none."""
    finding = {"kind": "diagnostic", "code": name, "message": name, "confidence": confidence}
    directory = root / name
    directory.mkdir()
    (directory / "answer.json").write_text(json.dumps({"protocol": 1, "findings": [finding] if confidence else []}))
    manifest = (
        f'id = "{name}"\nprotocol = 1\nversion = "1"\npriority = 300\nfallback = {str(fallback).lower()}\n'
        'command = ["/bin/cat", "{dir}/answer.json"]\n'
    )
    (directory / "extractor.toml").write_text(manifest)
    return read_manifest(directory)


def _found(*manifests: Manifest) -> list[str | None]:
    with Extraction(Redactor(), manifests) as extraction:
        return [finding.code for finding in extraction.run(MATERIAL).findings]


@pytest.mark.parametrize("confidence", ["exact", "likely"])
def test_fallback_is_not_asked_where_another_is_sure(tmp_path: Path, confidence: str) -> None:
    first = _extractor(tmp_path, "a-fallback", "likely", fallback=True)

    assert ["known"] == _found(first, _extractor(tmp_path, "known", confidence))


@pytest.mark.parametrize("confidence", ["guess", None])
def test_fallback_is_asked_where_no_other_is_sure(tmp_path: Path, confidence: str | None) -> None:
    first = _extractor(tmp_path, "a-fallback", "likely", fallback=True)

    assert "a-fallback" == _found(first, _extractor(tmp_path, "known", confidence))[0]


def test_only_the_first_fallback_that_is_sure_counts(tmp_path: Path) -> None:
    manifests = [_extractor(tmp_path, name, "likely", fallback=True) for name in ("b-fallback", "a-fallback")]

    assert ["a-fallback"] == _found(*manifests)


@pytest.mark.parametrize("fallback", [True, False])
def test_findings_of_a_fallback_only_name_what_failed(tmp_path: Path, fallback: bool) -> None:
    manifest = _extractor(tmp_path, "known", "likely", fallback=fallback)
    with Extraction(Redactor(), [manifest]) as extraction:
        findings = extraction.run(MATERIAL).findings

    envelope = observe(Evidence(attempt=1, exit_code=1, outputs=("error: it is late\n",), findings=findings))

    assert ("known",) == envelope.failing_constraints
    assert ("error: it is late" if fallback else "known") == envelope.error_message
