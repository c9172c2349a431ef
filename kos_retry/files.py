"""Files that a user names or that were found: opened without blocking, read and written within a bound, and checked for who else can write them.

A named pipe without a reader, a device or a huge file stands where a regular one was meant more often than one thinks, and a run
must not hang on it. Every fault is an OSError whose ``strerror`` says what was wrong.
"""

from __future__ import annotations

import errno
import os
import select
import stat
import time

from kos_retry.limits import FILE_SECONDS, READ_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Never wait for the other end, never make a terminal ours, never hand the descriptor to a child.
_CAREFUL = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# Places whose links lead to open files and devices: what is named there is written to, never replaced.
_SPECIAL = ("/dev/", "/proc/")


def read_file(path: str, limit: int, *, seconds: float = FILE_SECONDS) -> bytes:
    """Return what a file holds, at most ``limit`` bytes.

    A pipe is read to its end as long as something comes at least every ``seconds``. Raises OSError for what cannot be opened, is
    neither a file nor a pipe nor a device, is larger than the limit, or keeps silent.
    """
    fd = open_file(path, os.O_RDONLY)
    try:
        return _read(fd, path, limit, seconds)
    finally:
        os.close(fd)


def open_file(path: str, flags: int, mode: int = 0o600) -> int:
    """Return a descriptor that blocks neither now nor later; raises OSError for directories, sockets and disks."""
    fd = os.open(path, flags | _CAREFUL, mode)
    kind = os.fstat(fd).st_mode
    if stat.S_ISREG(kind) or stat.S_ISFIFO(kind) or stat.S_ISCHR(kind):
        return fd
    os.close(fd)
    if stat.S_ISDIR(kind):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    raise OSError(errno.EINVAL, "not a regular file", path)


def replace_file(path: str, data: bytes, mode: int = 0o666) -> None:
    """Put ``data`` in the place of what a file held, in one step: a reader sees all of the old or all of the new.

    It is written beside the file under a name that nobody can guess, and renamed; a link is replaced, not followed. Pipes and devices
    are written to within a bound. The umask applies to ``mode``, which a file that is there already keeps. Raises OSError.
    """
    kind = _kind(path)
    if path.startswith(_SPECIAL) or not (kind is None or stat.S_ISREG(kind) or stat.S_ISLNK(kind)):
        append_file(path, data, mode)
        return
    beside = os.path.join(os.path.dirname(path), f".{os.path.basename(path)[:100]}.{os.urandom(8).hex()}")
    try:
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    except PermissionError:
        # A file that was put into a directory of somebody else's for us, as containers do it.
        _overwrite(path, data)
        return
    try:
        try:
            if kind is not None and stat.S_ISREG(kind):
                os.fchmod(fd, stat.S_IMODE(kind))
            write_all(fd, data)
        finally:
            os.close(fd)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def append_file(path: str, data: bytes, mode: int = 0o666) -> None:
    """Add ``data`` to the end of a file in one write, so that what several processes add does not mix; raises OSError.

    A pipe has to take all of it within a bound.
    """
    fd = open_file(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, mode)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)


def write_all(fd: int, data: bytes, *, seconds: float = FILE_SECONDS) -> None:
    """Write all of ``data``; raises OSError where the other side takes nothing for ``seconds``."""
    view = memoryview(data)
    while view:
        try:
            written = os.write(fd, view)
        except BlockingIOError:
            _wait(fd, select.POLLOUT, seconds, "nobody reads it")
            continue
        view = view[written:]


def distrust(path: str, user: int | None = None) -> str | None:
    """Return why what a path names is not to be trusted, or None: somebody else than ``user`` (by default us) and root can change it.

    As ssh does it: the owner is the user or root, and nobody else has the right to write, except a group of the user's own.
    Links are followed. Raises OSError where it cannot be found out.
    """
    status = os.stat(path)
    mine = os.geteuid() if user is None else user
    if status.st_uid not in (mine, 0):
        return f"it belongs to {_user_name(status.st_uid)}"
    if status.st_mode & stat.S_IWOTH:
        return "everybody can write it"
    if status.st_mode & stat.S_IWGRP and not _is_own_group(status.st_gid, mine):
        return "a group can write it"
    return None


def _overwrite(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | _CAREFUL)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)


def _read(fd: int, path: str, limit: int, seconds: float) -> bytes:
    parts: list[bytes] = []
    size = 0
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        # A pipe that nobody has opened yet looks like one at its end.
        _wait(fd, select.POLLIN, seconds, "nothing came from it")
    while True:
        try:
            chunk = os.read(fd, READ_BYTES)
        except BlockingIOError:
            _wait(fd, select.POLLIN, seconds, "nothing came from it")
            continue
        if not chunk:
            return b"".join(parts)
        parts.append(chunk)
        size += len(chunk)
        if size > limit:
            raise OSError(errno.EFBIG, f"it is larger than {limit} bytes", path)


def _wait(fd: int, events: int, seconds: float, what: str) -> None:
    poll = select.poll()
    poll.register(fd, events)
    until = time.monotonic() + seconds
    while not poll.poll(max(0.0, until - time.monotonic()) * 1000):
        if time.monotonic() >= until:
            raise OSError(errno.ETIMEDOUT, f"{what} within {seconds:g}s")


def _kind(path: str) -> int | None:
    """Return the mode of what a path names, links not followed, None where nothing is there."""
    try:
        return os.lstat(path).st_mode
    except FileNotFoundError:
        return None


def _user_name(number: int) -> str:
    return _named(lambda: __import__("pwd").getpwuid(number).pw_name) or f"user {number}"


def _is_own_group(group: int, user: int) -> bool:
    """Return whether a group is the one that many systems make for each user alone, by its name."""
    owner = _named(lambda: __import__("pwd").getpwuid(user).pw_name)
    return bool(owner) and owner == _named(lambda: __import__("grp").getgrgid(group).gr_name)


def _named(look_up: Callable[[], str]) -> str:
    try:
        return look_up()
    except (KeyError, ImportError):
        return ""
