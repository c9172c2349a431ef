"""`kos-retry history`: what the store remembers across sessions."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

import orjson

from kos_retry import limits
from kos_retry.adapters.store.location import Location, locate, with_store
from kos_retry.adapters.store.memory import tidy
from kos_retry.cli.inputs import lines, parse_json, parse_model, state_root
from kos_retry.cli.output import complain, write_bytes, write_json, write_text
from kos_retry.cli.run import settings_of
from kos_retry.engine.estimate import Record, record_of
from kos_retry.engine.memory import lesson
from kos_retry.engine.trend import trend
from kos_retry.errors import InputError
from kos_retry.model import Sighting
from kos_retry.ports import Store
from kos_retry.settings import Raw
from kos_retry.text.durations import format_duration
from kos_retry.text.escapes import printable
from kos_retry.text.words import count

Answer = TypeVar("Answer")
# Whoever asks for a list has more patience than a run that failed.
_PATIENCE_SECONDS = 60.0
_FAULTS = 1
_PIPE_COLUMNS = 240


class Place(NamedTuple):
    """Where to look: the options as they were written; the configuration says where without them."""

    store: str | None
    state_dir: str | None


class Failure(NamedTuple):
    """One failure of one command, as people see it."""

    latest: Sighting
    record: Record
    trend: str


def signatures(place: Place, limit: int, form: str) -> None:
    """Write what is known of every failure, the last seen first."""
    _write_failures(_failures(place, limit, flaky=False), form, "signatures")


def flaky(place: Place, limit: int, form: str) -> None:
    """Write the failures that passed on retry, the most costly first."""
    _write_failures(_failures(place, limit, flaky=True), form, "flaky")


def lessons(place: Place, limit: int, form: str) -> None:
    """Write one sentence for every session that was rescued or given up, the newest first."""
    seen: tuple[Sighting, ...] = _asked(place, lambda store: store.lessons(limit), ())
    if form == "json":
        write_json({"lessons": [{"lesson": lesson(s, printable), **s.as_json()} for s in seen]})
        return
    write_text("".join(f"{printable(lesson(s, lambda said: repr(printable(said))))}\n" for s in seen))


def export(place: Place) -> None:
    """Write every sighting as one line of JSON, the oldest first."""

    def write_all(store: Store) -> None:
        for sighting in store.all():
            write_bytes(orjson.dumps(sighting.as_json(), option=orjson.OPT_APPEND_NEWLINE))

    _asked(place, write_all, None)


def import_lines(place: Place, source: str) -> int:
    """Read lines that `export` wrote, each counted once however often it comes; return 1 if some could not be read."""
    bad: list[str] = []

    def read_all(store: Store) -> tuple[int, int]:
        read = new = 0
        for batch in _batches(_readable(source, bad)):
            read, new = read + len(batch), new + store.add(batch)
        location = _location(place)
        tidy(store, datetime.now(UTC), on_server=location.file is None)
        return read, new

    read, new = _in_store(place, read_all)
    known = f", {read - new} were known" if read > new else ""
    write_text(f"{count(new, 'sighting')} imported{known}" + (f", {count(len(bad), 'bad line')}" if bad else "") + "\n")
    return _FAULTS if bad else 0


def prune(place: Place, older_than: float | None, keep: int | None) -> None:
    """Drop what is older than so many seconds, and the oldest beyond a number; without either what is dropped by itself."""
    now = datetime.now(UTC)
    location = _location(place)

    def drop(store: Store) -> int:
        if older_than is None and keep is None:
            return tidy(store, now, on_server=location.file is None)
        return store.prune(None if older_than is None else now - timedelta(seconds=older_than), keep)

    write_text(f"{count(_asked(place, drop, 0), 'sighting')} dropped\n")


def _location(place: Place) -> Location:
    given: Raw = {name: value for name, value in place._asdict().items() if value is not None}
    settings = settings_of(given, os.environ)
    location = locate(settings.store, state_root(place.state_dir))
    if location is None:
        raise InputError("option --store: the store is switched off")
    return location


def _in_store(place: Place, work: Callable[[Store], Answer]) -> Answer:
    return with_store(_location(place), _PATIENCE_SECONDS, complain, work)


def _asked(place: Place, work: Callable[[Store], Answer], nothing: Answer) -> Answer:
    """Ask the store, or answer for one that was never begun: a question does not begin it."""
    file = _location(place).file
    return nothing if file is not None and not os.path.exists(file) else _in_store(place, work)


def _failures(place: Place, limit: int, *, flaky: bool) -> list[Failure]:
    now = datetime.now(UTC)

    def look(store: Store) -> list[Failure]:
        keys = store.failures(limit, flaky=flaky)
        return [_failure(store.of_failure(*key, limits.STORE_MAX_FILE_ROWS), now) for key in keys]

    return _asked(place, look, [])


def _failure(seen: Sequence[Sighting], now: datetime) -> Failure:
    return Failure(seen[0], record_of(seen, now), trend((s.time for s in seen), now))


def _write_failures(failures: Sequence[Failure], form: str, name: str) -> None:
    if form == "json":
        write_json({name: [_as_json(failure) for failure in failures]})
    elif failures:
        write_text(_table(failures))


def _as_json(failure: Failure) -> dict[str, Any]:
    latest, record = failure.latest, failure.record._asdict()
    shown = {name: getattr(latest, name) for name in ("signature", "coarse", "message", "command", "command_line")}
    return {**shown, **record, "trend": failure.trend, "estimate": record["estimate"]._asdict()}


def _table(failures: Sequence[Failure]) -> str:
    """Return the failures as a table without lines or colour, as wide as the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="")
    for name, right in _COLUMNS:
        table.add_column(name, justify="right" if right else "left", no_wrap=True, overflow="ellipsis")
    for failure in failures:
        table.add_row(*(Text(cell) for cell in _cells(failure)))
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _PIPE_COLUMNS
    out = io.StringIO()
    Console(file=out, width=width, color_system=None, legacy_windows=False).print(table)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


_COLUMNS = (
    ("signature", False),
    ("last seen", False),
    ("first seen", False),
    ("runs", True),
    ("passed on retry", True),
    ("estimate", True),
    ("retries", True),
    ("time", True),
    ("trend", False),
    ("failure", False),
    ("command", False),
)


def _cells(failure: Failure) -> tuple[str, ...]:
    latest, record, trend_word = failure
    guess = record.estimate
    return (
        latest.signature[:15],
        f"{record.last_seen:%Y-%m-%d}",
        f"{record.first_seen:%Y-%m-%d}",
        str(record.runs),
        f"{record.passed} of {record.retried}",
        f"{guess.rate:.2f} ({guess.low:.2f}-{guess.high:.2f})",
        str(record.retries),
        format_duration(record.retry_seconds) or "0s",
        trend_word,
        printable(latest.message or latest.coarse)[:60],
        printable(latest.command_line)[:60],
    )


def _readable(source: str, bad: list[str]) -> Iterator[Sighting]:
    """Yield the sightings of the lines that hold one; name the others, each with its number."""
    for number, line in lines(source):
        try:
            yield parse_model(Sighting, parse_json(line, f"line {number}"), f"line {number}")
        except InputError as error:
            bad.append(str(error))
            complain(str(error))


def _batches(sightings: Iterator[Sighting]) -> Iterator[list[Sighting]]:
    batch: list[Sighting] = []
    for sighting in sightings:
        batch.append(sighting)
        if len(batch) == limits.STORE_IMPORT_BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
