"""How the findings of several extractors become one list."""

from __future__ import annotations

import json

import pytest

from kos_retry.adapters.extraction.extract import Extraction
from kos_retry.adapters.extraction.manifest import Manifest
from kos_retry.adapters.extraction.material import Material
from kos_retry.engine.redact import Redactor

_CAUSE = {"kind": "transient", "rule": "port"}


def _an_extractor(name: str, priority: int, finding: dict) -> Manifest:
    answer = json.dumps({"protocol": 1, "findings": [{"kind": "test", "test_id": "t::a", **finding}]})
    command = ("{interpreter}", "-c", f"print({answer!r})")
    return Manifest(id=name, protocol=1, version="1", priority=priority, command=command)


def _merged(*findings: dict):
    manifests = [_an_extractor(f"x{n}", n, finding) for n, finding in enumerate(findings)]
    with Extraction(Redactor(), manifests) as extraction:
        return extraction.run(Material(1, 1, None, False, (), "", {"stdout": "x"})).findings


def test_more_trusted_of_two_equal_findings_stays():
    (finding,) = _merged({"confidence": "likely", "message": "text"}, {"confidence": "exact", "message": "report"})
    assert "report" == finding.message


@pytest.mark.parametrize("cause", [None, {"kind": "deterministic", "rule": "own"}], ids=["none", "own"])
def test_cause_that_only_the_less_trusted_one_knows_is_kept(cause):
    (finding,) = _merged({"confidence": "likely", "cause": _CAUSE}, {"confidence": "exact", "cause": cause})
    assert (cause or _CAUSE)["rule"] == finding.cause.rule
