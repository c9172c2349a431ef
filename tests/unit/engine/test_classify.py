"""Category and cause, from conventions that no tool owns."""

from __future__ import annotations

import pytest
from builders import a_cause, a_finding

from kos_retry.engine import classify
from kos_retry.model import Category, CauseKind, Retryable


def _category(**given):
    defaults = {
        "exit_code": 1,
        "signal": None,
        "timed_out": False,
        "cancelled": False,
        "constraints": (),
        "findings": (),
    }
    return classify.category(**{**defaults, **given})


_CATEGORIES = {
    "told-failed": ({"exit_code": 0, "told_failed": True}, Category.EXECUTION_FAILURE),
    "told-passed": ({"exit_code": 0, "told_failed": False}, Category.SUCCESS),
    "told-passed-and-failed": ({"told_failed": False, "findings": [a_finding()]}, Category.EXECUTION_FAILURE),
    "told-failed-and-check": (
        {"exit_code": 0, "told_failed": True, "checks_failed": True},
        Category.VERIFICATION_FAILED,
    ),
    "told-failed-at-a-time-limit": ({"timed_out": True, "told_failed": True}, Category.TIMEOUT),
    "success": ({"exit_code": 0}, Category.SUCCESS),
    "failure": ({}, Category.EXECUTION_FAILURE),
    "signal": ({"exit_code": 139, "signal": "SIGSEGV"}, Category.EXECUTION_FAILURE),
    "signal-with-code-zero": ({"exit_code": 0, "signal": "SIGTERM"}, Category.EXECUTION_FAILURE),
    "time-limit": ({"timed_out": True, "exit_code": 143, "signal": "SIGTERM"}, Category.TIMEOUT),
    "time-limit-of-another-wrapper": ({"exit_code": 124}, Category.TIMEOUT),
    "cancelled": ({"cancelled": True, "timed_out": True}, Category.CONTEXT_CANCELLED),
    "interrupted-inside": ({"exit_code": 130}, Category.CONTEXT_CANCELLED),
    "named-constraint": ({"constraints": ("a",)}, Category.CONSTRAINT_VIOLATION),
    "named-constraint-with-code-zero": ({"exit_code": 0, "constraints": ("a",)}, Category.CONSTRAINT_VIOLATION),
    "failed-test": ({"findings": (a_finding("test"),)}, Category.VERIFICATION_FAILED),
    "broken-policy": ({"findings": (a_finding("policy"),)}, Category.VERIFICATION_FAILED),
    "compile-error": ({"findings": (a_finding("diagnostic"),)}, Category.EXECUTION_FAILURE),
    "crash": ({"findings": (a_finding("crash"),)}, Category.EXECUTION_FAILURE),
}


@pytest.mark.parametrize(("given", "expected"), _CATEGORIES.values(), ids=_CATEGORIES)
def test_category(given, expected):
    assert expected == _category(**given)


_TEXTS = {
    "reset": ("read: Connection reset by peer", "transient", "text-connection-reset"),
    "reset-after-the-word-failed": ("job failed: connection reset by peer", "transient", "text-connection-reset"),
    "reset-code": ("Error: read ECONNRESET", "transient", "text-connection-reset"),
    "refused": ("connect ECONNREFUSED 127.0.0.1:5432", "transient", "text-connection-refused"),
    "timed-out": ("ssh: Connection timed out", "transient", "text-connection-timeout"),
    "unreachable": ("Network is unreachable", "transient", "text-unreachable"),
    "name": ("(6) Could not resolve host: db.example", "transient", "text-name-resolution"),
    "port": ("bind: Address already in use", "transient", "text-address-in-use"),
    "rate": ("429 Too Many Requests", "transient", "text-rate-limit"),
    "overload": ("overloaded_error: try later", "transient", "text-rate-limit"),
    "unavailable": ("HTTP/1.1 503 Service Unavailable", "transient", "text-server-error"),
    "status": ("request failed with status code 502", "transient", "http-502"),
    "disk": ("write: No space left on device", "environment", "text-disk-full"),
    "read-only": ("mkdir: Read-only file system", "environment", "text-read-only"),
    "memory": ("fork: Cannot allocate memory", "resource", "text-out-of-memory"),
    "files": ("accept: Too many open files", "resource", "text-too-many-files"),
    "login": ("HTTP 401", "auth", "http-401"),
    "credential": ("Authentication failed for user", "auth", "text-unauthorized"),
    "forbidden": ("403 Forbidden", "auth", "text-forbidden"),
    "credit": ("Your credit balance is too low", "billing", "text-credit"),
    "too-long": ("prompt is too long: 210000 tokens", "context_window", "text-too-long"),
}


