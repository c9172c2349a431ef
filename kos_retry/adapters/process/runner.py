"""Running one attempt: start the command in a group of its own, pass its output through, see that it ends."""

from __future__ import annotations

import os
import select
import sys
import time

from kos_retry.adapters.process import group, signals, standard
from kos_retry.adapters.process.capture import Capture
from kos_retry.adapters.process.sink import Sink, widen
from kos_retry.adapters.process.standard import STDERR, STDIN, STDOUT
from kos_retry.limits import DRAIN_SECONDS, READ_BYTES
from kos_retry.outcome import Captured, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kos_retry.adapters.process.pty import Pty
    from kos_retry.adapters.process.signals import SignalPipe
    from kos_retry.outcome import Proposal

    AnySink = Sink | standard.HeldSink

_NOT_FOUND = 127
_CANNOT_EXECUTE = 126
_TIMED_OUT = 124
_SIGNAL_BASE = 128
_ENOEXEC = 8
_EIO = 5


class RunnerOptions:
    """How attempts are run.

    ``timeout_seconds`` bounds one attempt, ``deadline_at`` all of them on the monotonic clock (None: no bound) with
    ``deadline_seconds`` the length it was set to; ``grace_seconds`` is the time between TERM and KILL. ``tty`` is auto, always or
    never. Once a command has run for
    ``warm_up_seconds``, and as long again after each step, ``warm_up`` is called when there is nothing to pass on: it makes ready
    what a failure will need, a step each time until it returns False.
    ``outputs`` are where the command's standard output and error go: our descriptors by default. ``spool`` keeps the whole of
    standard output. The file ``fell`` is written if we are killed, however that happens.
    """

    def __init__(
        self,
        *,
        timeout_seconds: float | None = None,
        deadline_at: float | None = None,
        deadline_seconds: float | None = None,
        grace_seconds: float,
        tty: str = "never",
        warm_up: Callable[[], bool] | None = None,
        warm_up_seconds: float = 0.0,
        outputs: tuple[int, int] = (STDOUT, STDERR),
        replayed_input: int | None = None,
        held: standard.Held | None = None,
        closed: frozenset[int] = frozenset(),
        spool: standard.Spool | None = None,
        fell: str = "",
    ) -> None:
        self.spool = spool
        self.fell = fell
        self.timeout_seconds = timeout_seconds
        self.deadline_at = deadline_at
        self.deadline_seconds = deadline_seconds
        self.grace_seconds = grace_seconds
        self.tty = tty
        self.warm_up = warm_up
        self.warm_up_seconds = warm_up_seconds
        self.outputs = outputs
        self.replayed_input = replayed_input
        self.held = held
        self.closed = closed


class ProcessRunner:
    """Starts commands, one at a time."""

    def __init__(self, signal_pipe: SignalPipe, options: RunnerOptions) -> None:
        self._signals = signal_pipe
        self._options = options
        self._sinks: dict[int, AnySink] = {}
        for fd, ours in zip((STDOUT, STDERR), options.outputs, strict=True):
            if fd not in options.closed:
                self._sinks[fd] = options.held.stream(ours) if options.held else Sink(ours)

    def start(self, proposal: Proposal) -> Attempt | Unstarted:
        """Start the command of a proposal; see the port."""
        if self._options.held:
            self._options.held.clear()
        if self._options.spool:
            self._options.spool.clear()
        wiring = _Wiring(self._sinks, proposal, self._options)
        guard = group.Guard(_own_mark(proposal), self._options.fell)
        began = time.time()
        try:
            pid = _spawn(proposal, wiring)
            guard.watch(pid)
        except OSError as error:
            wiring.abandon()
            guard.dismiss()
            return Unstarted(_unstarted(proposal, error, began))
        wiring.connected()
        return Attempt(pid, began, wiring, self._signals, self._options, proposal, guard)


class Unstarted:
    """An attempt whose command could not be started."""

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = outcome

    def wait(self) -> Outcome:
        """Return the outcome; there is nothing to wait for."""
        return self._outcome

    def captured(self) -> tuple[Captured, Captured]:
        """Return what stands for its output."""
        return self._outcome.stdout, self._outcome.stderr


