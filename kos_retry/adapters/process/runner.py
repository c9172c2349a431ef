"""Running one attempt: start the command in a group of its own, pass its output through, see that it ends."""

from __future__ import annotations

import os
import select
import time

from kos_retry.adapters.process import group, signals
from kos_retry.adapters.process.capture import Capture
from kos_retry.adapters.process.sink import Sink
from kos_retry.limits import DRAIN_SECONDS, PIPE_BYTES, READ_BYTES
from kos_retry.outcome import Captured, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from kos_retry.adapters.process.signals import SignalPipe
    from kos_retry.outcome import Proposal

_NOT_FOUND = 127
_CANNOT_EXECUTE = 126
_TIMED_OUT = 124
_SIGNAL_BASE = 128
# Linux only; elsewhere pipes keep the size they have.
_F_SETPIPE_SZ = 1031
_STDIN, _STDOUT, _STDERR = 0, 1, 2


class ProcessRunner:
    """Starts commands.

    ``timeout_seconds`` bounds one attempt (None: no bound), ``grace_seconds`` is the time between TERM and
    KILL. ``warm_up`` is called once a command has run for a while, to load what a failure will need.
    """

    def __init__(
        self,
        signal_pipe: SignalPipe,
        *,
        timeout_seconds: float | None,
        grace_seconds: float,
        warm_up: tuple[float, Callable[[], None]],
    ) -> None:
        self._signals = signal_pipe
        self._timeout = timeout_seconds
        self._grace = grace_seconds
        self._warm_up = warm_up
        self._sinks = {_STDOUT: Sink(_STDOUT), _STDERR: Sink(_STDERR)}

    def start(self, proposal: Proposal) -> Attempt | Unstarted:
        """Start the command of a proposal; see the port."""
        began = time.time()
        pipes = {_STDOUT: os.pipe(), _STDERR: os.pipe()}
        stdin = _spooled(proposal.stdin) if proposal.stdin is not None else None
        try:
            pid = _spawn(proposal, {fd: write for fd, (_, write) in pipes.items()}, stdin)
        except OSError as error:
            for read, _ in pipes.values():
                os.close(read)
            return Unstarted(_unstarted(proposal, error, began))
        finally:
            for _, write in pipes.values():
                os.close(write)
            if stdin is not None:
                os.close(stdin)
        reads = {read: fd for fd, (read, _) in pipes.items()}
        return Attempt(pid, began, reads, self._sinks, self._signals, (self._timeout, self._grace), self._warm_up)


