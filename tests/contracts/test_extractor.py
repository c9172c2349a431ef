"""What every extractor of the registry promises, bare and bounded."""

from __future__ import annotations

import pytest

from kos_retry.adapters.extraction.registry import NAME, Context, DiagnosticExtractorRegistry, with_timeout
from kos_retry.model import DiagnosticArtifact


class Counting:
    """An extractor that says how much time it was given."""

    name = "counting"

    def extract(self, context):
        return DiagnosticArtifact(name=self.name, payload={"limited": context.timeout_seconds is not None})


_SUBJECTS = {
    "bare": Counting(),
    "bounded": with_timeout(Counting(), 60),
    "bounded-twice": with_timeout(with_timeout(Counting(), 60), 30),
    "unbounded": with_timeout(Counting(), 0),
}


@pytest.fixture(params=_SUBJECTS)
def extractor(request):
    return _SUBJECTS[request.param]


def test_name_is_one_that_the_registry_takes(extractor):
    assert NAME.fullmatch(extractor.name)


def test_answer_is_an_artifact(extractor):
    assert isinstance(extractor.extract(Context()), DiagnosticArtifact)


def test_answer_depends_on_the_context_alone(extractor):
    assert extractor.extract(Context(5)) == extractor.extract(Context(5))


def test_limit_of_the_context_reaches_the_extractor(extractor):
    assert {"limited": True} == extractor.extract(Context(5)).payload


def test_registry_runs_it(extractor):
    registry = DiagnosticExtractorRegistry()
    registry.register(extractor)
    assert [True] == [r.ok for r in registry.run(Context()).results]
