"""Hypothesis strategies for what the world may hand in."""

from __future__ import annotations

from hypothesis import strategies as st

from kos_retry.engine.tokens import TOKEN_CLASSES
from kos_retry.model import Category, CauseKind, FailureEnvelope, NextAttempt, Policy, Recommendation

_EXAMPLES = [line for c in TOKEN_CLASSES for line in (c.example, c.counter)]
_WORDS = sorted({word for line in _EXAMPLES for word in line.split()})
_SEPARATORS = st.sampled_from(
    [" ", "", ":", "-", "/", ".", ",", "(", ")", "=", "@", "\t", "'", "\u0301", "\r", "\x1b[0m"]
)
_ENDS = st.sampled_from(["\n", "\r\n", "\r", "\u2028", ""])

# Lines that look like logs: whole examples and single words of them, in any neighbourhood.
token_lines = st.lists(st.tuples(st.sampled_from([*_EXAMPLES, *_WORDS]), _SEPARATORS), max_size=5).map(
    lambda parts: "".join(word + separator for word, separator in parts)
)
any_text = st.text(st.characters(exclude_categories=()), max_size=60)
lines = st.one_of(any_text, token_lines)
texts = st.lists(st.tuples(lines, _ENDS), max_size=4).map(lambda parts: "".join(line + end for line, end in parts))

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=6,
)
actions = st.one_of(
    st.sampled_from(["edit", "build"]),
    st.fixed_dictionaries(
        {"name": st.sampled_from(["edit", "build", ""]), "input": json_values},
        optional={"ok": st.none() | st.booleans(), "result": json_values},
    ),
)
_amounts = st.sampled_from([0, 1, 2**31, 2**63 - 1]) | st.integers(0, 10**6)
_seconds = st.sampled_from([0.0, 0.1, 1e12]) | st.floats(0, 1e6)
_causes = st.one_of(
    st.none(),
    st.sampled_from([kind.value for kind in CauseKind]),
    st.fixed_dictionaries(
        {"kind": st.sampled_from([kind.value for kind in CauseKind])},
        optional={
            "retryable": st.sampled_from(["yes", "no", "unknown"]),
            "retry_after_seconds": _seconds,
            "evidence": lines,
            "fix": lines,
        },
    ),
)
envelopes = st.fixed_dictionaries(
    {"error_message": st.sampled_from(["error: a", "error: b", ""]) | lines},
    optional={
        "attempt": st.integers(1, 5) | st.just(2**31 - 1),
        "exit_code": st.sampled_from([0, 1, 2, 75, 124, 126, 127, 130, 137, -9, 2**32 - 1]),
        "signal": st.sampled_from(["SIGKILL", "SIGTERM"]),
        "category": st.sampled_from([category.value for category in Category]),
        "cause": _causes,
        "failing_constraints": st.lists(st.sampled_from(["a", "b", "c"]) | lines, max_size=3),
        "executed_actions": st.lists(actions, max_size=3),
        "diagnostic_artifacts": st.lists(
            st.fixed_dictionaries({"name": st.text(max_size=4), "payload": json_values}), max_size=1
        ),
        "signature": st.sampled_from(["", "sha:1", "sha:2", "bare"]),
        "coarse": lines,
        "usage": st.fixed_dictionaries(
            {}, optional={"tokens": st.none() | _amounts, "cost_usd": st.none() | st.floats(0, 1e9)}
        ),
        "duration_seconds": _seconds,
        "files_changed": _amounts,
        "timestamp": st.datetimes().map(lambda moment: moment.isoformat()),
        "emitted_recommendation": st.sampled_from([r.value for r in Recommendation]),
    },
).map(FailureEnvelope.from_json)
# Most histories repeat a few failures: that is what decisions are about.
_failures = st.sampled_from("ABC").map(lambda name: FailureEnvelope(exit_code=1, error_message=f"error: {name}"))
histories = st.lists(_failures | envelopes, max_size=5)
policies = st.fixed_dictionaries(
    {},
    optional={
        "max_stagnant_attempts": st.integers(1, 4),
        "zero_delta_fail_fast": st.booleans(),
        "max_identical_signatures": st.integers(1, 4),
        "max_attempts": st.integers(0, 6),
        "deadline_seconds": _seconds,
        "max_cost_usd": st.just(0) | st.floats(0, 1e9),
        "max_tokens": _amounts,
        "max_failures": st.integers(1, 3),
        "max_transient_retries": st.integers(0, 3),
        "max_repeated_actions": st.integers(1, 3),
        "stop_on": st.just(("exit:2", "output:a")),
        "retry_on": st.sampled_from([("exit:1",), ("timeout", "signal:9"), ("cause:auth",)]),
        "next_attempt": st.sampled_from(list(NextAttempt)),
        "max_prompt_bytes": st.sampled_from([0, 1, 2, 3, 50]) | st.integers(0, 4096),
        "max_prompt_tokens": st.sampled_from([0, 1, 2]) | st.integers(0, 4096),
    },
).map(Policy.from_json)
