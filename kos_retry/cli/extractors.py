"""`kos-retry extractors`: which there are, what one of them says about a log, and whether they hold what they promise."""

from __future__ import annotations

import os
from pathlib import Path

from kos_retry.adapters.extraction.cases import cases_of
from kos_retry.adapters.extraction.check import Checker, Problem
from kos_retry.adapters.extraction.extract import Extraction, chosen
from kos_retry.adapters.extraction.manifest import Manifest, bundled, read_manifest
from kos_retry.adapters.extraction.material import Material
from kos_retry.adapters.observation import joined
from kos_retry.cli.inputs import read_log
from kos_retry.cli.output import write_json, write_text
from kos_retry.engine.redact import Redactor, secret_values
from kos_retry.text.escapes import printable
from kos_retry.text.words import count

# More problems of one extractor than a person reads at once; JSON has them all.
_SHOWN_PROBLEMS = 10


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
    streams = {"output": joined(read_log(log), redactor)} if log is not None else {}
    material = Material(1, exit_code, None, False, (), os.getcwd(), streams, tuple(reports))
    with Extraction(redactor, manifests) as extraction:
        write_json(extraction.ask(asked, material))


def check_extractors(directories: list[str], form: str) -> int:
    """Check extractors, the bundled ones without a directory; return 1 if something is wrong with one, else 0."""
    manifests = tuple(read_manifest(Path(directory)) for directory in directories) or bundled()
    rows = []
    for manifest in manifests:
        with Checker(manifest) as checker:
            problems = list(checker.problems())
        rows.append(_row(manifest, problems))
        if form == "text":
            _write_checked(manifest, problems)
    if form == "json":
        write_json({"extractors": rows})
    return 0 if all(row["ok"] for row in rows) else 1


def _row(manifest: Manifest, problems: list[Problem]) -> dict[str, object]:
    return {
        "id": manifest.id,
        "directory": str(manifest.directory),
        "ok": not problems,
        "cases": len(cases_of(manifest.directory)),
        "problems": [problem._asdict() for problem in problems],
    }


def _write_checked(manifest: Manifest, problems: list[Problem]) -> None:
    cases = count(len(cases_of(manifest.directory)), "case")
    write_text(f"{'failed' if problems else 'ok':6} {manifest.id:18} {cases}\n")
    for problem in problems[:_SHOWN_PROBLEMS]:
        write_text(f"  {printable(f'{problem.case}: ' * bool(problem.case) + problem.what)}\n")
    if len(problems) > _SHOWN_PROBLEMS:
        write_text(f"  and {len(problems) - _SHOWN_PROBLEMS} more; --format json has them all\n")
