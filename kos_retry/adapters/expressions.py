"""Running regular expressions of users on hostile text: in a process that is killed when one does not come back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from kos_retry.adapters.process import group, signals
from kos_retry.limits import EXPRESSION_SECONDS, EXPRESSION_TEXT_BYTES

# The whole program of the child: one expression after the other, an answer a line, so that the one that hangs is known.
_PROGRAM = """
import json, re, sys
task = json.load(sys.stdin)
for expression in task["expressions"]:
    compiled = re.compile(expression, re.MULTILINE)
    if task["spans"]:
        group = min(compiled.groups, 1)
        found = [[match.span(group) for match in compiled.finditer(text)] for text in task["texts"]]
    else:
        found = any(compiled.search(text) for text in task["texts"])
    sys.stdout.write(json.dumps(found) + "\\n")
    sys.stdout.flush()
"""


def search(expressions: Sequence[str], texts: Sequence[str], warn: Callable[[str], None]) -> dict[str, bool | None]:
    """Return for each expression whether it matches anywhere in one of ``texts``, None where that could not be found out.

    ``^`` and ``$`` match at lines. An expression that takes longer than its time is named to ``warn``; the ones after it are still
    tried. Of a text over the limit, head and tail are searched.
    """
    return _asked(expressions, [_bounded(text) for text in texts], False, warn)


def spans(
    expressions: Sequence[str], texts: Sequence[str], warn: Callable[[str], None]
) -> dict[str, list[list[tuple[int, int]]] | None]:
    """Return for each expression the places in each of ``texts`` where it matches, or where its first group does if it has one.

    What takes too long is treated as in `search`.
    """
    return _asked(expressions, list(texts), True, warn)


def _asked(expressions: Sequence[str], texts: list[str], places: bool, warn: Callable[[str], None]) -> dict[str, Any]:
    left = list(dict.fromkeys(expressions))
    found: dict[str, Any] = {}
    while left:
        answers = _ask(left, texts, places)
        found.update(zip(left, answers, strict=False))
        left = left[len(answers) :]
        if left:
            found[left[0]] = None
            warn(
                f"the expression '{left.pop(0)}' was given up after {EXPRESSION_SECONDS:g}s: it takes too long on this output"
            )
    return found


def _ask(expressions: Sequence[str], texts: Sequence[str], places: bool) -> list[Any]:
    """Return the answers of one child, fewer than there are expressions where it had to be killed."""
    child = subprocess.Popen(  # noqa: S603 - our own interpreter and program
        [sys.executable, "-I", "-S", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        process_group=0,
    )
    task = json.dumps({"expressions": list(expressions), "texts": texts, "spans": places}).encode("ascii")
    try:
        out, _ = child.communicate(task, EXPRESSION_SECONDS * len(expressions))
    except subprocess.TimeoutExpired:
        group.send(child.pid, signals.SIGKILL)
        out, _ = child.communicate()
    # An answer that the kill cut off is none.
    return [json.loads(line) for line in out.splitlines(keepends=True) if line.endswith(b"\n")]


def _bounded(text: str) -> str:
    if len(text) <= EXPRESSION_TEXT_BYTES:
        return text
    half = EXPRESSION_TEXT_BYTES // 2
    return text[:half] + "\n" + text[-half:]