class _Wiring:
    """Pipes, terminals and files between the command and us, for one attempt.

    ``reads`` are our ends with the stream that each carries, ``actions`` what the child does with its ends.
    """

    def __init__(self, sinks: dict[int, AnySink], proposal: Proposal, options: RunnerOptions) -> None:
        self.sinks = sinks
        self.reads: dict[int, int] = {}
        self.actions: list[tuple[int, ...] | tuple[object, ...]] = []
        self.ptys: list[Pty] = []
        self._children_ends: list[int] = []
        self._input(proposal, options)
        on_terminal = _terminal_streams(options, sinks)
        if on_terminal:
            self._terminals(on_terminal)
        for fd in sinks:
            if fd not in on_terminal:
                self._pipe(fd)

    def connected(self) -> None:
        """Close the child's ends: it has them now."""
        for fd in self._children_ends:
            os.close(fd)
        for pty in self.ptys:
            pty.started()

    def abandon(self) -> None:
        """Close everything: there is no child."""
        self.connected()
        for fd in self.reads:
            if all(fd != pty.master for pty in self.ptys):
                os.close(fd)
        for pty in self.ptys:
            pty.close()

    def _input(self, proposal: Proposal, options: RunnerOptions) -> None:
        if proposal.stdin is not None or options.replayed_input is not None:
            fd = standard.input_with(options.replayed_input, proposal.stdin)
            self._children_ends.append(fd)
            self.actions.append((os.POSIX_SPAWN_DUP2, fd, STDIN))

    def _pipe(self, fd: int) -> None:
        read, write = os.pipe()
        widen(write)
        self.reads[read] = fd
        self._children_ends.append(write)
        self.actions.append((os.POSIX_SPAWN_DUP2, write, fd))

    def _terminals(self, streams: tuple[int, ...]) -> None:
        """Give the streams a terminal: one for all that go to the same terminal of ours, so that their order is kept."""
        from kos_retry.adapters.process.pty import Pty

        groups = [streams] if _same_terminal(streams) else [(fd,) for fd in streams]
        for fds in groups:
            pty = Pty()
            self.ptys.append(pty)
            self.reads[pty.master] = fds[0]
            self.actions.append((os.POSIX_SPAWN_OPEN, fds[0], pty.slave, os.O_RDWR | os.O_NOCTTY, 0))
            self.actions += [(os.POSIX_SPAWN_DUP2, fds[0], fd) for fd in fds[1:]]