class Unstarted:
    """An attempt whose command could not be started."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome

    def wait(self) -> Outcome:
        """Return the outcome; there is nothing to wait for."""
        return self._outcome


class Attempt:
    """One running command: a single poll over its output, our output, signals and clocks."""

    def __init__(
        self,
        pid: int,
        began: float,
        reads: dict[int, int],
        sinks: dict[int, Sink],
        signal_pipe: SignalPipe,
        limits: tuple[float | None, float],
        warm_up: tuple[float, Callable[[], None]],
    ) -> None:
        self._pid = pid
        self._reads = reads
        self._sinks = sinks
        self._signals = signal_pipe
        self._timeout, self._grace = limits
        self._captures = {fd: Capture() for fd in sinks}
        self._started = time.monotonic()
        self._outcome = Outcome(0, began)
        self._ended = False
        self._drain_until: float | None = None
        self._kill_at: float | None = None
        self._warm_at: float | None = self._started + warm_up[0]
        self._warm_up = warm_up[1]
        self._terminal = _Terminal(pid)

    def wait(self) -> Outcome:
        """Pass output through until the command has ended and its pipes are drained; see the port."""
        try:
            while not self._ended or (self._reads and not self._drained()) or self._any_blocked():
                self._turn()
        finally:
            self._terminal.reclaim()
        return self._finish()

    def _turn(self) -> None:
        """Wait for the next event and serve everything that is ready."""
        poll = select.poll()
        poll.register(self._signals.fd, select.POLLIN)
        for read, fd in self._reads.items():
            if not self._sinks[fd].blocked:
                poll.register(read, select.POLLIN)
        for sink in self._sinks.values():
            if sink.blocked:
                poll.register(sink.fd, select.POLLOUT)
        for fd, _ in poll.poll(self._patience()):
            if fd == self._signals.fd:
                self._take_signals()
            elif fd in self._reads:
                self._pass(fd)
            else:
                next(s for s in self._sinks.values() if s.fd == fd).flush()
        self._close_dead_sinks()
        self._watch_clock()

    def _pass(self, read: int) -> None:
        """Read one chunk, pass it on, keep it."""
        chunk = os.read(read, READ_BYTES)
        fd = self._reads[read]
        if not chunk:
            self._close(read)
            return
        if not self._sinks[fd].closed:
            self._sinks[fd].write(chunk)
        self._captures[fd].add(chunk)

    def _close_dead_sinks(self) -> None:
        """Close what feeds a reader that is gone: the command's next write then fails as it would bare."""
        for read, fd in list(self._reads.items()):
            if self._sinks[fd].closed:
                self._outcome.sink_closed = True
                self._close(read)

    def _close(self, read: int) -> None:
        del self._reads[read]
        os.close(read)

    def _take_signals(self) -> None:
        for number in self._signals.take():
            if number == signals.SIGCHLD:
                self._look_after_child()
            elif self._outcome.cancelled_by is None:
                self._outcome.cancelled_by = number
                group.send(self._pid, number)
                group.send(self._pid, signals.SIGCONT)
                self._kill_at = time.monotonic() + self._grace
            else:
                # Whoever asks twice means now.
                self._kill()

    def _look_after_child(self) -> None:
        """See whether the command has ended; it is reaped last, so that its group's number stays ours."""
        if self._ended:
            return
        found = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is not None:
            self._ended = True
            self._drain_until = time.monotonic() + DRAIN_SECONDS

    def _watch_clock(self) -> None:
        now = time.monotonic()
        if not self._ended:
            # A signal that came before the pipe was there would be missed otherwise.
            self._look_after_child()
        if self._warm_at is not None and now >= self._warm_at:
            self._warm_at = None
            self._warm_up()
        if self._kill_at is not None and now >= self._kill_at and not self._ended:
            self._kill()
        if (
            self._timeout is not None
            and not self._ended
            and not self._outcome.timed_out
            and now >= self._started + self._timeout
        ):
            self._outcome.timed_out, self._outcome.limit_seconds = True, self._timeout
            group.send(self._pid, signals.SIGTERM)
            group.send(self._pid, signals.SIGCONT)
            self._kill_at = now + self._grace

    def _kill(self) -> None:
        self._outcome.killed, self._kill_at = True, None
        group.send(self._pid, signals.SIGKILL)

    def _patience(self) -> float | None:
        """Return the milliseconds until something is due, None for as long as it takes."""
        due = [at for at in (self._warm_at, self._kill_at, self._drain_until) if at is not None]
        if self._drain_until is not None:
            due.append(self._drain_until + self._grace)
            due = [at for at in due if at > time.monotonic()] or due[-1:]
        if self._timeout is not None and not self._outcome.timed_out:
            due.append(self._started + self._timeout)
        return None if not due else max(0.0, min(due) - time.monotonic()) * 1000 + 1

    def _drained(self) -> bool:
        return self._drain_until is not None and time.monotonic() >= self._drain_until

    def _any_blocked(self) -> bool:
        if not any(s.blocked for s in self._sinks.values()):
            return False
        # Once the command had to go, a reader that does not read holds us no longer than it held the command.
        unwanted = self._outcome.timed_out or self._outcome.cancelled_by is not None
        return not (unwanted and self._drain_until is not None and time.monotonic() >= self._drain_until + self._grace)

    def _finish(self) -> Outcome:
        """Reap the command, end what a failed attempt left behind, and put the outcome together."""
        out = self._outcome
        held = bool(self._reads)
        for read in list(self._reads):
            self._close(read)
        status = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        _set_exit(out, status)
        if out.succeeded:
            out.survivors = group.members(self._pid) if held else ()
        else:
            out.killed = group.stop(self._pid, self._grace) or out.killed
        os.waitpid(self._pid, 0)
        out.duration_seconds = time.monotonic() - self._started
        out.stdout, out.stderr = (self._captures[fd].result() for fd in (_STDOUT, _STDERR))
        return out


