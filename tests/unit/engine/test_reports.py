"""Exit status against reports."""

from __future__ import annotations

import pytest

from kos_retry.engine.reports import verdict

# Exit code, whether there are fresh and stale reports, their totals, whether anything in them failed; and the verdict.
_CASES = {
    "no reports": (1, False, False, {}, False, None),
    "stale alone": (1, False, True, {}, False, "stale"),
    "stale alone, passed": (0, False, True, {}, False, "stale"),
    "stale beside fresh": (1, True, True, {"failed": 1}, True, "agrees"),
    "both failed": (1, True, False, {"passed": 2, "failed": 1}, True, "agrees"),
    "both passed": (0, True, False, {"passed": 2}, False, "agrees"),
    "masked by totals": (0, True, False, {"passed": 2, "failed": 1}, False, "masked_failure"),
    "masked by errors": (0, True, False, {"errored": 1}, False, "masked_failure"),
    "masked without totals": (0, True, False, {}, True, "masked_failure"),
    "failed afterwards": (1, True, False, {"passed": 2}, False, "failed_afterwards"),
    "failed after skips alone": (1, True, False, {"skipped": 2}, False, "failed_afterwards"),
    "unfinished": (1, True, False, {"passed": 2, "unfinished": 1}, False, "unfinished"),
    "unfinished goes before failed": (1, True, False, {"failed": 2, "unfinished": 1}, True, "unfinished"),
    "fresh and empty": (1, True, False, {}, False, None),
    "zeros say nothing": (0, True, False, {"passed": 0, "failed": 0}, False, None),
}


@pytest.mark.parametrize(("exit_code", "fresh", "stale", "totals", "failures", "expected"), _CASES.values(), ids=_CASES)
def test_exit_status_is_held_against_reports(exit_code, fresh, stale, totals, failures, expected):
    assert expected == verdict(exit_code, fresh=fresh, stale=stale, totals=totals, failures=failures)
