"""The page on stop reasons names all of them, and tests that there are."""

from __future__ import annotations

import re

from builders import ROOT

from kos_retry.model import StopReason

_PAGE = (ROOT / "docs" / "stop-reasons.md").read_text(encoding="utf-8")
_TEST = re.compile(r"^def (test_\w+)", re.MULTILINE)


def test_every_stop_reason_has_a_row():
    first, _, _ = _PAGE.partition("## The research agent")
    cells = [line.split("|")[1] for line in first.splitlines() if line.startswith("| `")][1:]
    rows = {name for cell in cells for name in _named(cell)}
    assert {reason.value for reason in StopReason} == rows


def test_tests_that_are_named_exist():
    tests = {name for path in (ROOT / "tests").rglob("test_*.py") for name in _TEST.findall(path.read_text("utf-8"))}
    named = {name for name in _named(_PAGE) if name.startswith("test_")}
    assert (set(), True) == (named - tests, len(named) > 40)


def _named(text: str) -> list[str]:
    return re.findall(r"`(\w+)`", text)
