"""Causes and actions as callers may write them."""

from __future__ import annotations

import pytest

from kos_retry.errors import InputError
from kos_retry.model import Action, Cause, CauseKind, OutcomeRow, Policy, Retryable

_BY_KIND = {
    CauseKind.TRANSIENT: Retryable.YES,
    CauseKind.RUNNER_LOST: Retryable.YES,
    CauseKind.RESOURCE: Retryable.UNKNOWN,
    CauseKind.AUTH: Retryable.NO,
    CauseKind.QUOTA: Retryable.NO,
    CauseKind.BILLING: Retryable.NO,
    CauseKind.CONFIG: Retryable.NO,
    CauseKind.PERMISSION_DENIED: Retryable.NO,
    CauseKind.COMMAND_NOT_FOUND: Retryable.NO,
    CauseKind.ENVIRONMENT: Retryable.NO,
    CauseKind.CONTEXT_WINDOW: Retryable.UNKNOWN,
    CauseKind.MALFORMED_OUTPUT: Retryable.UNKNOWN,
    CauseKind.NO_OUTPUT: Retryable.UNKNOWN,
    CauseKind.TURN_LIMIT: Retryable.UNKNOWN,
    CauseKind.LOOP_DETECTED: Retryable.UNKNOWN,
    CauseKind.BUDGET: Retryable.NO,
    CauseKind.DETERMINISTIC: Retryable.NO,
    CauseKind.UNKNOWN: Retryable.UNKNOWN,
}


@pytest.mark.parametrize(("kind", "retryable"), _BY_KIND.items(), ids=_BY_KIND)
def test_kind_alone_says_whether_a_retry_can_mend_it(kind, retryable):
    assert retryable == Cause.from_json(kind.value).retryable


def test_every_kind_has_an_expectation():
    assert set(CauseKind) == set(_BY_KIND)


def test_who_knows_better_says_so():
    assert Retryable.YES == Cause.from_json({"kind": "resource", "retryable": "yes"}).retryable


def test_retryable_null_is_not_set():
    assert Retryable.NO == Cause.from_json({"kind": "auth", "retryable": None}).retryable


def test_bare_string_is_an_action_name():
    assert Action(name="run_tests") == Action.from_json(" run_tests ")


def test_tool_is_another_word_for_name():
    assert Action(name="edit", input={"p": 1}) == Action.from_json({"tool": "edit", "input": {"p": 1}})


@pytest.mark.parametrize("kind", [Policy, OutcomeRow])
def test_misspelt_field_is_refused_where_it_would_be_lost(kind):
    with pytest.raises(InputError, match="unknown field 'max_atempts'"):
        kind.from_json({"max_atempts": 3})