class Attempt:
    """One running command: a single poll over its output, our output, signals, keys and clocks."""

    def __init__(
        self,
        pid: int,
        began: float,
        wiring: _Wiring,
        signal_pipe: SignalPipe,
        options: RunnerOptions,
        proposal: Proposal,
        guard: group.Guard,
    ) -> None:
        self._pid = pid
        self._reads = wiring.reads
        self._sinks = wiring.sinks
        self._ptys = wiring.ptys
        self._signals = signal_pipe
        self._options = options
        self._captures = {fd: Capture() for fd in self._sinks}
        self._started = time.monotonic()
        self._outcome = Outcome(0, began)
        self._ended = False
        self._drain_until: float | None = None
        self._owed: dict[int, int] = {}
        self._kill_at: float | None = None
        self._warm_at = self._started + options.warm_up_seconds if options.warm_up else None
        self._interrupts = 0
        self._poll = select.poll()
        self._polled: dict[int, int] = {}
        self._mark = _mark(proposal)
        self._foreground = _Foreground(pid)
        self._guard = guard
        self._listener = group.Listener(pid) if self._foreground.lent else None

    def wait(self) -> Outcome:
        """Pass output through until the command has ended and its pipes are drained; see the port."""
        try:
            while not self._ended or (self._reads and not self._drained()) or self._any_blocked():
                self._turn()
        finally:
            self._foreground.reclaim()
        return self._finish()

    def _turn(self) -> None:
        """Wait for the next event and serve everything that is ready."""
        self._watch()
        ready = self._poll.poll(self._patience())
        for fd, _ in ready:
            self._serve(fd)
        self._close_dead_sinks()
        self._watch_clock()
        if not (ready or self._ended):
            self._warm_up()

    def _watch(self) -> None:
        """Bring what is polled in step: a stream whose reader does not keep up is not read until it does."""
        wanted = {self._signals.fd: select.POLLIN}
        for read, fd in self._reads.items():
            if not self._sinks[fd].blocked:
                wanted[read] = select.POLLIN
        for sink in self._sinks.values():
            if sink.blocked:
                wanted[sink.fd] = select.POLLOUT
        if self._listener is not None and self._listener.fd >= 0:
            wanted[self._listener.fd] = select.POLLIN
        if wanted != self._polled:
            self._poll = select.poll()
            for fd, events in wanted.items():
                self._poll.register(fd, events)
            self._polled = wanted

    def _serve(self, fd: int) -> None:
        if fd == self._signals.fd:
            self._take_signals()
        elif self._listener is not None and fd == self._listener.fd:
            self._take_notes(self._listener.notes())
        elif fd in self._reads:
            self._pass(fd)
        else:
            next(sink for sink in self._sinks.values() if sink.fd == fd).flush()

    def _pass(self, read: int) -> None:
        """Read one chunk, pass it on, keep it."""
        try:
            chunk = os.read(read, READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno != _EIO:
                raise
            # The way a terminal says that nobody has it open any more.
            chunk = b""
        for pty in self._ptys:
            pty.mirror()
        fd = self._reads[read]
        if not chunk:
            self._close(read)
            return
        if not self._sinks[fd].closed:
            self._sinks[fd].write(chunk)
        self._captures[fd].add(chunk)
        if self._options.spool is not None and fd == STDOUT:
            self._options.spool.keep(chunk)
        if read in self._owed:
            self._owed[read] -= len(chunk)

    def _close_dead_sinks(self) -> None:
        """Close what feeds a reader that is gone: the command's next write then fails as it would bare."""
        for read, fd in list(self._reads.items()):
            if self._sinks[fd].closed:
                self._outcome.sink_closed = True
                self._outcome.sink_error = self._sinks[fd].error
                self._close(read)

    def _close(self, read: int) -> None:
        del self._reads[read]
        self._owed.pop(read, None)
        if all(read != pty.master for pty in self._ptys):
            os.close(read)

    def _take_notes(self, notes: bytes) -> None:
        """Serve what the terminal told the command's group alone."""
        self._interrupts += notes.count(group.Listener.INTERRUPT)
        if self._interrupts > 1:
            self._kill()
        if group.Listener.RESIZE in notes:
            self._resize()

    def _resize(self) -> None:
        for pty in self._ptys:
            pty.resize()

    def _take_signals(self) -> None:
        for number in self._signals.take():
            if number == signals.SIGCHLD:
                self._look_after_child()
            elif number == signals.SIGWINCH:
                self._resize()
            elif number == signals.SIGTSTP:
                self._suspend(number)
            elif self._outcome.cancelled_by is None:
                self._outcome.cancelled_by = number
                group.send(self._pid, number)
                group.send(self._pid, signals.SIGCONT)
                self._kill_at = time.monotonic() + self._options.grace_seconds
            else:
                # Whoever asks twice means now.
                self._kill()

    def _suspend(self, number: int) -> None:
        """Stop the command, then ourselves, until somebody lets us go on; the clocks stand still meanwhile."""
        stopped = time.monotonic()
        group.send(self._pid, number)
        self._foreground.reclaim()
        os.kill(os.getpid(), signals.SIGSTOP)
        self._foreground.lend()
        self._resize()
        group.send(self._pid, signals.SIGCONT)
        self._started += time.monotonic() - stopped

    def _look_after_child(self) -> None:
        """See whether the command has ended; it is reaped last, so that its group's number stays ours."""
        if self._ended:
            return
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        if self._foreground.ours:
            options |= os.WSTOPPED
        found = os.waitid(os.P_PID, self._pid, options)
        if found is None:
            return
        if found.si_code == os.CLD_STOPPED:
            os.waitid(os.P_PID, self._pid, os.WSTOPPED | os.WNOHANG)
            self._stopped(found.si_status)
            return
        self._ended = True
        self._drain_until = time.monotonic() + DRAIN_SECONDS
        # What the command itself had written is passed on, however long the reader takes; what others write later is not waited for.
        self._owed = {read: _waiting_bytes(read) for read in self._reads}

    def _stopped(self, number: int) -> None:
        """Serve a stop of the command: it wants the terminal that it was not lent, or the user suspended it."""
        if number in (signals.SIGTTIN, signals.SIGTTOU) and not self._foreground.lent:
            self._foreground.lend()
            group.send(self._pid, signals.SIGCONT)
        elif self._foreground.lent:
            # To the shell the command that holds the terminal is us.
            self._suspend(signals.SIGTSTP)

    def _watch_clock(self) -> None:
        now = time.monotonic()
        if not self._ended:
            # A signal that came before the pipe was there would be missed otherwise.
            self._look_after_child()
        if self._kill_at is not None and now >= self._kill_at and not self._ended:
            self._kill()
        due = self._due()
        if due is not None and now >= due and not self._ended and not self._outcome.timed_out:
            self._time_out(now, at_deadline=due == self._options.deadline_at)

    def _warm_up(self) -> None:
        """Use the idle time for one step of what a failure would need."""
        if self._options.warm_up is None or self._warm_at is None or time.monotonic() < self._warm_at:
            return
        more = self._options.warm_up()
        self._warm_at = time.monotonic() + self._options.warm_up_seconds if more else None

    def _due(self) -> float | None:
        """Return when the attempt has to end."""
        timeout = self._options.timeout_seconds
        ends = [
            at
            for at in (None if timeout is None else self._started + timeout, self._options.deadline_at)
            if at is not None
        ]
        return min(ends, default=None)

    def _time_out(self, now: float, *, at_deadline: bool) -> None:
        out = self._outcome
        out.timed_out, out.at_deadline = True, at_deadline
        out.limit_seconds = self._options.deadline_seconds if at_deadline else self._options.timeout_seconds
        group.send(self._pid, signals.SIGTERM)
        group.send(self._pid, signals.SIGCONT)
        self._kill_at = now + self._options.grace_seconds

    def _kill(self) -> None:
        self._outcome.killed, self._kill_at = True, None
        group.send(self._pid, signals.SIGKILL)

    def _patience(self) -> float | None:
        """Return the milliseconds until something is due, None for as long as it takes."""
        now = time.monotonic()
        due = [at for at in (None if self._ended else self._warm_at, self._kill_at) if at is not None]
        if self._drain_until is not None:
            due += [at for at in (self._drain_until, self._drain_until + self._options.grace_seconds) if at > now]
        end = self._due()
        if end is not None and not self._outcome.timed_out:
            due.append(end)
        return None if not due else max(0.0, min(due) - now) * 1000 + 1

    def _drained(self) -> bool:
        if self._drain_until is None or time.monotonic() < self._drain_until:
            return False
        return self._unwanted() or all(left <= 0 for left in self._owed.values())

    def _unwanted(self) -> bool:
        """Return whether the command had to go, and its reader has had as long as it had."""
        if not self._outcome.timed_out and self._outcome.cancelled_by is None:
            return False
        return self._drain_until is not None and time.monotonic() >= self._drain_until + self._options.grace_seconds

    def _any_blocked(self) -> bool:
        return any(s.blocked for s in self._sinks.values()) and not self._unwanted()

    def _finish(self) -> Outcome:
        """Reap the command, end what a failed attempt left behind, and put the outcome together."""
        out = self._outcome
        held = bool(self._reads)
        for read in list(self._reads):
            self._close(read)
        status = os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOWAIT)
        if self._listener is not None:
            self._interrupts += self._listener.dismiss().count(group.Listener.INTERRUPT)
        self._set_exit(status)
        if not out.succeeded:
            out.killed = group.stop(self._pid, self._mark, self._options.grace_seconds) or out.killed
            if out.killed or out.signal:
                self._foreground.restore_modes()
            out.stdout, out.stderr = self.captured()
        os.waitpid(self._pid, 0)
        self._guard.dismiss()
        if out.succeeded and (held or group.send(self._pid, 0)):
            out.survivors = tuple(f"{pid} {group.name_of(pid)}".strip() for pid in group.members(self._pid, self._mark))
        for pty in self._ptys:
            pty.close()
        out.duration_seconds = time.monotonic() - self._started
        return out

    def captured(self) -> tuple[Captured, Captured]:
        """Return what was kept of standard output and standard error."""
        kept = {fd: capture.result() for fd, capture in self._captures.items()}
        return kept.get(STDOUT, Captured()), kept.get(STDERR, Captured())

    def _set_exit(self, status: os.waitid_result | None) -> None:
        """Read code and signal from a wait status, in the words of a shell."""
        out = self._outcome
        if status is not None and status.si_code == os.CLD_EXITED:
            out.exit_code = status.si_status
        elif status is not None:
            out.exit_code = _SIGNAL_BASE + status.si_status
            out.signal = signals.signal_name(status.si_status)
        if out.timed_out:
            out.exit_code = _TIMED_OUT
        elif out.cancelled_by is None and out.exit_code and (self._interrupts or out.signal == "SIGINT"):
            # The terminal told the command alone; the user meant the run.
            out.cancelled_by = signals.SIGINT
        if out.cancelled_by is not None and not out.timed_out:
            out.exit_code = _SIGNAL_BASE + out.cancelled_by


