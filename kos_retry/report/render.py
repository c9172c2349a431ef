"""A session report as text, markdown or JSON."""

from __future__ import annotations

from collections.abc import Callable

import orjson

from kos_retry.model import Category, FailureEnvelope
from kos_retry.report.session import Entry, SessionReport
from kos_retry.report.spending import spending
from kos_retry.text.bounds import cut_bytes
from kos_retry.text.escapes import inert, plain_text, printable

_LINE_BYTES = 200
_STATUS = {
    "passed": "passed on the first attempt",
    "flaky": "flaky: passed after failing, with nothing changed in between",
    "repaired": "repaired: passed after failing, with a change in between",
    "failed": "failed",
    "cancelled": "cancelled",
    "running": "still running, or it was killed",
}


def text(report: SessionReport) -> str:
    """Return the report for a terminal, without colour."""
    lines = [f"session {report.session}: {_STATUS.get(report.status, report.status)}{_code(report)}"]
    if report.argv:
        lines.append(f"command: {printable(' '.join(report.argv))}")
    for entry in report.entries:
        lines += _attempt_lines(entry)
    decision = report.last_decision
    if report.status in ("failed", "cancelled"):
        why = report.stop_reason or (decision.recommendation if decision is not None else None)
        lines += [f"stopped: {printable(why)}"] if why else []
        lines += [f"fix: {printable(decision.fix)}"] if decision is not None and decision.fix else []
    lines += [told] if (told := spending(report.ledger)) else []
    return "\n".join(lines) + "\n"


def markdown(report: SessionReport) -> str:
    """Return the report as markdown, its quotations in code so that they stay quotations."""
    lines = [f"### {_STATUS.get(report.status, report.status).capitalize()}{_code(report)}", ""]
    if report.argv:
        lines += [f"Command: {_span(' '.join(report.argv))}", ""]
    if report.entries:
        lines += ["| attempt | ended | failing | signature | decision |", "|---|---|---|---|---|"]
        lines += [_row(entry) for entry in report.entries]
    for entry in report.entries:
        lines += ["", f"Attempt {entry.envelope.attempt} printed:", "", _block(entry.envelope.error_message)]
    decision = report.last_decision
    if decision is not None and decision.fix:
        lines += ["", f"What would mend it: {_span(decision.fix)}"]
    if told := spending(report.ledger):
        lines += ["", told[:1].upper() + told[1:]]
    return "\n".join(lines) + "\n"


def json(report: SessionReport) -> str:
    """Return the report as indented JSON."""
    return orjson.dumps(report.as_json(), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode()


FORMATS: dict[str, Callable[[SessionReport], str]] = {"text": text, "json": json, "markdown": markdown}


def ending(envelope: FailureEnvelope) -> str:
    """Return how an attempt ended, in a few words."""
    if envelope.category is Category.TIMEOUT:
        limit = envelope.error_message.splitlines()[0] if envelope.error_message else "timed out"
        return f"{limit}, had to be ended by SIGKILL" if envelope.signal == "SIGKILL" else limit
    return envelope.signal or f"exit {envelope.exit_code}"


def headline(envelope: FailureEnvelope) -> str:
    """Return on one printable line what failed, by name where there is one, and the first thing it says."""
    lines = envelope.error_message.splitlines()
    said = "" if envelope.category is Category.TIMEOUT else next((line for line in lines if line.strip()), "")
    failing = [name for name in envelope.failing_constraints if name not in said]
    more = f" and {len(failing) - 1} more" if len(failing) > 1 else ""
    return cut_bytes(
        printable(": ".join(part for part in (failing[0] + more if failing else "", said) if part)), _LINE_BYTES
    )


def _attempt_lines(entry: Entry) -> list[str]:
    envelope, decision = entry
    said = headline(envelope)
    lines = [f"attempt {envelope.attempt}: {ending(envelope)}" + (f": {said}" if said else "")]
    lines += [f"  failing: {cut_bytes(printable(name), _LINE_BYTES)}" for name in envelope.failing_constraints]
    lines.append(f"  signature: {envelope.signature[:15]}")
    if decision is not None:
        why = "; ".join(printable(r.evidence) for r in decision.reasons)
        lines.append(f"  decided: {decision.recommendation} ({cut_bytes(why, _LINE_BYTES)})")
    lines += [
        f"  extractor {name} failed: {cut_bytes(printable(why), _LINE_BYTES)}"
        for name, why in sorted(envelope.extractors.items())
    ]
    return lines


def _code(report: SessionReport) -> str:
    return f", exit code {report.exit_code}" if report.exit_code else ""


def _row(entry: Entry) -> str:
    envelope, decision = entry
    failing = ", ".join(_span(name) for name in envelope.failing_constraints[:3])
    more = f" and {len(envelope.failing_constraints) - 3} more" if len(envelope.failing_constraints) > 3 else ""
    return f"| {envelope.attempt} | {ending(envelope)} | {failing}{more} | `{envelope.signature[:15]}` | {decision.recommendation if decision else ''} |"


def _span(said: str) -> str:
    return "`" + cut_bytes(printable(said).replace("`", "'").replace("|", "¦"), _LINE_BYTES) + "`"


def _block(said: str) -> str:
    """Return a quotation as an indented code block: no text can close it."""
    lines = plain_text(said).splitlines() or ["(nothing)"]
    return "\n".join(f"    {inert(line)}" for line in lines)
