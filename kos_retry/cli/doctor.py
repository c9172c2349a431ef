"""`kos-retry doctor`: what can go wrong on this machine, looked at before it does."""

from __future__ import annotations

import os
import resource
import sys
import tempfile
from collections.abc import Callable
from typing import NamedTuple

from kos_retry.adapters import config, state
from kos_retry.adapters.extraction.extract import Extraction
from kos_retry.adapters.extraction.manifest import bundled
from kos_retry.adapters.extraction.material import Material
from kos_retry.adapters.store.location import locate, with_store
from kos_retry.cli.inputs import state_root
from kos_retry.cli.output import complain, write_text
from kos_retry.cli.run import settings_of
from kos_retry.engine.redact import Redactor
from kos_retry.errors import KosRetryError
from kos_retry.limits import STORE_WRITE_SECONDS

# Two pipes, two terminals, a spool and a pipe for signals, twice over.
_FILES_NEEDED = 32


class Finding(NamedTuple):
    """What one look found: whether it is well, and what to know or do."""

    well: bool
    text: str


def doctor() -> int:
    """Print what was looked at and return 0 if all is well, 1 if something is not."""
    findings = [(name, _safely(look)) for name, look in _LOOKS]
    write_text("".join(f"{'ok  ' if f.well else 'FAIL'}  {name}: {f.text}\n" for name, f in findings))
    return 0 if all(f.well for _, f in findings) else 1


def _safely(look: Callable[[], Finding]) -> Finding:
    try:
        return look()
    except (OSError, KosRetryError) as error:
        return Finding(False, str(error))


def _interpreter() -> Finding:
    return Finding(True, f"{sys.version.split()[0]} on {sys.platform}")


def _state() -> Finding:
    root = state_root(None)
    state.make_private(root)
    probe = os.path.join(root, f".doctor-{os.getpid()}")
    state.write_private(probe, b"x" * 4096)
    os.unlink(probe)
    return Finding(True, f"{root} can be written")


def _store() -> Finding:
    try:
        settings = settings_of({}, os.environ)
    except KosRetryError:
        return Finding(True, "not looked for, see configuration")
    location = locate(settings.store, state_root(None))
    if location is None:
        return Finding(True, "switched off")
    if location.file is not None and not os.path.exists(location.file):
        return Finding(True, f"none yet in {location.shown}")
    origin = with_store(location, STORE_WRITE_SECONDS, complain, lambda store: store.origin)
    return Finding(True, f"{location.shown} can be read, its id is {origin}")


def _temporary() -> Finding:
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * 4096)
    return Finding(True, f"{tempfile.gettempdir()} can be written")


def _configuration() -> Finding:
    settings_of({}, os.environ)
    files = [source for source, _ in config.load(os.environ, os.getcwd(), None).layers]
    return Finding(True, ", ".join(files) or "no file and no variable of ours")


def _processes() -> Finding:
    if os.path.isdir("/proc/self"):
        return Finding(True, "processes that leave their group can be found")
    return Finding(True, "without /proc only the command's own group can be ended")


def _terminal() -> Finding:
    master, slave = os.openpty()
    os.close(master)
    os.close(slave)
    return Finding(True, "terminals can be opened")


def _files() -> Finding:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return Finding(limit >= _FILES_NEEDED, f"{limit} files can be open, {_FILES_NEEDED} are needed")


def _extractors() -> Finding:
    names = [manifest.id for manifest in bundled()]
    with Extraction(Redactor()) as extraction:
        found = extraction.run(Material(1, 1, None, False, (), "", {"output": "error: a probe\n"}))
    if found.failures:
        return Finding(False, "; ".join(f"{name}: {why}" for name, why in sorted(found.failures.items())))
    return Finding(True, f"{', '.join(names)} answer")


def _nested() -> Finding:
    if "KOS_RETRY_MARK" in os.environ:
        return Finding(True, "inside another kos-retry: default retries are left to it")
    return Finding(True, "not inside another kos-retry")


_LOOKS: tuple[tuple[str, Callable[[], Finding]], ...] = (
    ("interpreter", _interpreter),
    ("state directory", _state),
    ("store", _store),
    ("temporary directory", _temporary),
    ("configuration", _configuration),
    ("processes", _processes),
    ("terminal", _terminal),
    ("open files", _files),
    ("extractors", _extractors),
    ("nesting", _nested),
)
