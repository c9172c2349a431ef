"""What the errors of model providers mean."""

from __future__ import annotations

import pytest

from kos_retry.sdk.provider import reason_of_words, reset_of, wait_of

_MEANING = {
    "You have hit your usage limit for today": "quota",
    "429: You exceeded your current quota": "quota",
    "weekly limit reached, resets Monday": "quota",
    "Your credit balance is too low to go on": "billing",
    "402 Payment Required": "billing",
    "Prompt is too long: 210000 tokens": "context_window",
    "this model's maximum context length is 8192 tokens": "context_window",
    "the input token count (1200000) exceeds the maximum number of tokens allowed": "context_window",
    "the response exceeded the 32000 output token maximum": "context_window",
    "to use this, upgrade to the next plan": "billing",
    "401 Unauthorized": "auth",
    "unexpected status 401: no such key": "auth",
    "request failed, last status: 403": "auth",
    "API key not valid. Pass another one.": "auth",
    "Not logged in · run /login": "auth",
    "The model `big-one` does not exist": "config",
    "write failed: No space left on device": "environment",
    "429 Too Many Requests": "transient",
    "exceeded retry limit, last status: 429": "transient",
    "HTTP 503": "transient",
    '529 {"type":"error","error":{"type":"overloaded_error"}}': "transient",
    "stream disconnected before completion": "transient",
    "the chosen model is at capacity": "transient",
    "Reached maximum number of turns (4)": "turn_limit",
    "A potential loop was detected": "loop_detected",
    "exceeded retry limit, last status: 401": "auth",
    "connection error (status 401)": "auth",
    "it did not work": None,
    "see order 4290 on page 401": None,
    "line 500 of the file": None,
    "": None,
}


@pytest.mark.parametrize(("message", "kind"), _MEANING.items(), ids=lambda value: str(value)[:40])
def test_message_of_a_provider_has_a_kind(message, kind):
    found = reason_of_words(message)
    assert kind == (found.kind if found else None)


_WAITS = {
    "try again in 20s": 20,
    "Please retry in 34.074824224s.": 34.075,
    "Try again in 2h 15m": 8100,
    "try again in 1h30m": 5400,
    "retry after 3 seconds": 3,
    "resets in 2 days, 3 hours and 5 minutes": 183900,
    "try again in 500ms": 0.5,
    "retry after 250 milliseconds": 0.25,
    "try again at 3:28 PM": None,
    "resets 3pm (UTC)": None,
    "retry 5 times": None,
    "try again later": None,
    "3 seconds": None,
}


@pytest.mark.parametrize(("message", "seconds"), _WAITS.items(), ids=_WAITS)
def test_wait_that_a_message_asks_for(message, seconds):
    assert seconds == wait_of(message)


_RESETS = {
    "Limit reached. Try again at 3:28 PM.": "wait until the limit resets (3:28 PM), or raise it",
    "Your limit resets 3pm (UTC)": "wait until the limit resets (3pm (UTC)), or raise it",
    "limit reached": "wait until the limit resets, or raise it",
}


@pytest.mark.parametrize(("message", "fix"), _RESETS.items(), ids=_RESETS)
def test_time_of_a_reset_is_part_of_what_to_do(message, fix):
    assert fix == reset_of(message)


@pytest.mark.parametrize(
    "piece", ["model ", "invalid ", "exceeds the ", "max ", "try again in 1h ", "status ", "resets "]
)
def test_endless_message_is_read_at_its_start_alone(piece):
    reason_of_words(piece * 200_000)
    wait_of(piece * 200_000)
    reset_of(piece * 200_000)