def _spawn(proposal: Proposal, wiring: _Wiring) -> int:
    argv = proposal.argv
    try:
        return _posix_spawn(os.posix_spawnp, argv[0], argv, proposal, wiring)
    except OSError as error:
        if error.errno != _ENOEXEC:
            raise
        # A script without an interpreter line: every shell runs it as its own.
        script = _resolved(argv[0], proposal.environment.get("PATH", ""))
        return _posix_spawn(os.posix_spawn, "/bin/sh", ("/bin/sh", script, *argv[1:]), proposal, wiring)


def _resolved(name: str, path: str) -> str:
    """Return where a command was found on the PATH."""
    if "/" in name:
        return name
    places = (os.path.join(directory or ".", name) for directory in path.split(":"))
    return next((place for place in places if os.access(place, os.X_OK) and os.path.isfile(place)), name)


def _posix_spawn(spawn: Callable[..., int], path: str, argv: Iterable[str], proposal: Proposal, wiring: _Wiring) -> int:
    return spawn(
        path,
        argv,
        proposal.environment,
        file_actions=wiring.actions,
        setsigdef=signals.CHANGED_BY_PYTHON,
        setpgroup=0,
    )


def _own_mark(proposal: Proposal) -> bytes:
    """Return the setting that the processes of this run, and no others, inherit; empty where there is none."""
    mark = proposal.environment.get("KOS_RETRY_MARK")
    return os.fsencode(f"KOS_RETRY_MARK={mark}") if mark else b""


