"""Where the store is, and what becomes of a file that cannot be used as one."""

from __future__ import annotations

import sqlite3
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

import pytest
from builders import NOW, PYTHON, ROOT, a_sighting

from kos_retry.adapters.store.location import Location, locate, with_store
from kos_retry.errors import StoreError

PATIENCE = 60.0

_PLACES = {
    "by-default": (None, "/state/store.sqlite3"),
    "file": ("sqlite:/srv/s.db", "/srv/s.db"),
    "file-as-an-address": ("sqlite:///srv/s.db", "/srv/s.db"),
    "server": ("postgresql://ci:staple@db/kos", "postgresql://ci:[redacted]@db/kos"),
}


@pytest.mark.parametrize(("store", "shown"), _PLACES.values(), ids=_PLACES)
def test_place_as_it_is_shown(store, shown):
    assert shown == locate(store, "/state").shown.replace("///", "/")


def test_store_can_be_switched_off():
    assert locate("none", "/state") is None


class Warned(list):
    """The warnings of a test."""

    def __call__(self, message):
        self.append(message)


@pytest.fixture
def warned():
    return Warned()


def _ours(directory) -> Location:
    return locate(None, str(directory))


def _chosen(path) -> Location:
    return locate(f"sqlite:{path}", "/nowhere")


def _added(location, warned, run="a") -> int:
    return with_store(location, PATIENCE, warned, lambda store: store.add([a_sighting(run)]))


def _begun(path) -> Path:
    _added(_chosen(path), pytest.fail)
    return path


def _torn(path):
    """Leave the header of a store and overwrite what follows."""
    whole = _begun(path).read_bytes()
    path.write_bytes(whole[:100] + b"\xff" * (len(whole) - 100))


