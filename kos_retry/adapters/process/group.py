"""The processes of an attempt: its group, its session, and what left both but still carries its marks."""

from __future__ import annotations

import os
import select
import time

from kos_retry.adapters.process.signals import SIGCONT, SIGINT, SIGKILL, SIGTERM
from kos_retry.limits import REAP_SECONDS

_POLL_SECONDS = 0.005
# Fields of /proc/PID/stat behind the command's name, see proc(5).
_STATE, _GROUP, _SESSION, _STARTED = 0, 2, 3, 19
# The group's number comes on the first line, an empty one where there is none; the end of our life with the end of the pipe. If that comes
# between the command's start and its number, the command is known by its mark. Without "--": not every shell's kill knows it.
_GUARD = (
    "fell=$1; "
    'marked() { [ "$0" ] && for e in /proc/[0-9]*/environ; do grep -qzxF "$0" "$e" && { e=${e#/proc/}; kill "-$1" "-${e%/environ}"; }; done; }; '
    "if read -r g; then "
    '[ -z "$g" ] || read -r _ || { [ -z "$fell" ] || echo >"$fell"; kill -TERM "-$g"; sleep 2; kill -KILL "-$g"; }; '
    'else [ -z "$fell" ] || echo >"$fell"; marked TERM; sleep 2; marked KILL; fi'
)
# A shell may return from `read` for a signal as it does for the end of the pipe.
_LISTENER = (
    "trap 'got=1; printf i' INT; trap 'got=1; printf w' WINCH; trap '' TERM HUP QUIT TSTP TTIN TTOU; "
    'while :; do got=; read -r _ && exit; [ "$got" ] || exit; done'
)


def send(group: int, number: int) -> bool:
    """Send a signal to all processes of a group; return whether there were any."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        # A member that changed its user cannot be signalled; the others were.
        return True
    return True


def stop(group: int, mark: tuple[bytes, ...], grace_seconds: float) -> bool:
    """End what is left of an attempt: TERM, the grace, then KILL; return whether it took KILL.

    The group's leader must still be a zombie or alive, so that the number cannot belong to another group. ``mark`` are
    settings of the environment that only this attempt's processes have.
    """
    if not members(group, mark):
        return False
    _signal_all(group, mark, SIGTERM)
    _signal_all(group, mark, SIGCONT)
    if _gone(group, mark, grace_seconds):
        return False
    _signal_all(group, mark, SIGKILL)
    _gone(group, mark, REAP_SECONDS)
    return True


def members(group: int, mark: tuple[bytes, ...] = ()) -> tuple[int, ...]:
    """Return the ids of an attempt's living processes.

    Where the system has no /proc, the group's number stands for all of them as long as it can be signalled.
    """
    try:
        names = os.listdir("/proc")
    except OSError:
        return (group,) if send(group, 0) else ()
    own = str(os.getpid())
    # Nothing that is older than its leader was started by it; where that one is gone already, anybody may have been.
    leader = _stat(str(group))
    since = int(leader[_STARTED]) if leader else 0
    return tuple(int(name) for name in names if name.isdigit() and name != own and _belongs(name, group, mark, since))


def name_of(pid: int) -> str:
    """Return a process's short name, empty where it cannot be read."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as comm:
            return comm.read(64).decode("utf-8", "replace").strip()
    except OSError:
        return ""


class Guard:
    """A process that ends an attempt's group if we are killed, however that happens.

    It is started before the command, and waits for a pipe of ours to close, in a group of its own. ``mark`` is a setting of the
    environment that only this run's processes have, empty for none. The file ``fell`` is written when we are killed, so that its time
    tells when that was.
    """

    def __init__(self, mark: bytes, fell: str = "") -> None:
        self._pipe, self._pid = _shell(_GUARD, 0, None, mark, fell)

    def watch(self, group: int) -> None:
        """Say which group to end."""
        _tell(self._pipe, b"%d\n" % group)

    def dismiss(self) -> None:
        """End the guard: there is nothing left to do for it."""
        _tell(self._pipe, b"\n")
        os.close(self._pipe)
        if self._pid:
            os.waitpid(self._pid, 0)


