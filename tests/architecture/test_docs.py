"""The table of token classes in the documentation is the one that holds.

Run with KOS_RETRY_WRITE_DOCS=1 to write it anew.
"""

import os
import re
from pathlib import Path

from kos_retry.engine.normalise import normalise_line
from kos_retry.engine.tokens import TOKEN_CLASSES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "signatures.md"
_SECTION = re.compile(r"(<!-- classes -->\n).*?(<!-- end of classes -->)", re.DOTALL)


def _cell(text):
    return "`" + text.replace("|", "\\|") + "`"


def table():
    rows = ["| class | | example | becomes |", "|---|---|---|---|"]
    for token in TOKEN_CLASSES:
        how = "kept" if token.mask is None else "masked" if isinstance(token.mask, str) else "masked in part"
        rows.append(f"| {token.name} | {how} | {_cell(token.example)} | {_cell(normalise_line(token.example))} |")
    return "\n".join(rows) + "\n"


def test_documented_classes_are_the_ones_that_hold():
    page = PAGE.read_text(encoding="utf-8")
    wanted = _SECTION.sub(lambda match: match[1] + table() + match[2], page)
    if "KOS_RETRY_WRITE_DOCS" in os.environ:
        PAGE.write_text(wanted, encoding="utf-8")
    assert wanted == PAGE.read_text(encoding="utf-8")
