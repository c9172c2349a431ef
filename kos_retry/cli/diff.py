"""`kos-retry diff`: what changed from one envelope to the next."""

from __future__ import annotations

import sys

from kos_retry.cli.inputs import own_rules, parse_json, parse_model, read_bytes
from kos_retry.cli.output import write_json
from kos_retry.engine.compare import compare
from kos_retry.engine.sign import comparable
from kos_retry.errors import InputError
from kos_retry.model import DiagnosticDelta, FailureEnvelope
from kos_retry.text.escapes import printable

_CHANGES = (
    ("fixed", "green", "constraints_fixed"),
    ("newly failing", "red", "constraints_broken"),
    ("still failing", "yellow", "constraints_still_failing"),
    ("new action", "green", "actions_new"),
    ("repeated action", "yellow", "actions_repeated"),
    ("gone", "green", "features_gone"),
    ("new", "red", "features_new"),
)


def diff(old: str, new: str, form: str) -> None:
    """Write the delta between two envelopes, as text for people or as JSON."""
    if old == new == "-":
        raise InputError("only one of the two envelopes can come from standard input")
    before, after = comparable(own_rules().signed((_envelope(old), _envelope(new))))
    delta = compare(before, after)
    if form == "json":
        write_json(delta)
    else:
        _print(delta)


def _envelope(source: str) -> FailureEnvelope:
    name = "standard input" if source == "-" else source
    return parse_model(FailureEnvelope, parse_json(read_bytes(source), name), name)


def _print(delta: DiagnosticDelta) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    console.print(Text(f"attempt {delta.from_attempt} to {delta.to_attempt}: {delta.differential_summary}", "bold"))
    console.print(
        Text(
            f"{delta.entropy_bits:.3f} bits; same failure: {_yes(delta.same_signature)}; same approach: {_yes(delta.same_approach)}"
        )
    )
    for word, colour, field in _CHANGES:
        for name in getattr(delta, field):
            # Text, not markup: what comes from an output is never interpreted.
            console.print(Text(f"  {word}: ", colour) + Text(printable(name)))


def _yes(value: bool) -> str:
    return "yes" if value else "no"
