"""`kos-retry explain`: which lines a signature is made of, and what was masked in them."""

from __future__ import annotations

import os
import sys
from typing import Any

from kos_retry.adapters.extraction.extract import Extraction
from kos_retry.cli.inputs import parse_model, read_log
from kos_retry.cli.observe import envelope_of
from kos_retry.cli.output import write_json
from kos_retry.engine import sign
from kos_retry.engine.evidence import choose_lines
from kos_retry.engine.normalise import Normalised, explain_line
from kos_retry.engine.redact import Redactor, secret_values
from kos_retry.model import FailureEnvelope, OutcomeRow
from kos_retry.text.escapes import decode, inert, plain_text


def explain(source: str, exit_code: int, form: str) -> None:
    """Explain the signature of a log, or of an envelope as JSON, in a file or on standard input."""
    data, _ = read_log(source)
    redactor = Redactor(secret_values(os.environ))
    text = redactor.text(plain_text(decode(data)))
    envelope, lines = _of_envelope(text, source), []
    if envelope is None:
        with Extraction(redactor) as extraction:
            envelope = envelope_of(OutcomeRow(exit_code=exit_code, output=text), redactor, extraction)
        lines = [
            {"number": line.number, "text": line.text, "score": line.score, "marks": line.marks}
            for line in choose_lines(text)
        ]
    told = [explain_line(line) for line in envelope.error_message.splitlines() if line.strip()]
    if form == "json":
        write_json(_as_json(envelope, lines, told))
    else:
        _print(envelope, lines, told)


def _of_envelope(text: str, source: str) -> FailureEnvelope | None:
    """Return the envelope that a text is, or None where it is a log."""
    import orjson

    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(value, dict) or not {"error_message", "ErrorMessage"} & set(value):
        return None
    return sign.signed(parse_model(FailureEnvelope, value, source).model_copy(update={"signature": "", "coarse": ""}))


def _as_json(envelope: FailureEnvelope, lines: list[dict[str, Any]], told: list[Normalised]) -> dict[str, Any]:
    import orjson

    tokens = [
        {
            "line": entry.levelled,
            "normalised": entry.text,
            "tokens": [t._asdict() for t in entry.tokens],
        }  # NamedTuple's public method
        for entry in told
    ]
    return {
        "signature": envelope.signature,
        "coarse": envelope.coarse,
        "chosen_lines": lines,
        "message": tokens,
        "canonical": orjson.loads(sign.canonical(envelope)),
    }


def _print(envelope: FailureEnvelope, lines: list[dict[str, Any]], told: list[Normalised]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False, soft_wrap=True)
    console.print(Text(f"signature {envelope.signature}", "bold"))
    console.print(Text(f"class {envelope.coarse}"))
    if lines:
        console.print(Text("lines that were chosen:"))
    for line in lines:
        console.print(Text(f"  line {line['number']}, score {line['score']} ({', '.join(line['marks'])})", "dim"))
    console.print(Text("what the signature is made of:"))
    for feature in sign.features(envelope):
        console.print(Text(f"  {inert(feature)}"))
    if any(entry.tokens for entry in told):
        console.print(Text("what was masked or kept in the message:"))
    for entry in told:
        for token in entry.tokens:
            how = Text(f"  {token.token_class}: ", "dim")
            console.print(
                how
                + Text(token.text, "green" if token.mask is None else "red")
                + Text(" kept" if token.mask is None else f" became {token.mask}")
            )