class Listener:
    """A process in the command's group that tells of the signals that a terminal sends to that group alone.

    ``INTERRUPT`` stands for an interrupt key, ``RESIZE`` for a new window size.
    """

    INTERRUPT, RESIZE = 0x69, 0x77

    def __init__(self, group: int) -> None:
        self.fd, told = os.pipe()
        self._pipe, self.pid = _shell(_LISTENER, group, told)
        os.close(told)

    def notes(self) -> bytes:
        """Return what there is to tell; the pipe must be readable. ``fd`` is closed at its end, and -1 then."""
        notes = os.read(self.fd, 64)
        if notes:
            return notes
        os.close(self.fd)
        self.fd = -1
        # It may die of the very signal it was to tell of, before its shell is ready for it.
        return bytes([self.INTERRUPT]) if self._reap() == SIGINT else b""

    def dismiss(self) -> bytes:
        """End the listener; return what it had still to tell: a key that ended the command may not have been told yet."""
        _tell(self._pipe, b"\n")
        os.close(self._pipe)
        last = b""
        poll = select.poll()
        while self.fd >= 0:
            poll.register(self.fd, select.POLLIN)
            if not poll.poll(REAP_SECONDS * 1000) and self.pid:
                # Somebody has stopped it.
                os.kill(self.pid, SIGKILL)
            last += self.notes()
        self._reap()
        return last

    def _reap(self) -> int:
        """Wait for the process and return the signal that ended it, 0 for none."""
        if not self.pid:
            return 0
        pid, self.pid = self.pid, 0
        status = os.waitpid(pid, 0)[1]
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def _shell(script: str, group: int, output: int | None, name: bytes = b"sh", argument: str = "") -> tuple[int, int]:
    """Start a shell that reads from a pipe of ours; return the pipe and the shell's id, 0 where it cannot be started.

    ``name`` is what the script knows as ``$0``, ``argument`` as ``$1``.
    """
    read, write = os.pipe()
    nothing = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
    actions = [
        (os.POSIX_SPAWN_DUP2, read, 0),
        nothing if output is None else (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    argv = ("/bin/sh", "-c", script, name, argument)
    try:
        return write, os.posix_spawn(argv[0], argv, {"PATH": os.defpath}, file_actions=actions, setpgroup=group)
    except OSError:
        return write, 0
    finally:
        os.close(read)


def _tell(pipe: int, line: bytes) -> None:
    try:
        os.write(pipe, line)
    except OSError:
        # Nobody is there any more to be told.
        pass


def _signal_all(group: int, mark: tuple[bytes, ...], number: int) -> None:
    send(group, number)
    for pid in members(group, mark):
        try:
            os.kill(pid, number)
        except OSError:
            continue


def _belongs(pid: str, group: int, mark: tuple[bytes, ...], since: int) -> bool:
    fields = _stat(pid)
    if not fields or fields[_STATE] in (b"Z", b"X"):
        return False
    number = b"%d" % group
    if number in (fields[_GROUP], fields[_SESSION]):
        return True
    return bool(mark) and int(fields[_STARTED]) >= since and _is_marked(pid, mark)


def _stat(pid: str) -> list[bytes]:
    """Return the fields of a process behind its name; none where it is gone."""
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return []
    try:
        # The command's name may hold anything; the fields after its closing bracket are fixed.
        fields = os.read(file, 4096).rpartition(b")")[2].split()
    except OSError:
        return []
    finally:
        os.close(file)
    return fields if len(fields) > _STARTED else []


def _is_marked(pid: str, mark: tuple[bytes, ...]) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as environ:
            settings = environ.read().split(b"\0")
    except OSError:
        return False
    return all(setting in settings for setting in mark)


def _gone(group: int, mark: tuple[bytes, ...], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while members(group, mark):
        if time.monotonic() >= until:
            return False
        time.sleep(_POLL_SECONDS)
    return True
