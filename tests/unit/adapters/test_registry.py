"""The registry: order, names, failures, cancelling, time limits."""

from __future__ import annotations

import threading
from datetime import datetime

import pytest

from kos_retry.adapters.extraction.registry import Context, DiagnosticExtractorRegistry, with_timeout
from kos_retry.errors import ExtractorTimeoutError, RegistrationError
from kos_retry.model import DiagnosticArtifact


class _Extractor:
    """An extractor that does what it is given, and remembers that it was asked."""

    def __init__(self, name, work=None, log=None):
        self.name = name
        self._work = work or (lambda _: DiagnosticArtifact(name=f"of-{name}"))
        self._log = log if log is not None else []

    def extract(self, context):
        self._log.append(self.name)
        return self._work(context)


def _registry(*extractors) -> DiagnosticExtractorRegistry:
    registry = DiagnosticExtractorRegistry()
    for extractor in extractors:
        registry.register(extractor)
    return registry


def _raise(error):
    raise error


def test_names_are_sorted_however_they_were_registered():
    assert ("a", "b-1", "b_2", "c") == _registry(*map(_Extractor, ("c", "b_2", "a", "b-1"))).names()


def test_run_visits_extractors_in_sorted_order():
    log: list[str] = []
    _registry(*(_Extractor(n, log=log) for n in "cab")).run(Context())
    assert ["a", "b", "c"] == log


def test_report_is_in_sorted_order():
    assert ["a", "b"] == [r.extractor for r in _registry(*map(_Extractor, "ba")).run(Context()).results]


def test_name_that_is_taken_is_refused():
    with pytest.raises(RegistrationError, match="the name is taken"):
        _registry(_Extractor("a"), _Extractor("a"))


def test_after_a_refusal_the_first_one_stays():
    first, registry = _Extractor("a"), DiagnosticExtractorRegistry()
    registry.register(first)
    with pytest.raises(RegistrationError):
        registry.register(_Extractor("a"))
    assert first is registry.by_name("a")


@pytest.mark.parametrize(
    "name",
    ["", "A", "-a", "_a", "a b", "a.b", "a/b", "é", "a\n", "a" * 65, " a", None, 3],
    ids=repr,
)
def test_bad_name_is_refused(name):
    with pytest.raises(RegistrationError):
        _registry(_Extractor(name))


@pytest.mark.parametrize("name", ["a", "0", "a-b_c", "9-", "a" * 64])
def test_good_name_is_taken(name):
    assert (name,) == _registry(_Extractor(name)).names()


def test_nothing_is_refused():
    with pytest.raises(RegistrationError):
        _registry(None)


def test_unknown_name_is_refused():
    with pytest.raises(RegistrationError, match="not registered"):
        _registry().by_name("a")


_BREAKS = {
    "raises": lambda _: _raise(ValueError("no")),
    "leaves": lambda _: _raise(SystemExit(3)),
    "answers-nothing": lambda _: None,
    "answers-nonsense": lambda _: {"findings": []},
    "raises-bad-text": lambda _: _raise(ValueError("\ud800" * 2000)),
}


@pytest.mark.parametrize("work", _BREAKS.values(), ids=_BREAKS)
def test_failing_extractor_does_not_abort_the_run(work):
    report = _registry(_Extractor("a", work), _Extractor("b")).run(Context())
    assert [("a", False), ("b", True)] == [(r.extractor, r.ok) for r in report.results]


def test_failure_is_recorded_with_its_reason():
    (record,) = _registry(_Extractor("a", lambda _: _raise(ValueError("no")))).run(Context()).results
    assert ("ValueError: no", None) == (record.error, record.artifact)


def test_report_counts_both():
    report = _registry(_Extractor("a", lambda _: _raise(ValueError("no"))), _Extractor("b")).run(Context())
    assert (1, 1) == (report.ok_count, report.failed_count)


def test_cancelled_context_marks_the_rest_failed():
    def cancel(context):
        context.cancel()
        return DiagnosticArtifact()

    report = _registry(_Extractor("a"), _Extractor("b", cancel), _Extractor("c")).run(Context())
    assert [True, True, False] == [r.ok for r in report.results]


def test_cancelled_context_starts_nothing():
    log: list[str] = []
    context = Context()
    context.cancel()
    _registry(_Extractor("a", log=log)).run(context)
    assert [] == log


def test_cancelling_reaches_contexts_below():
    above = Context()
    above.cancel()
    assert Context(parent=above).cancelled


def test_tightest_limit_of_the_contexts_counts():
    assert 1.0 == Context(5.0, parent=Context(1.0)).timeout_seconds


def test_artifact_without_a_name_gets_the_extractors():
    (record,) = _registry(_Extractor("a", lambda _: DiagnosticArtifact(payload=1))).run(Context()).results
    assert DiagnosticArtifact(name="a", payload=1) == record.artifact


def test_artifact_with_a_name_keeps_it():
    (record,) = _registry(_Extractor("a")).run(Context()).results
    assert "of-a" == record.artifact.name


def test_run_of_an_empty_registry_is_an_empty_report():
    assert () == _registry().run(Context()).results


def test_wanted_picks_the_extractors():
    report = _registry(*map(_Extractor, "abc")).run(Context(), wanted=lambda name: name != "b")
    assert ["a", "c"] == [r.extractor for r in report.results]


def test_report_ends_after_it_started():
    report = _registry().run(Context())
    assert isinstance(report.started_at, datetime)
    assert report.started_at <= report.finished_at


@pytest.mark.parametrize("seconds", [0, 0.0, -1, -0.5])
def test_time_limit_that_is_not_positive_bounds_nothing(seconds):
    extractor = _Extractor("a")
    assert extractor is with_timeout(extractor, seconds)


def test_bounded_extractor_keeps_its_name():
    assert "a" == with_timeout(_Extractor("a"), 1).name


def test_bounded_extractor_hands_its_answer_on():
    assert DiagnosticArtifact(name="of-a") == with_timeout(_Extractor("a"), 60).extract(Context())


def test_bounded_extractor_hands_its_error_on():
    bounded = with_timeout(_Extractor("a", lambda _: _raise(ValueError("no"))), 60)
    with pytest.raises(ValueError, match="no"):
        bounded.extract(Context())


@pytest.fixture
def stuck():
    """Return an extractor that answers only when the test is over, and the contexts that it was given."""
    over, contexts = threading.Event(), []

    def wait(context):
        contexts.append(context)
        over.wait()
        return DiagnosticArtifact()

    yield _Extractor("a", wait), contexts
    over.set()


def test_slow_extractor_is_given_up(stuck):
    with pytest.raises(ExtractorTimeoutError):
        with_timeout(stuck[0], 0.001).extract(Context())


def test_timeout_is_an_ordinary_timeout_too(stuck):
    with pytest.raises(TimeoutError):
        with_timeout(stuck[0], 0.001).extract(Context())


def test_limit_of_the_caller_holds_where_it_is_tighter(stuck):
    with pytest.raises(ExtractorTimeoutError):
        with_timeout(stuck[0], 3600).extract(Context(0.001))


def test_slow_extractor_is_told_that_it_was_given_up(stuck):
    extractor, contexts = stuck
    with pytest.raises(ExtractorTimeoutError):
        with_timeout(extractor, 0.05).extract(Context())
    assert [True] == [c.cancelled for c in contexts]


def test_slow_extractor_does_not_cancel_the_ones_after_it(stuck):
    report = _registry(with_timeout(stuck[0], 0.001), _Extractor("b")).run(Context())
    assert [False, True] == [r.ok for r in report.results]
