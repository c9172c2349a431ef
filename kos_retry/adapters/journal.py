"""The journal of a session: append-only JSON Lines, one record a line, on disk before anything is done about it.

Records: ``begin`` (a run starts), ``attempt`` (an envelope and what was decided), ``step`` (a recovery step has ended), ``help`` (a supervisor
sends the run on), ``end`` (how the run ended), ``resume`` (it goes on). A session can hold several runs; the last ``begin`` starts the history that counts. A crash can tear the
last line; readers skip what is not a record, and the next writer starts on a line of its own.
"""

from __future__ import annotations

import os

from kos_retry.adapters import state
from kos_retry.errors import StateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from kos_retry.engine.redact import Redactor
    from kos_retry.model import Decision, FailureEnvelope
    from kos_retry.outcome import Result

VERSION = 1


class SessionJournal:
    """Writes one session's records; the first fault is told once and ends the writing, not the run."""

    def __init__(
        self,
        directory: str,
        session: str,
        redactor: Redactor,
        warn: Any,
        now: Any,
        shown_argv: Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
        *,
        exact: bool = True,
        seconds_used: float = 0.0,
    ) -> None:
        self._seconds_used = seconds_used
        self._exact = exact
        self._options = dict(options or {})
        self._directory = directory
        self._session = session
        self._redactor = redactor
        self._warn = warn
        self._now = now
        self._shown_argv = list(shown_argv)
        self._broken = False

    def begin(self) -> None:
        """Record the start of a run; see the port."""
        told = {
            "argv": self._shown_argv,
            "exact": self._exact,
            "cwd": self._redactor.text(_cwd()),
            "pid": os.getpid(),
            "options": self._redactor.value(self._options),
        }
        self._append({"type": "begin", **told})

    def resume(self) -> None:
        """Record that the run goes on, and how long it had run before; see the port."""
        told = {"cwd": self._redactor.text(_cwd()), "pid": os.getpid(), "seconds_used": round(self._seconds_used, 3)}
        self._append({"type": "resume", **told})

    def attempt(self, envelope: FailureEnvelope, decision: Decision) -> None:
        """Record an attempt that did not pass; see the port."""
        record = {"envelope": envelope.as_json(), "decision": decision.as_json()}
        self._append({"type": "attempt", **self._redactor.value(record)})

    def step(self, command: str, exit_code: int) -> None:
        """Record a recovery step that has ended; one that was cut short has not been tried."""
        self._append({"type": "step", "command": self._redactor.text(command), "exit_code": exit_code})

    def help(self, guidance: str) -> None:
        """Record that whoever was asked for help sends the run on, and what it says to the next attempt."""
        self._append({"type": "help", "guidance": self._redactor.text(guidance)})

    def end(self, result: Result) -> None:
        """Record the end of a run; see the port."""
        record = {"type": "end", "status": result.status, "exit_code": result.exit_code, "attempts": result.attempts}
        self._append({**record, "stop_reason": result.ended_by, **_costs(result)})

    def envelope(self, envelope: FailureEnvelope, decision: Decision | None = None) -> None:
        """Record an envelope that was handed in from outside, with what was decided after it, if anything was."""
        record = {
            "envelope": envelope.as_json(),
            "decision": decision.as_json() if decision else None,
        }
        self._append({"type": "attempt", **self._redactor.value(record)})

    def _append(self, record: dict[str, Any]) -> None:
        if self._broken:
            return
        try:
            append(self._directory, {"v": VERSION, "session": self._session, "time": self._now(), **record})
        except (StateError, OSError) as error:
            self._broken = True
            text = (
                str(error)
                if isinstance(error, StateError)
                else f"cannot write the journal in {self._directory}: {error.strerror}"
            )
            self._warn(f"{text}; going on without a journal")


def _costs(result: Result) -> dict[str, Any]:
    """Return what all attempts have cost, and by itself the one that passed, where anything is known of that.

    An attempt that did not pass has its record, which says what it has cost.
    """
    if not result.ledger:
        return {}
    from kos_retry.engine.budget import own_usages, spent_by

    spent = spent_by(result.ledger)
    if not spent.is_known:
        return {}
    told: dict[str, Any] = {"spent": {"cost_usd": spent.cost_usd, "tokens": spent.tokens}}
    if result.passed:
        own = own_usages(result.ledger)[-1]
        told["usage"] = {name: getattr(own, name, None) for name in ("cost_usd", "tokens")}
    return told


def append(directory: str, record: dict[str, Any]) -> None:
    """Append one record to the journal in ``directory`` and see it on disk."""
    from kos_retry.text.jsonline import json_line

    state.make_private(directory)
    line = json_line(record).encode("ascii") + b"\n"
    fd = os.open(os.path.join(directory, state.JOURNAL), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        _lock(fd)
        if _torn(fd):
            line = b"\n" + line
        os.write(fd, line)
        os.fsync(fd)
    finally:
        os.close(fd)


def read(directory: str) -> Iterator[dict[str, Any]]:
    """Yield the records of a journal in their order; what is not a record is skipped."""
    import orjson

    try:
        with open(os.path.join(directory, state.JOURNAL), "rb") as journal:
            for line in journal:
                try:
                    record = orjson.loads(line)
                except orjson.JSONDecodeError:
                    continue
                if isinstance(record, dict) and isinstance(record.get("type"), str):
                    yield record
    except OSError as error:
        raise StateError(f"cannot read the journal in {directory}: {error.strerror}") from error


def last_run(records: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records since the last ``begin``, that one included."""
    run: list[dict[str, Any]] = []
    for record in records:
        if record["type"] == "begin":
            run = []
        run.append(record)
    return run


def _torn(fd: int) -> bool:
    """Return whether the file ends in the middle of a line."""
    size = os.fstat(fd).st_size
    return size > 0 and os.pread(fd, 1, size - 1) != b"\n"


def _lock(fd: int) -> None:
    import fcntl

    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
    except OSError:
        # A file system without locks: appends of one write each still do not mix on one machine.
        pass


def _cwd() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""
