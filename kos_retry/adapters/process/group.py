"""The processes of an attempt: its group, its session, and what left both but still carries its marks."""

from __future__ import annotations

import os
import time

from kos_retry.adapters.process.signals import SIGCONT, SIGKILL, SIGTERM
from kos_retry.limits import REAP_SECONDS

_POLL_SECONDS = 0.005
# Fields of /proc/PID/stat behind the command's name, see proc(5).
_STATE, _GROUP, _SESSION = 0, 2, 3
_GUARD = 'read -r _ || { kill -TERM -- "-$0"; sleep 1; kill -KILL -- "-$0"; } 2>/dev/null'


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
    return tuple(int(name) for name in names if name.isdigit() and name != own and _belongs(name, group, mark))


def name_of(pid: int) -> str:
    """Return a process's short name, empty where it cannot be read."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as comm:
            return comm.read(64).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def guard(group: int) -> tuple[int, int] | None:
    """Start a process that ends the group if we are killed; return its id and the pipe that keeps it waiting.

    It waits for the pipe to close, which happens however we die. None where it cannot be started.
    """
    try:
        read, write = os.pipe()
    except OSError:
        return None
    try:
        nothing = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
        actions = [(os.POSIX_SPAWN_DUP2, read, 0), *nothing]
        pid = os.posix_spawn("/bin/sh", ("/bin/sh", "-c", _GUARD, str(group)), {}, file_actions=actions, setpgroup=0)
    except OSError:
        os.close(write)
        return None
    finally:
        os.close(read)
    return pid, write


def dismiss(guarding: tuple[int, int] | None) -> None:
    """End a guard that has nothing to do any more."""
    if guarding is None:
        return
    pid, write = guarding
    try:
        os.write(write, b"\n")
    except OSError:
        pass
    os.close(write)
    os.waitpid(pid, 0)


def _signal_all(group: int, mark: tuple[bytes, ...], number: int) -> None:
    send(group, number)
    for pid in members(group, mark):
        try:
            os.kill(pid, number)
        except OSError:
            continue


def _belongs(pid: str, group: int, mark: tuple[bytes, ...]) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            # The command's name may hold anything; the fields after its closing bracket are fixed.
            fields = stat.read(4096).rpartition(b")")[2].split()
        if len(fields) <= _SESSION or fields[_STATE] in (b"Z", b"X"):
            return False
        number = b"%d" % group
        return number in (fields[_GROUP], fields[_SESSION]) or (bool(mark) and _is_marked(pid, mark))
    except OSError:
        return False


def _is_marked(pid: str, mark: tuple[bytes, ...]) -> bool:
    with open(f"/proc/{pid}/environ", "rb") as environ:
        settings = environ.read().split(b"\0")
    return all(setting in settings for setting in mark)


def _gone(group: int, mark: tuple[bytes, ...], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while members(group, mark):
        if time.monotonic() >= until:
            return False
        time.sleep(_POLL_SECONDS)
    return True