def _mark(proposal: Proposal) -> tuple[bytes, ...]:
    """Return the settings that the processes of this attempt, and no others, inherit."""
    names = ("KOS_RETRY_SESSION", "KOS_RETRY_ATTEMPT", "KOS_RETRY_MARK")
    return tuple(os.fsencode(f"{name}={proposal.environment[name]}") for name in names if name in proposal.environment)


def _waiting_bytes(fd: int) -> int:
    """Return how many bytes wait in a pipe or a terminal."""
    import fcntl
    import termios

    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4), sys.byteorder)


def _terminal_streams(options: RunnerOptions, sinks: dict[int, AnySink]) -> tuple[int, ...]:
    """Return the streams that the command shall find to be terminals."""
    if options.tty == "never" or (options.tty == "auto" and options.held is not None):
        return ()
    return tuple(fd for fd in sinks if options.tty == "always" or os.isatty(fd))


def _same_terminal(streams: tuple[int, ...]) -> bool:
    try:
        return len({os.ttyname(fd) for fd in streams}) == 1
    except OSError:
        return False


def _unstarted(proposal: Proposal, error: OSError, began: float) -> Outcome:
    """Return the outcome of a command that could not be started, in the words of a shell."""
    missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
    out = Outcome(_NOT_FOUND if missing else _CANNOT_EXECUTE, began)
    reason = "command not found" if missing else os.strerror(error.errno or 0)
    out.not_started = f"{proposal.argv[0]}: {reason}"
    out.stderr = Captured(os.fsencode(out.not_started))
    return out


class _Foreground:
    """The controlling terminal, lent to the command's group while it runs.

    Without it a command in a group of its own could not read from the terminal that we were started on. In a pipeline others may want
    to read from it, too: there it is lent when the command first asks for it. ``ours`` is our group, 0 where there is nothing to lend.
    """

    def __init__(self, group_id: int) -> None:
        self._group = group_id
        self.ours = 0
        self._modes: list[object] | None = None
        self.lent = False
        try:
            if os.isatty(STDIN) and os.tcgetpgrp(STDIN) == os.getpgrp():
                from kos_retry.adapters.process.pty import saved_modes

                self.ours = os.getpgrp()
                self._modes = saved_modes(STDIN)
                if os.isatty(STDOUT):
                    self.lend()
                    group.send(group_id, signals.SIGCONT)
        except OSError:
            self.ours = 0

    def lend(self) -> None:
        """Make the command's group the one that the terminal listens to."""
        if self.ours:
            self.lent = _hand_over(self._group)

    def reclaim(self) -> None:
        """Take the terminal back."""
        if self.ours and self.lent:
            _hand_over(self.ours)
            self.lent = False

    def restore_modes(self) -> None:
        """Give the terminal the modes it had: a command that was killed could not do it."""
        if self._modes is not None:
            from kos_retry.adapters.process.pty import set_modes

            set_modes(STDIN, self._modes)


def _hand_over(group_id: int) -> bool:
    """Make a group the terminal's foreground group; from the background this would stop us if not ignored."""
    before = signals.ignore(signals.SIGTTOU)
    try:
        os.tcsetpgrp(STDIN, group_id)
    except OSError:
        return False
    finally:
        signals.restore(signals.SIGTTOU, before)
    return True
