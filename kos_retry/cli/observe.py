"""`kos-retry observe`: turn one outcome, or a stream of them, into envelopes."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from kos_retry.adapters.actions import ActionsFile, Appended
from kos_retry.adapters.extraction.material import Material
from kos_retry.adapters.extraction.transcripts import Told, TranscriptText, check_format, read
from kos_retry.adapters.observation import conclude, inquire, joined, redacted
from kos_retry.cli.inputs import kept, lines, parse_json, parse_model, read_bytes, read_log
from kos_retry.cli.instruments import Instruments, instruments
from kos_retry.cli.output import complain, write_json
from kos_retry.engine.observe import Evidence
from kos_retry.errors import InputError
from kos_retry.model import FailureEnvelope, OutcomeRow
from kos_retry.outcome import Captured, Reports
from kos_retry.settings import Raw
from kos_retry.text.escapes import decode

_SIGNAL_BASE = 128
_GENERAL_FAILURE = 1


def observe(row: OutcomeRow, log: str | None, raw: Raw, mask_env: list[str], actions: str | None = None) -> None:
    """Write the envelope of one outcome; its output is read from ``log`` (``-`` for standard input), its actions from a file."""
    with instruments(raw, mask_env) as given:
        streams = {}
        if log is not None and row.transcript is not None:
            row = row.replace(output=decode(read_bytes(log)))
        elif log is not None:
            streams = {"output": read_log(log)}
        if row.exit_code is None and row.signal is None and row.category is None:
            raise InputError("say how the command ended: --exit-code, --signal or --category is missing")
        appended = ActionsFile(actions).appended() if actions is not None else Appended()
        row = row.replace(executed_actions=row.executed_actions + appended.actions)
        write_json(envelope_of(row, given, streams, faults=appended.faults))


def observe_rows(source: str, raw: Raw, mask_env: list[str]) -> None:
    """Write one line `{"id", "envelope"}` for every line of ``source``; a bad one gives `{"id", "error"}`."""
    with instruments(raw, mask_env) as given:
        for number, line in lines(source):
            write_json(_answer(number, line, given))


def envelope_of(
    row: OutcomeRow,
    given: Instruments,
    streams: Mapping[str, Captured] | None = None,
    faults: dict[str, str] | None = None,
) -> FailureEnvelope:
    """Return the envelope of a row; ``streams`` are outputs that stand beside it, ``faults`` says what could not be read."""
    texts = {"output": row.output, "stdout": row.stdout, "stderr": row.stderr}
    outputs = {name: kept(text) for name, text in texts.items() if text is not None} | dict(streams or {})
    exit_code, signal = ending(row)
    known = Evidence(
        attempt=row.attempt,
        exit_code=exit_code,
        signal=signal,
        timed_out=row.timed_out,
        argv=_argv(row.command),
        constraints=row.failing_constraints,
        actions=row.executed_actions,
        category=row.category,
        duration_seconds=row.duration_seconds,
        omitted_bytes=sum(output.omitted for output in outputs.values()),
        failed_extractors=faults or {},
    )
    shown = {name: joined(output, given.redactor) for name, output in outputs.items()}
    told = _told(row, known, shown, given)
    if told is not None and told.stream:
        shown[told.stream] = redacted(told.prose, given.redactor)
    inquiry = inquire(given.extraction, known, shown, given.redactor, workspace=row.cwd or "", reports=row.reports)
    envelope = conclude(known, shown, given.redactor, inquiry, told, Reports(row.reports))
    return given.rules.signed([envelope])[0]


def _told(row: OutcomeRow, known: Evidence, shown: dict[str, str], given: Instruments) -> Told | None:
    """Return what the row's output tells as a transcript, if it is one."""
    if row.transcript is None:
        return None
    check_format(row.transcript)
    stream = "output" if row.stdout is None else "stdout"
    raw = (row.output if row.stdout is None else row.stdout) or ""
    text = TranscriptText(row.transcript, stream, raw.encode("utf-8", "replace"))
    aside = {name: shown[name] for name in shown if name == "stderr"}
    attempt = (known.attempt, known.exit_code, known.signal, known.timed_out)
    return read(given.extraction, Material(*attempt, known.argv, row.cwd or "", aside), text, given.redactor)


def ending(row: OutcomeRow) -> tuple[int, str | None]:
    """Return exit code and signal name; a negative code is a signal's number, as Python's subprocess has it."""
    from signal import Signals

    names = {s.name: s.value for s in Signals} | {s.name.removeprefix("SIG"): s.value for s in Signals}
    if row.signal is not None:
        number = names.get(row.signal.upper()) or (
            int(row.signal) if row.signal.isascii() and row.signal.isdigit() else 0
        )
        if number not in names.values():
            raise InputError(f"signal: '{row.signal}' is not the name or number of a signal")
        return _SIGNAL_BASE + number, Signals(number).name
    if row.exit_code is None:
        return (0 if row.category == "success" else _GENERAL_FAILURE), None
    if row.exit_code < 0 and -row.exit_code in names.values():
        return _SIGNAL_BASE - row.exit_code, Signals(-row.exit_code).name
    return row.exit_code, None


def _argv(command: str | tuple[str, ...] | None) -> tuple[str, ...]:
    if not isinstance(command, str):
        return command or ()
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return tuple(command.split())


def _answer(number: int, line: bytes, given: Instruments) -> dict[str, Any]:
    where, row_id = f"line {number}", None
    try:
        value = parse_json(line, where)
        if isinstance(value, dict):
            row_id = value.get("id")
        row = parse_model(OutcomeRow, value, where)
        return {"id": row.id, "envelope": envelope_of(row, given).as_json()}
    except InputError as error:
        complain(str(error))
        return {"id": row_id if isinstance(row_id, (str, int, type(None))) else None, "error": str(error)}