def _cut(path):
    whole = _begun(path).read_bytes()
    path.write_bytes(whole[: len(whole) // 2 + 7])


def _foreign(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE notes (x)")


_UNUSABLE = {
    "text": lambda path: path.write_text("nothing of the kind\n" * 99),
    "one-byte": lambda path: path.write_bytes(b"x"),
    "zero-bytes": lambda path: path.write_bytes(bytes(8192)),
    "torn": _torn,
    "cut": _cut,
    "database-of-another-program": _foreign,
}
_OF_OTHERS = ("text", "one-byte", "zero-bytes", "database-of-another-program")


@pytest.mark.parametrize("spoil", _UNUSABLE.values(), ids=_UNUSABLE)
def test_what_is_no_store_in_the_place_of_ours_is_kept_aside_and_a_new_one_begun(tmp_path, warned, spoil):
    path = tmp_path / "store.sqlite3"
    spoil(path)
    before = path.read_bytes()
    assert 1 == _added(_ours(tmp_path), warned, "b")
    (aside,) = tmp_path.glob("store.sqlite3.corrupt-*[0-9]")
    assert before == aside.read_bytes()
    assert [True] == [str(aside) in message for message in warned]


@pytest.mark.parametrize("kind", _UNUSABLE)
def test_file_that_was_chosen_is_left_alone_unless_it_was_a_store(tmp_path, warned, kind):
    path = tmp_path / "mine.db"
    _UNUSABLE[kind](path)
    before = path.read_bytes()
    if kind in _OF_OTHERS:
        with pytest.raises(StoreError, match="is no store of kos-retry; it is left alone"):
            _added(_chosen(path), warned, "b")
        assert (before, []) == (path.read_bytes(), warned)
    else:
        assert (1, 1) == (_added(_chosen(path), warned, "b"), len(warned))


def test_empty_file_becomes_a_store(tmp_path, warned):
    (tmp_path / "mine.db").write_bytes(b"")
    assert (1, []) == (_added(_chosen(tmp_path / "mine.db"), warned), warned)


def test_log_beside_what_is_no_store_goes_with_it(tmp_path, warned):
    path = tmp_path / "store.sqlite3"
    path.write_text("nothing of the kind")
    (tmp_path / "store.sqlite3-wal").write_bytes(b"left over")
    _added(_ours(tmp_path), warned)
    assert {"-wal"} == {p.name[-4:] for p in tmp_path.glob("*corrupt*-wal")}


# What a process of its own starts with: `add(location, run)`, and a place to lower what does not come back.
_CHILD = """
import os, pwd, resource, signal, sys
sys.path[:0] = sys.argv[2:]
from builders import a_sighting
from kos_retry.adapters.store.location import locate, with_store
from kos_retry.errors import StoreError
import kos_retry.adapters.store.sqlite
location = locate(f"sqlite:{sys.argv[1]}", "/nowhere")
def add(*runs):
    seen = [a_sighting(run, message="x" * 200) for run in runs]
    return with_store(location, 60.0, lambda message: None, lambda store: store.add(seen))
def answer(*runs):
    try:
        said = add(*runs)
    except StoreError as error:
        said = error
    os.write(1, f"{said}\\n".encode())
"""


def _in_child(path, script) -> str:
    """Return what a script printed that ran in a process of its own."""
    words = [PYTHON, "-c", _CHILD + script, str(path), str(ROOT), str(ROOT / "tests")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_processes_that_find_the_same_damage_begin_one_store(tmp_path):
    path = tmp_path / "store.sqlite3"
    _torn(path)
    script = """
for n in range(8):
    if os.fork() == 0:
        answer(f"r{n}")
        os._exit(0)
for n in range(8):
    os.wait()
"""
    assert ["1"] * 8 == _in_child(path, script).split()
    assert 1 == len(list(tmp_path.glob("*corrupt-*[0-9]")))
    assert 8 == with_store(_chosen(path), PATIENCE, pytest.fail, lambda store: len(list(store.all())))


_NOWHERE = {
    "below-a-file": "file/s.db",
    "a-directory": "",
}


@pytest.mark.parametrize("place", _NOWHERE.values(), ids=_NOWHERE)
def test_place_that_cannot_hold_a_file_is_named(tmp_path, warned, place):
    (tmp_path / "file").write_text("")
    path = tmp_path / place
    with pytest.raises(StoreError, match=f"cannot use the store {path}: "):
        _added(_chosen(path), warned)


def test_server_that_is_not_there_is_named_without_its_password(warned, tmp_path):
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError, match="cannot use the store postgresql://ci:") as refused:
        _added(locate(f"postgresql://ci:staple@/kos?host={tmp_path}", "/state"), warned)
    assert ("staple" in str(refused.value), "\n" in str(refused.value)) == (False, False)


def test_password_in_an_address_that_cannot_be_read_is_not_repeated(warned):
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError, match="percent-encoded") as refused:
        _added(locate("postgresql://ci:staple%horse@db/kos", "/state"), warned)
    assert "staple" not in str(refused.value)


def test_server_without_its_library_says_what_to_install(warned, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    monkeypatch.delitem(__import__("sys").modules, "kos_retry.adapters.store.postgres", raising=False)
    with pytest.raises(StoreError, match=r"it needs psycopg: install kos-retry\[postgres\]$"):
        _added(locate("postgresql://db/kos", "/state"), warned)


@pytest.fixture
def open_directory():
    """Return a directory that every user can reach; those of pytest are closed to others."""
    with tempfile.TemporaryDirectory(prefix="kos-retry-store-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("begun", [False, True], ids=["nothing-there", "store-there"])
def test_directory_that_cannot_be_written_is_a_fault_like_any_other(open_directory, begun):
    path = open_directory / "s.db"
    if begun:
        _begun(path)
    for entry in open_directory.iterdir():
        entry.chmod(0o444)
    open_directory.chmod(0o555)

    script = """
if os.geteuid() == 0:
    os.setgroups([])
    os.setuid(pwd.getpwnam("nobody").pw_uid)
answer("b")
"""
    assert _in_child(path, script).startswith(f"cannot use the store {path}: ")
    open_directory.chmod(0o755)


def _full(store):
    store.add(a_sighting(f"r{n}", message="x" * 200) for n in range(9000))


def test_size_that_is_limited_is_a_fault_that_loses_nothing_else(tmp_path):
    path = _begun(tmp_path / "s.db")

    script = """
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
answer(*(f"r{n}" for n in range(9000)))
"""
    assert _in_child(path, script).startswith(f"cannot use the store {path}: ")
    assert ["a"] == with_store(_chosen(path), PATIENCE, pytest.fail, lambda store: [s.run for s in store.all()])


def test_full_disk_is_a_fault_that_loses_nothing_else(tmp_path):
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "none", str(tmp_path)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("no small disk can be mounted here")
    try:
        path = _begun(tmp_path / "s.db")
        with pytest.raises(StoreError, match="full"):
            with_store(_chosen(path), PATIENCE, pytest.fail, _full)
        assert ["a"] == with_store(_chosen(path), PATIENCE, pytest.fail, lambda store: [s.run for s in store.all()])
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_time_of_a_sighting_survives_to_the_millisecond(tmp_path):
    seen = a_sighting(time=NOW.replace(microsecond=123_000))
    location = _ours(tmp_path)
    with_store(location, PATIENCE, pytest.fail, lambda store: store.add([seen]))
    assert [seen] == with_store(location, PATIENCE, pytest.fail, lambda store: list(store.all()))
