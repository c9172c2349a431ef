"""Every stop reason ends a real run, with its exit code, in the journal, in the report, and in words."""

from __future__ import annotations

import json

import pytest

from kos_retry.model import StopReason

FAILS = "echo 'error: no plan' >&2; exit 3"
# Prints the word for its attempt, and fails; another word is another failure.
SAYS = 'set -- {}; shift $((KOS_RETRY_ATTEMPT - 1)); echo "error: $1" >&2; exit 3'
COUNTS = 'set -- 7 4 9 6; shift $((KOS_RETRY_ATTEMPT - 1)); echo "there were $1 jobs left" >&2; exit 3'
# What an agent writes down at its end.
TELLS = "echo '{}'; exit 3"
AGENT = ("--transcript", "generic", "--guidance", "env", "--max-attempts", "9")
ESCALATES = ("--max-attempts", "9", "--max-stagnant-attempts", "1", "--guidance", "env", "--on-escalate")


def finish(ends="max_turns", **usage):
    return TELLS.format(json.dumps({"kind": "finish", "stop_reason": ends, "usage": usage}))


def actions(*, ok):
    """Return a command that does one thing four times over, and fails."""
    line = json.dumps({"tool": "shell", "input": {"cmd": "make"}, "ok": ok, "result": "nothing to do"})
    return f"for n in 1 2 3 4; do echo '{line}'; done; exit 3"


# Options, a command, the exit code, how many attempts failed, and what the last line says.
RUNS = {
    "done_signal": (("--done", "^DONE$"), "echo DONE", 0, 0, None),
    "zero_delta": ((), FAILS, 3, 2, "1 not tried: attempt 2 fails exactly like the one before"),
    "identical_signatures": (
        ("--guidance", "env", "--max-attempts", "9"),
        SAYS.format("plan way plan"),
        3,
        3,
        "6 not tried: this failure was seen 2 times, with another in between",
    ),
    "oscillation": (
        ("--guidance", "env", "--max-attempts", "9", "--max-identical-signatures", "9"),
        SAYS.format("plan way plan way"),
        3,
        4,
        "5 not tried: the last attempts repeat in a cycle of 2",
    ),
    "no_novelty": (
        ("--max-attempts", "9"),
        COUNTS,
        3,
        4,
        "5 not tried: the last 4 failures differ in numbers alone, which go up and down",
    ),
    "repeated_action": (
        ("--transcript", "generic"),
        actions(ok=True),
        3,
        1,
        "2 not tried: one action was done 4 times in a row: shell",
    ),
    "non_retryable": (("--stop-on", "exit:3"), FAILS, 3, 1, "2 not tried: a condition to stop on is met: exit:3"),
    "max_attempts": (("--max-attempts", "2"), SAYS.format("plan way"), 3, 2, "2 of 2 attempts used"),
    "deadline": (
        ("--deadline", "9s", "--delay", "20s", "--jitter", "none"),
        FAILS,
        3,
        1,
        "2 not tried: the wait of 20s would cross the deadline, ",
    ),
    "cost_budget": (
        (*AGENT, "--max-cost-usd", "1"),
        finish(cost_usd=0.7),
        3,
        1,
        "8 not tried: 0.30 of 1.00 USD left, and an attempt costs 0.70 USD in the mean",
    ),
    "token_budget": (
        (*AGENT, "--max-tokens", "100"),
        finish(input_tokens=60, output_tokens=50),
        3,
        1,
        "8 not tried: 110 of 100 tokens spent",
    ),
    "failure_budget": (
        (*AGENT, "--max-failures", "3"),
        actions(ok=False),
        3,
        1,
        "4 failed actions in a row, 3 allowed",
    ),
    "gate_denied": (("--gate", '[ "$KOS_RETRY_ATTEMPT" = 1 ]'), FAILS, 3, 1, "2 not tried: the gate said no"),
    "verdict_void": (
        ("--gate", """[ "$KOS_RETRY_ATTEMPT" = 1 ] || echo '{"verdict": "yes", "fingerprint": "0"}'"""),
        FAILS,
        3,
        1,
        "2 not tried: the gate said no",
    ),
    "cancelled": ((), "kill -INT $PPID; sleep 321", 130, 1, "the attempt was cancelled from outside"),
    "escalated": (
        (*ESCALATES, """echo '{"verdict": "halt"}'"""),
        FAILS,
        3,
        2,
        "7 not tried: help was called for, and nobody sent the run on: 2 attempts in a row fail the same way",
    ),
    "escalation_ignored": (
        (*ESCALATES, """echo '{"verdict": "retry"}'"""),
        FAILS,
        3,
        3,
        "6 not tried: escalated after attempt 2, and attempt 3 fails the same way",
    ),
    "transient_exhausted": (
        ("--max-transient-retries", "1"),
        "echo 'Connection reset by peer' >&2; exit 3",
        3,
        2,
        "1 not tried: 2 transient failures in a row: Connection reset by peer",
    ),
    "unusable_output": (("--transcript", "generic"), finish("parse_error"), 3, 2, "2 unreadable outputs in a row"),
}


@pytest.mark.parametrize("reason", RUNS)
def test_stop_reason_ends_a_run_and_is_told(kos_retry, tmp_path, reason):
    options, line, code, failed, words = RUNS[reason]
    options = ("--session", "s1", "--report", f"json:{tmp_path / 'report'}", *options)
    done = kos_retry("run", "--delay", "0s", *options, "--", "sh", "-c", line)
    assert (code, failed, reason) == (done.code, len(kos_retry.attempts()), kos_retry.end()["stop_reason"])
    assert reason == json.loads((tmp_path / "report").read_text())["stop_reason"]
    assert reason == kos_retry("sessions", "show", "s1", "--format", "json").json["stop_reason"]
    if words is None:
        assert [] == done.said
        return
    last = next(told for told in done.said if told.startswith("stopped after "))
    end = "" if reason == "cancelled" else f" ({reason})"
    assert (True, True) == (words in last, last.endswith(end)), last
    assert f"stopped: {reason}" in kos_retry("sessions", "show", "s1").stdout.decode().splitlines()


def test_attempt_that_passed_needs_no_other_one(kos_retry):
    done = kos_retry("next", stdin=b'{"exit_code": 0, "category": "success"}')
    assert ("halt_loop", "succeeded") == (done.json["recommendation"], done.json["stop_reason"])


def test_every_stop_reason_is_shown_here():
    assert {reason.value for reason in StopReason} - {"succeeded"} == set(RUNS)