@pytest.mark.parametrize(("line", "kind", "rule"), _TEXTS.values(), ids=_TEXTS)
def test_words_of_the_system_name_a_cause(line, kind, rule):
    cause = classify.cause_of_text([line])
    assert (kind, rule) == (cause.kind, cause.rule)


_LOOK_ALIKES = {
    "assertion-about-a-code": "AssertionError: expected 'ECONNRESET'",
    "test-name": "FAILED tests/test_limits.py::test_rate_limit_returns_429",
    "test-name-with-parameter": "tests/test_api.py::test_status[429] FAILED",
    "marked-test-title": "✕ retries when the connection refused error comes (3 ms)",
    "numbered-test-title": "not ok 3 - reconnects after connection reset",
    "bullet-test-title": "● client › gives up on too many requests",
    "upper-case-test-title": "FAIL src/client.test.ts > reconnects after connection refused",
    "matcher": "expect(received).toBe(429) // connection reset",
    "wish": "should retry on connection refused",
    "compared-values": "E       assert 503 == 200",
    "diff-of-a-snapshot": "+ connection refused",
    "quoted-source": "> connection refused",
    "plain-number": "copied 503 files",
    "line-number": "src/a.py:429: bad total",
    "client-error": "HTTP 404",
    "general-server-error": "HTTP 500",
    "longer-word": "disconnection resetting is done",
    "seconds": "took 503s",
}


@pytest.mark.parametrize("line", _LOOK_ALIKES.values(), ids=_LOOK_ALIKES)
def test_look_alike_is_no_cause(line):
    assert classify.cause_of_text([line]) is None


def test_cause_is_found_beside_a_look_alike():
    cause = classify.cause_of_text(["AssertionError: expected 'ECONNRESET'", "read: connection reset by peer"])
    assert "text-connection-reset" == cause.rule


_WAITS = {
    "header": ("429 Too Many Requests, Retry-After: 17", 17.0),
    "minutes": ("too many requests, try again in 2 minutes", 120.0),
    "milliseconds": ("rate limit: retry after 1500ms", 1.5),
    "unspoken-unit": ("rate limit: retry after 20", 20.0),
    "none": ("429 Too Many Requests", None),
}


@pytest.mark.parametrize(("line", "seconds"), _WAITS.values(), ids=_WAITS)
def test_wait_that_was_asked_for_is_read(line, seconds):
    assert seconds == classify.cause_of_text([line]).retry_after_seconds


def test_longest_wait_that_was_asked_for_counts():
    cause = classify.cause_of_text(["rate limit: retry after 2s", "rate limit: retry after 9s"])
    assert 9.0 == cause.retry_after_seconds


def test_wait_is_read_only_where_waiting_can_help():
    assert classify.cause_of_text(["HTTP 401, retry after 5s"]).retry_after_seconds is None


def _cause(**given):
    defaults = {"exit_code": 1, "signal": None, "command": "deploy", "lines": (), "findings": ()}
    return classify.cause(**{**defaults, **given})


_CODES = {
    "try-again": (75, CauseKind.TRANSIENT, Retryable.YES),
    "not-found": (127, CauseKind.COMMAND_NOT_FOUND, Retryable.NO),
    "cannot-execute": (126, CauseKind.PERMISSION_DENIED, Retryable.NO),
}


@pytest.mark.parametrize(("code", "kind", "retryable"), _CODES.values(), ids=_CODES)
def test_exit_code_of_a_convention_names_a_cause(code, kind, retryable):
    cause = _cause(exit_code=code)
    assert (kind, retryable) == (cause.kind, cause.retryable)


@pytest.mark.parametrize("code", [1, 2, 3, 74, 76, 125, 128, 255])
def test_exit_code_without_a_convention_names_none(code):
    assert _cause(exit_code=code) is None


def test_missing_command_is_named_in_the_fix():
    assert "deploy" in _cause(exit_code=127).fix


def test_code_behind_a_signal_is_no_convention():
    assert _cause(exit_code=127, signal="SIGXFSZ") is None


def test_extractor_knows_the_words_of_its_tool_best():
    cause = a_cause("config", rule="tool")
    assert cause == _cause(exit_code=75, findings=[a_finding("infrastructure", cause=cause)])


def test_surest_extractor_wins():
    sure, unsure = a_cause("config"), a_cause("auth")
    findings = [
        a_finding("infrastructure", cause=unsure, confidence="likely"),
        a_finding("infrastructure", cause=sure, confidence="exact"),
    ]
    assert sure == _cause(findings=findings)


def test_failed_test_that_prints_a_network_error_has_no_cause():
    assert _cause(lines=["connection refused"], findings=[a_finding("test")]) is None
