"""What an extractor's answer makes of its findings."""

from __future__ import annotations

import pytest

from kos_retry.sdk import MAX_HEADLINE_BYTES, Answer, one_line


def _an_answer(*kinds: str | None, confidence: str = "likely") -> Answer:
    answer = Answer()
    for kind in kinds:
        answer.add("test", message="m", cause={"kind": kind} if kind else None)
    answer.findings[-1]["confidence"] = confidence
    return answer


@pytest.mark.parametrize(
    ("kinds", "confidence", "left"),
    [
        (("transient", "transient"), "likely", ["transient", "transient"]),
        (("transient", None), "likely", [None, None]),
        (("transient", "deterministic"), "likely", [None, "deterministic"]),
        (("transient", None), "guess", ["transient", None]),
    ],
    ids=["all", "one-without", "one-lasting", "a-guess"],
)
def test_failure_is_passing_only_where_every_one_is(kinds, confidence, left):
    answer = _an_answer(*kinds, confidence=confidence)
    answer.drop_mixed_transience()
    assert left == [(f.get("cause") or {}).get("kind") for f in answer.findings]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["expected: 4", "     got: 3"], "expected: 4 got: 3"),
        (["", "  ", "bad"], "bad"),
        ([], ""),
        (["x" * 2 * MAX_HEADLINE_BYTES], "x" * MAX_HEADLINE_BYTES),
    ],
    ids=["two", "blank", "none", "too-long"],
)
def test_lines_become_one(lines, expected):
    assert expected == one_line(lines)
