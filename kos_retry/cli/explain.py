"""`kos-retry explain`: which lines a signature is made of, what was masked in them, and why two signatures differ."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from kos_retry.adapters.observation import joined
from kos_retry.adapters.own_rules import OwnRules
from kos_retry.cli.inputs import parse_model, read_log
from kos_retry.cli.instruments import Instruments, instruments
from kos_retry.cli.observe import envelope_of
from kos_retry.cli.output import write_json
from kos_retry.engine import sign
from kos_retry.engine.evidence import EvidenceLine, choose_lines
from kos_retry.engine.normalise import Normalised, explain_line, level
from kos_retry.engine.similarity import similarity
from kos_retry.errors import InputError
from kos_retry.model import FailureEnvelope, OutcomeRow


class Explained(NamedTuple):
    """One input: its envelope, the lines that were chosen from a log, and what normalising did to every part of the signature."""

    envelope: FailureEnvelope
    chosen: tuple[EvidenceLine, ...]
    parts: tuple[tuple[str, Normalised], ...]


def explain(sources: list[str], exit_code: int, form: str) -> None:
    """Explain the signature of a log or of an envelope as JSON, or why those of two differ."""
    if len(sources) > 2:
        raise InputError(f"explain takes one input or two, not {len(sources)}")
    if sources.count("-") > 1:
        raise InputError("only one of the two inputs can come from standard input")
    with instruments({}) as given:
        told = [_explained(source, exit_code, given) for source in sources]
    if form == "json":
        write_json(_as_json(told[0]) if len(told) == 1 else _both_as_json(*told))
        return
    from kos_retry.report import explanation

    if len(told) == 1:
        explanation.show(told[0].envelope, told[0].chosen, told[0].parts)
    else:
        explanation.show_difference(similarity(told[0].envelope, told[1].envelope), told[0].envelope, told[1].envelope)


def _explained(source: str, exit_code: int, given: Instruments) -> Explained:
    captured = read_log(source)
    text = joined(captured, given.redactor)
    envelope = _of_envelope(text, source, given.rules)
    chosen: tuple[EvidenceLine, ...] = ()
    if envelope is None:
        chosen = choose_lines(text)
        envelope = envelope_of(OutcomeRow(exit_code=exit_code), given, {"output": captured})
    scheme = given.rules.scheme([envelope])
    said = [("message", line) for line in envelope.error_message.splitlines() if line.strip()]
    said += [("constraint", name) for name in envelope.failing_constraints]
    return Explained(
        envelope, chosen, tuple((kind, explain_line(line, scheme.own.get(level(line), ()))) for kind, line in said)
    )


def _of_envelope(text: str, source: str, rules: OwnRules) -> FailureEnvelope | None:
    """Return the envelope that a text is, signed anew, or None where it is a log."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if isinstance(value, dict) and isinstance(value.get("envelope"), dict):
        value = value["envelope"]
    if not isinstance(value, dict) or not {"error_message", "ErrorMessage"} & set(value):
        return None
    bare = parse_model(FailureEnvelope, value, source).replace(signature="", coarse="", features=())
    return rules.signed([sign.signed(bare)])[0]


def _as_json(told: Explained) -> dict[str, Any]:
    envelope = told.envelope
    return {
        "signature": envelope.signature,
        "coarse": envelope.coarse,
        "chosen_lines": [
            {"number": line.number, "text": line.text, "score": line.score, "marks": line.marks} for line in told.chosen
        ],
        "parts": [
            {
                "part": kind,
                "line": entry.levelled,
                "normalised": entry.text,
                "tokens": [token._asdict() for token in entry.tokens],  # NamedTuple's public method
            }
            for kind, entry in told.parts
        ],
        "canonical": {"features": sign.features(envelope), "version": envelope.signature.partition(":")[0]},
    }


def _both_as_json(old: Explained, new: Explained) -> dict[str, Any]:
    return {
        "old": {"signature": old.envelope.signature, "coarse": old.envelope.coarse},
        "new": {"signature": new.envelope.signature, "coarse": new.envelope.coarse},
        "similarity": similarity(old.envelope, new.envelope).as_json(),
    }
