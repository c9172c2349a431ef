"""`kos-retry extractors`: which there are, and what one of them says about a log."""

from __future__ import annotations

import os

from kos_retry.adapters.extraction.extract import Extraction, chosen
from kos_retry.adapters.extraction.manifest import bundled
from kos_retry.adapters.extraction.material import Material
from kos_retry.adapters.observation import redacted
from kos_retry.cli.inputs import read_log
from kos_retry.cli.output import write_json, write_text
from kos_retry.engine.redact import Redactor, secret_values


def list_extractors(form: str) -> None:
    """Write the bundled extractors, sorted by id."""
    manifests = bundled()
    if form == "json":
        write_json({"extractors": [m.as_json() for m in manifests]})
        return
    for manifest in manifests:
        write_text(f"{manifest.id:18} {manifest.version:8} {manifest.description}\n")


def run_extractor(name: str, log: str | None, reports: list[str], exit_code: int) -> None:
    """Write what one extractor, of a name or in a directory, finds in a log and in report files."""
    manifests, (asked,) = chosen([name])
    redactor = Redactor(secret_values(os.environ))
    streams = {"output": redacted(read_log(log)[0], redactor)} if log is not None else {}
    material = Material(1, exit_code, None, False, (), os.getcwd(), streams, tuple(reports))
    with Extraction(redactor, manifests) as extraction:
        write_json(extraction.ask(asked, material))