def _set_exit(out: Outcome, status: os.waitid_result | None) -> None:
    """Read code and signal from a wait status, in the words of a shell."""
    if status is not None and status.si_code == os.CLD_EXITED:
        out.exit_code = status.si_status
    elif status is not None:
        out.exit_code = _SIGNAL_BASE + status.si_status
        out.signal = signals.signal_name(status.si_status)
    if out.timed_out:
        out.exit_code = _TIMED_OUT
    elif out.cancelled_by is not None:
        out.exit_code = _SIGNAL_BASE + out.cancelled_by
    elif out.signal == "SIGINT":
        # The terminal sent it to the command alone; the user meant the run.
        out.cancelled_by = signals.SIGINT


def _spawn(proposal: Proposal, outputs: dict[int, int], stdin: int | None) -> int:
    actions = [(os.POSIX_SPAWN_DUP2, pipe, fd) for fd, pipe in outputs.items()]
    if stdin is not None:
        actions.append((os.POSIX_SPAWN_DUP2, stdin, _STDIN))
    _widen(outputs.values())
    argv = proposal.argv
    try:
        return os.posix_spawnp(
            argv[0], argv, proposal.environment, file_actions=actions, setpgroup=0, setsigdef=signals.CHANGED_BY_PYTHON
        )
    except OSError as error:
        if error.errno != _ENOEXEC:
            raise
        # A script without an interpreter line: every shell runs it as its own.
        shell = ("/bin/sh", *argv)
        return os.posix_spawn(
            shell[0],
            shell,
            proposal.environment,
            file_actions=actions,
            setpgroup=0,
            setsigdef=signals.CHANGED_BY_PYTHON,
        )


_ENOEXEC = 8


def _widen(pipes: object) -> None:
    """Give pipes room, so that the command and we take fewer turns."""
    try:
        import fcntl

        for pipe in pipes:  # type: ignore[attr-defined] # a view of ints
            fcntl.fcntl(pipe, _F_SETPIPE_SZ, PIPE_BYTES)
    except OSError:
        # Not this system, or the user's share of pipe memory is used up.
        pass


def _spooled(data: bytes) -> int:
    """Return a descriptor that reads ``data`` and then ends, however much of it the command takes."""
    import tempfile

    with tempfile.TemporaryFile() as spool:
        spool.write(data)
        spool.flush()
        fd = os.dup(spool.fileno())
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _unstarted(proposal: Proposal, error: OSError, began: float) -> Outcome:
    """Return the outcome of a command that could not be started, in the words of a shell."""
    missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
    out = Outcome(_NOT_FOUND if missing else _CANNOT_EXECUTE, began)
    reason = "command not found" if missing else os.strerror(error.errno or 0)
    out.not_started = f"{proposal.argv[0]}: {reason}"
    out.stderr = Captured(os.fsencode(out.not_started))
    return out


class _Terminal:
    """The controlling terminal, lent to the command's group while it runs.

    Without it a command in a group of its own could not read from the terminal that we were started on.
    """

    def __init__(self, group_id: int) -> None:
        self._ours = 0
        try:
            if os.isatty(_STDIN) and os.tcgetpgrp(_STDIN) == os.getpgrp():
                self._ours = os.getpgrp()
                _hand_over(group_id)
                group.send(group_id, signals.SIGCONT)
        except OSError:
            self._ours = 0

    def reclaim(self) -> None:
        """Take the terminal back."""
        if self._ours:
            try:
                _hand_over(self._ours)
            except OSError:
                pass


def _hand_over(group_id: int) -> None:
    """Make a group the terminal's foreground group; from the background this would stop us if not ignored."""
    before = signals.ignore(signals.SIGTTOU)
    try:
        os.tcsetpgrp(_STDIN, group_id)
    finally:
        signals.restore(signals.SIGTTOU, before)
