"""Exit status against reports: whether what a command's report files say fits with how it ended."""

from __future__ import annotations

from collections.abc import Mapping

from kos_retry.model import ReportVerdict

_FAILED = ("failed", "errored", "errors")
_COUNTED = ("passed", "skipped", "flaky", "warnings", "unfinished", *_FAILED)


def verdict(
    exit_code: int, *, fresh: bool, stale: bool, totals: Mapping[str, int], failures: bool
) -> ReportVerdict | None:
    """Return how reports and exit code fit together, None where no report says anything.

    ``fresh`` and ``stale`` say whether there are reports that this attempt wrote, or left untouched; ``totals`` are the sums of the fresh
    ones, ``failures`` says whether anything in them failed.
    """
    if not fresh:
        return ReportVerdict.STALE if stale else None
    if totals.get("unfinished"):
        return ReportVerdict.UNFINISHED
    failed = failures or any(totals.get(name) for name in _FAILED)
    if not failed and not any(totals.get(name) for name in _COUNTED):
        return None
    if exit_code == 0:
        return ReportVerdict.MASKED_FAILURE if failed else ReportVerdict.AGREES
    return ReportVerdict.AGREES if failed else ReportVerdict.FAILED_AFTERWARDS
