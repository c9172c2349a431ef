"""Running regular expressions of users on hostile text: in a process that is killed when one does not come back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence

from kos_retry.adapters.process import group, signals
from kos_retry.limits import EXPRESSION_SECONDS, EXPRESSION_TEXT_BYTES

# The whole program of the child: one expression after the other, an answer a line, so that the one that hangs is known.
_PROGRAM = """
import json, re, sys
task = json.load(sys.stdin)
for expression in task["expressions"]:
    found = any(re.search(expression, text, re.MULTILINE) for text in task["texts"])
    sys.stdout.write("1\\n" if found else "0\\n")
    sys.stdout.flush()
"""


def search(expressions: Sequence[str], texts: Sequence[str], warn: Callable[[str], None]) -> dict[str, bool | None]:
    """Return for each expression whether it matches anywhere in one of ``texts``, None where that could not be found out.

    ``^`` and ``$`` match at lines. An expression that takes longer than its time is named to ``warn``; the ones after it are still
    tried. Of a text over the limit, head and tail are searched.
    """
    left = list(dict.fromkeys(expressions))
    found: dict[str, bool | None] = {}
    while left:
        answers = _ask(left, [_bounded(text) for text in texts])
        found.update(zip(left, answers, strict=False))
        left = left[len(answers) :]
        if left:
            found[left[0]] = None
            warn(
                f"the expression '{left.pop(0)}' was given up after {EXPRESSION_SECONDS:g}s: it takes too long on this output"
            )
    return found


def _ask(expressions: Sequence[str], texts: Sequence[str]) -> list[bool]:
    """Return the answers of one child, fewer than there are expressions where it had to be killed."""
    child = subprocess.Popen(  # noqa: S603 - our own interpreter and program
        [sys.executable, "-I", "-S", "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        process_group=0,
    )
    task = json.dumps({"expressions": list(expressions), "texts": texts}).encode("ascii")
    try:
        out, _ = child.communicate(task, EXPRESSION_SECONDS * len(expressions))
    except subprocess.TimeoutExpired:
        group.send(child.pid, signals.SIGKILL)
        out, _ = child.communicate()
    return [line == b"1" for line in out.split()]


def _bounded(text: str) -> str:
    if len(text) <= EXPRESSION_TEXT_BYTES:
        return text
    half = EXPRESSION_TEXT_BYTES // 2
    return text[:half] + "\n" + text[-half:]
