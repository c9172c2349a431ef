"""The process group of an attempt: signalling it, and seeing that nothing of it is left."""

from __future__ import annotations

import os
import time

from kos_retry.adapters.process.signals import SIGCONT, SIGKILL, SIGTERM
from kos_retry.limits import REAP_SECONDS

_POLL_SECONDS = 0.005


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


def stop(group: int, grace_seconds: float) -> bool:
    """End what is left of a group: TERM, the grace, then KILL; return whether it took KILL.

    The group's leader must still be a zombie or alive, so that the number cannot belong to another group.
    """
    if not members(group):
        return False
    send(group, SIGTERM)
    send(group, SIGCONT)
    if _gone(group, grace_seconds):
        return False
    send(group, SIGKILL)
    _gone(group, REAP_SECONDS)
    return True


def members(group: int) -> tuple[int, ...]:
    """Return the ids of the living processes of a group.

    Where the system has no /proc, the group's number stands for all of them as long as it can be signalled.
    """
    try:
        names = os.listdir("/proc")
    except OSError:
        return (group,) if send(group, 0) else ()
    return tuple(int(name) for name in names if name.isdigit() and _is_member(name, group))


def _is_member(pid: str, group: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            # The command's name may hold anything; the fields after its closing bracket are fixed.
            fields = stat.read(4096).rpartition(b")")[2].split()
    except OSError:
        return False
    return len(fields) > 2 and fields[2] == b"%d" % group and fields[0] not in (b"Z", b"X")


def _gone(group: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while members(group):
        if time.monotonic() >= until:
            return False
        time.sleep(_POLL_SECONDS)
    return True
