"""The processes of an attempt: its group, its session, and what left both but still carries its marks."""

from __future__ import annotations

import os
import time

from kos_retry.adapters.process.signals import SIGCONT, SIGKILL, SIGTERM
from kos_retry.limits import REAP_SECONDS

_POLL_SECONDS = 0.005
# Fields of /proc/PID/stat behind the command's name, see proc(5).
_STATE, _GROUP, _SESSION = 0, 2, 3
# Without "--": not every shell's own kill knows it.
_END = 'kill -TERM "-$0"; sleep 2; kill -KILL "-$0"'
_GUARD = f"read -r _ || {{ {_END}; }}"
# A shell may return from `read` for a signal as it does for the end of the pipe.
_LISTENER = (
    "trap 'got=1; printf i' INT; trap 'got=1; printf w' WINCH; trap '' TERM HUP QUIT TSTP TTIN TTOU; "
    f'while :; do got=; read -r _ && exit; [ "$got" ] || break; done; {_END}'
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


def stop(group: int, mark: tuple[bytes, ...], grace_seconds: float, but: int = 0) -> bool:
    """End what is left of an attempt: TERM, the grace, then KILL; return whether it took KILL.

    The group's leader must still be a zombie or alive, so that the number cannot belong to another group. ``mark`` are
    settings of the environment that only this attempt's processes have.
    """
    if not members(group, mark, but):
        return False
    _signal_all(group, mark, but, SIGTERM)
    _signal_all(group, mark, but, SIGCONT)
    if _gone(group, mark, but, grace_seconds):
        return False
    _signal_all(group, mark, but, SIGKILL)
    _gone(group, mark, but, REAP_SECONDS)
    return True


def members(group: int, mark: tuple[bytes, ...] = (), but: int = 0) -> tuple[int, ...]:
    """Return the ids of an attempt's living processes, without ``but``, which is one of ours.

    Where the system has no /proc, the group's number stands for all of them as long as it can be signalled.
    """
    try:
        names = os.listdir("/proc")
    except OSError:
        return (group,) if send(group, 0) else ()
    others = {str(os.getpid()), str(but)}
    return tuple(int(name) for name in names if name.isdigit() and name not in others and _belongs(name, group, mark))


def name_of(pid: int) -> str:
    """Return a process's short name, empty where it cannot be read."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as comm:
            return comm.read(64).decode("utf-8", "replace").strip()
    except OSError:
        return ""


class Guard:
    """A process that ends an attempt's group if we are killed, however that happens.

    It waits for a pipe of ours to close. With ``listen`` it sits in the group itself and tells of the signals that a terminal
    sends to the group alone: ``INTERRUPT`` for an interrupt key, ``RESIZE`` for a new window size.
    """

    INTERRUPT, RESIZE = 0x69, 0x77

    def __init__(self, group: int, *, listen: bool) -> None:
        self.pid = 0
        self.fd: int | None = None
        read, self._write = os.pipe()
        told, tell = os.pipe() if listen else (None, None)
        actions: list[tuple[object, ...]] = [
            (os.POSIX_SPAWN_DUP2, read, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        out = (os.POSIX_SPAWN_DUP2, tell, 1) if listen else (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
        argv = ("/bin/sh", "-c", _LISTENER if listen else _GUARD, str(group))
        try:
            self.pid = os.posix_spawn(
                argv[0], argv, {"PATH": os.defpath}, file_actions=[*actions, out], setpgroup=group if listen else 0
            )
            self.fd = told
        except OSError:
            if told is not None:
                os.close(told)
        finally:
            os.close(read)
            if tell is not None:
                os.close(tell)

    def notes(self) -> bytes:
        """Return what the guard has told; the pipe must be readable."""
        notes = os.read(self.fd, 64) if self.fd is not None else b""
        if not notes and self.fd is not None:
            os.close(self.fd)
            self.fd = None
        return notes

    def dismiss(self) -> None:
        """End the guard: there is nothing left to do for it."""
        try:
            os.write(self._write, b"\n")
        except OSError:
            pass
        os.close(self._write)
        if self.fd is not None:
            os.close(self.fd)
        if self.pid:
            os.waitpid(self.pid, 0)


def _signal_all(group: int, mark: tuple[bytes, ...], but: int, number: int) -> None:
    send(group, number)
    for pid in members(group, mark, but):
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


def _gone(group: int, mark: tuple[bytes, ...], but: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while members(group, mark, but):
        if time.monotonic() >= until:
            return False
        time.sleep(_POLL_SECONDS)
    return True
