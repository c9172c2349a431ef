"""What the extractors make of recorded output of real tools."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kos_retry
from kos_retry.adapters.extraction.cases import sizes
from kos_retry.adapters.extraction.manifest import read_manifest
from kos_retry.model.finding import ExtractorAnswer

if TYPE_CHECKING:
    from conftest import Host

    from kos_retry.adapters.extraction.cases import Case

HASH_SEEDS = ("0", "4711")


def test_every_extractor_has_cases_and_says_where_they_are_from(extractor: Path) -> None:
    recorded = {path.parent.name for path in extractor.glob("fixtures/*/request.json")}
    folders = {path.name for path in extractor.glob("fixtures/*") if path.is_dir()}

    assert recorded
    assert folders == recorded
    assert (extractor / "PROVENANCE.md").read_text(encoding="utf-8").strip()


def test_the_command_answers_the_same_whatever_the_hash_seed(extractor: Path, case_of: type[Case]) -> None:
    # Starting Python costs more than all else here: one case of each shows that the command works, the hosts show the rest.
    case = case_of(min(path.parent for path in extractor.glob("fixtures/*/request.json")))
    outputs = {_run(case, seed) for seed in HASH_SEEDS}

    assert len(outputs) == 1
    assert case.expected() == json.loads(outputs.pop())


def test_two_hosts_of_different_hash_seeds_answer_what_was_recorded(case: Case, host: Host, other_host: Host) -> None:
    answers = [asked.ask(case.extractor, case.request()) for asked in (host, other_host)]

    assert [{"answer": case.expected()}] * 2 == answers


def test_an_expected_answer_is_one_of_the_protocol(case: Case) -> None:
    answer = ExtractorAnswer.from_json(case.expected())

    assert len(case.expected()["findings"]) == len(answer.findings)
    assert [f for f in answer.findings if not f.message and not f.test_id] == []


def test_evidence_lies_inside_of_its_source(case: Case) -> None:
    size_of = sizes(case.request())

    for finding in case.expected()["findings"]:
        for span in finding.get("evidence", ()):
            assert 0 <= span["start"] < span["end"] <= size_of[span["source"]]


def _run(case: Case, seed: str) -> bytes:
    """Return what the manifest's command writes, run as the core runs it: with next to no environment."""
    request: dict[str, Any] = case.request()
    package = str(Path(kos_retry.__path__[0]).parent)
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": package, "PYTHONHASHSEED": seed}
    done = subprocess.run(
        [*read_manifest(case.extractor).argv()],
        input=json.dumps(request).encode(),
        capture_output=True,
        env={**environment, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=case.extractor,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout
