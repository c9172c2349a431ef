"""Whether a failure is seen more often than before."""

from __future__ import annotations

from datetime import timedelta

import pytest
from builders import NOW

from kos_retry.engine.trend import trend

# Ages in days, and the word for them.
_TRENDS = {
    "never": ([], "new"),
    "first": ([1], "new"),
    "recent-alone": ([0, 5, 13], "new"),
    "more": ([1, 2, 20], "rising"),
    "fewer": ([1, 20, 21], "falling"),
    "as-many": ([1, 20], "steady"),
    "not-any-more": ([15, 16, 300], "gone"),
    "back-again": ([1, 300], "rising"),
    "on-the-edge": ([14], "gone"),
}


@pytest.mark.parametrize(("ages", "word"), _TRENDS.values(), ids=_TRENDS)
def test_trend(ages, word):
    assert word == trend((NOW - timedelta(days=age) for age in ages), NOW)
