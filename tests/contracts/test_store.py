"""What every store promises, on a file and on a real server."""

from __future__ import annotations

import sqlite3
import subprocess
from contextlib import closing
from datetime import timedelta

import pytest
from builders import NOW, PYTHON, ROOT, a_sighting

from kos_retry.adapters.store import schema
from kos_retry.adapters.store.sqlite import SqliteStore
from kos_retry.errors import StoreError

# Long enough for the slowest machine: nothing here depends on it.
PATIENCE = 60.0


class Place:
    """Where a store is, so that a test can open it as often as it likes."""

    def __init__(self, target: str) -> None:
        self.target = target

    def open(self, wait_seconds: float = PATIENCE):
        if not self.target.startswith("postgresql:"):
            return SqliteStore(self.target, wait_seconds)
        from kos_retry.adapters.store.postgres import PostgresStore

        return PostgresStore(self.target, wait_seconds)

    def execute(self, statement: str) -> None:
        with closing(self.open()) as store:
            store._run(statement)


@pytest.fixture(params=["file", "server"])
def place(request, tmp_path):
    if request.param == "file":
        return Place(str(tmp_path / "store.sqlite3"))
    return Place(request.getfixturevalue("server").fresh())


@pytest.fixture
def store(place):
    with closing(place.open()) as opened:
        yield opened


_RICH = a_sighting(
    "r9",
    command_line="make ä😀",
    message="a\u00a0b",
    passed=True,
    changed=True,
    last=False,
    attempts=2**31 - 1,
    stop_reason="x",
)


def _runs(sightings):
    return [s.run for s in sightings]


def test_sighting_comes_back_as_it_was(store):
    store.add([_RICH])
    assert (_RICH,) == store.of_failure(_RICH.command, _RICH.signature, 9)


def test_sighting_that_is_known_is_not_added_twice(store):
    assert (2, 0) == (store.add([a_sighting("a"), a_sighting("b")]), store.add([a_sighting("b"), a_sighting("a")]))
    assert ["a", "b"] == sorted(_runs(store.all()))


def test_same_run_of_another_origin_is_another_run(store):
    assert 2 == store.add([a_sighting("a"), a_sighting("a", origin="there")])


def test_run_holds_several_failures(store):
    assert 2 == store.add([a_sighting("a"), a_sighting("a", signature="k0:b")])


def test_what_is_added_is_there_for_the_next_one(place):
    for run in ("a", "b"):
        with closing(place.open()) as store:
            store.add([a_sighting(run)])
    with closing(place.open()) as store:
        assert 2 == len(list(store.all()))


def test_failures_of_commands_and_versions_of_signatures_are_kept_apart(store):
    others = [a_sighting("b", command="c0:other"), a_sighting("c", signature="k0:b"), a_sighting("d", signature="k1:a")]
    store.add([a_sighting("a"), *others])
    assert ["a"] == _runs(store.of_failure("c0:make", "k0:a", 9))


def test_newest_come_first_and_no_more_than_asked_for(store):
    store.add([a_sighting(str(age), age_days=age) for age in (3, 1, 2)])
    assert ["1", "2"] == _runs(store.of_failure("c0:make", "k0:a", 2))


def test_everything_is_told_the_oldest_first(store):
    store.add([a_sighting(str(age), age_days=age) for age in (3, 1, 2)])
    assert ["3", "2", "1"] == _runs(store.all())


def test_add_is_all_or_nothing(store):
    def torn():
        yield a_sighting("a")
        raise KeyError

    with pytest.raises(KeyError):
        store.add(torn())
    assert [] == list(store.all())


def test_store_can_be_used_after_an_add_that_failed(store):
    with pytest.raises(AttributeError):
        store.add([a_sighting("a"), None])
    assert 1 == store.add([a_sighting("a")])


_ALIKE = {
    "same-failure": ({}, True),
    "same-failure-of-another-command": ({"command": "c0:other"}, True),
    "same-class": ({"signature": "k0:b"}, True),
    "same-class-of-another-command": ({"signature": "k0:b", "command": "c0:other"}, False),
    "another-class": ({"signature": "k0:b", "coarse": "TypeError"}, False),
    "not-what-the-run-ended-with": ({"last": False}, False),
}


@pytest.mark.parametrize(("fields", "alike"), _ALIKE.values(), ids=_ALIKE)
def test_lessons_are_those_of_similar_failures(store, fields, alike):
    store.add([a_sighting(**fields)])
    assert alike == bool(store.lessons_like("c0:make", "k0:a", "ValueError", 9))


def test_lessons_of_the_same_failure_come_first(store):
    store.add([a_sighting("class", signature="k0:b"), a_sighting("same", command="c0:other", age_days=1)])
    assert ["same", "class"] == _runs(store.lessons_like("c0:make", "k0:a", "ValueError", 9))
    assert ["same"] == _runs(store.lessons_like("c0:make", "k0:a", "ValueError", 1))


def test_newest_lessons(store):
    store.add([a_sighting("a", age_days=2), a_sighting("b"), a_sighting("b", signature="k0:b", last=False)])
    assert ["b", "a"] == _runs(store.lessons(9))


def test_failures_are_listed_the_last_seen_first(store):
    store.add([a_sighting("a", age_days=2), a_sighting("b", signature="k0:b"), a_sighting("c", age_days=9)])
    assert (("c0:make", "k0:b"), ("c0:make", "k0:a")) == store.failures(9, flaky=False)
    assert (("c0:make", "k0:b"),) == store.failures(1, flaky=False)


def test_flaky_failures_are_those_that_passed_on_retry_the_most_costly_first(store):
    store.add(
        [
            a_sighting("a", signature="k0:cheap", passed=True),
            a_sighting("b", signature="k0:dear", passed=True),
            a_sighting("c", signature="k0:dear"),
            a_sighting("d", signature="k0:repaired", passed=True, changed=True),
            a_sighting("e", signature="k0:failed"),
            a_sighting("f", signature="k0:first-of-two", passed=True, retries=0),
        ]
    )
    assert ["k0:dear", "k0:cheap"] == [signature for _, signature in store.failures(9, flaky=True)]


_PRUNINGS = {
    "by-age": ({"older_than": NOW - timedelta(days=3)}, 2, ["3", "2", "1"]),
    "by-number": ({"keep": 2}, 3, ["2", "1"]),
    "by-both": ({"older_than": NOW - timedelta(days=4, seconds=1), "keep": 1}, 4, ["1"]),
    "all": ({"keep": 0}, 5, []),
    "more-than-any-store-holds": ({"keep": 2**70}, 0, ["5", "4", "3", "2", "1"]),
    "nothing-to-do": ({"keep": 5, "older_than": NOW - timedelta(days=99)}, 0, ["5", "4", "3", "2", "1"]),
    "nothing-asked": ({}, 0, ["5", "4", "3", "2", "1"]),
}


@pytest.mark.parametrize(("asked", "dropped", "left"), _PRUNINGS.values(), ids=_PRUNINGS)
def test_pruning_drops_the_oldest(store, asked, dropped, left):
    store.add([a_sighting(str(age), age_days=age) for age in (1, 2, 3, 4, 5)])
    assert (dropped, left) == (store.prune(**asked), _runs(store.all()))


def test_number_beyond_all_counting_limits_nothing(store):
    seen = a_sighting("a", passed=True)
    store.add([seen])
    assert (seen,) == store.of_failure(seen.command, seen.signature, 2**70) == store.lessons(2**70)
    assert (seen,) == store.lessons_like(seen.command, "k0:other", seen.coarse, 2**70)
    assert ((seen.command, seen.signature),) == store.failures(2**70, flaky=False) == store.failures(2**70, flaky=True)


def test_origin_is_random_and_stays(place, tmp_path):
    with closing(place.open()) as one, closing(place.open()) as again:
        assert one.origin == again.origin
        with closing(SqliteStore(str(tmp_path / "other"), PATIENCE)) as other:
            assert one.origin != other.origin


def test_store_of_a_later_version_is_left_alone(place):
    place.execute(f"UPDATE {schema.META} SET value = '99' WHERE name = 'schema'")
    with pytest.raises(StoreError, match="version 99 and this kos-retry knows 1: it is left alone"):
        place.open()


def test_store_of_an_earlier_version_is_brought_up_to_date(place, monkeypatch):
    with closing(place.open()) as store:
        store.add([a_sighting("a")])
    monkeypatch.setattr("kos_retry.adapters.store.sql.VERSION", 2)
    step = (f"CREATE TABLE {schema.PREFIX}later (x TEXT)",)
    monkeypatch.setattr("kos_retry.adapters.store.sql.MIGRATIONS", (*schema.MIGRATIONS, step))
    with closing(place.open()) as store:
        assert ("a", 2) == (_runs(store.all())[0], store._version())
    place.execute(f"INSERT INTO {schema.PREFIX}later VALUES ('x')")


def test_migration_that_fails_changes_nothing(place, monkeypatch):
    place.open().close()
    monkeypatch.setattr("kos_retry.adapters.store.sql.VERSION", 2)
    step = (f"CREATE TABLE {schema.PREFIX}later (x TEXT)", "NONSENSE")
    monkeypatch.setattr("kos_retry.adapters.store.sql.MIGRATIONS", (*schema.MIGRATIONS, step))
    with pytest.raises(StoreError, match="syntax"):
        place.open()
    monkeypatch.undo()
    with closing(place.open()) as store:
        assert 1 == store._version()


def test_lock_that_is_held_is_not_waited_for_longer_than_asked(place):
    with closing(place.open()) as holder, closing(place.open(0.05)) as other, holder._transaction():
        holder._run(f"DELETE FROM {schema.TABLE}")
        if place.target.startswith("postgresql:"):
            holder._run(f"LOCK TABLE {schema.TABLE} IN EXCLUSIVE MODE")
        with pytest.raises(StoreError, match=r"lock|timeout"):
            other.add([a_sighting("a")])


def test_lock_of_a_writer_keeps_no_reader_waiting(place):
    with closing(place.open()) as holder, holder._transaction():
        holder._run(f"DELETE FROM {schema.TABLE}")
        with closing(place.open(0.05)) as other:
            assert () == other.of_failure("c0:make", "k0:a", 9)


# Opens the store, adds, and says so on the way; the rest of it is killed.
_HALFWAY = """
import sys
sys.path[:0] = sys.argv[2:]
from builders import a_sighting
from test_store import Place
def halfway():
    yield a_sighting("half")
    print("half", flush=True)
    sys.stdin.read()
store = Place(sys.argv[1]).open()
store.add([a_sighting("whole")])
store.add(halfway())
"""


def test_kill_in_the_middle_of_a_write_leaves_what_was_whole(place):
    paths = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "contracts")]
    process = subprocess.Popen(
        [PYTHON, "-c", _HALFWAY, place.target, *paths], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert b"half\n" == process.stdout.readline()
        process.kill()
    with closing(place.open()) as store:
        assert ["whole"] == _runs(store.all())
        assert 1 == store.add([a_sighting("after")])


# Forks so many writers that start at the same moment, and counts those that were let in.
_WRITERS = """
import os, sys
sys.path[:0] = sys.argv[3:]
from builders import a_sighting
from test_store import Place
place, count = Place(sys.argv[1]), int(sys.argv[2])
if place.target.startswith("postgresql:"):
    import kos_retry.adapters.store.postgres
gate, starter = os.pipe()
children = []
for n in range(count):
    pid = os.fork()
    if pid == 0:
        os.close(starter)
        os.read(gate, 1)
        try:
            store = place.open()
            store.add([a_sighting(f"{n}-{i}") for i in range(3)])
            store.close()
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\\n".encode())
            os._exit(1)
        os._exit(0)
    children.append(pid)
os.close(starter)
print(sum(os.waitpid(pid, 0)[1] == 0 for pid in children))
"""


def test_writers_at_once_lose_nothing_and_begin_one_store(place):
    # A server refuses more connections than it is set up for.
    writers = 20 if place.target.startswith("postgresql:") else 200
    paths = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "contracts")]
    done = subprocess.run(
        [PYTHON, "-c", _WRITERS, place.target, str(writers), *paths],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (f"{writers}\n", "") == (done.stdout, done.stderr)
    with closing(place.open()) as store:
        assert 3 * writers == len(list(store.all()))


def test_two_hosts_learn_from_each_other_on_one_server(server):
    url = server.fresh()
    with closing(Place(url).open()) as one, closing(Place(url).open()) as other:
        one.add([a_sighting("a")])
        assert ["a"] == _runs(other.of_failure("c0:make", "k0:a", 9))
        other.add([a_sighting("b")])
        assert 2 == len(one.of_failure("c0:make", "k0:a", 9))


def test_stores_that_exchange_everything_both_ways_end_up_equal(place, tmp_path):
    with closing(place.open()) as one, closing(SqliteStore(str(tmp_path / "other"), PATIENCE)) as other:
        one.add([a_sighting("a", origin=one.origin), _RICH])
        other.add([a_sighting("a", origin=other.origin)])
        for _ in range(2):
            other.add(list(one.all()))
            one.add(list(other.all()))
        assert 3 == len(list(one.all()))
        assert list(one.all()) == list(other.all())


def test_file_can_be_read_by_its_owner_alone(tmp_path):
    path = tmp_path / "store.sqlite3"
    with closing(SqliteStore(str(path), PATIENCE)) as store:
        store.add([a_sighting("a")])
        modes = {name.name: oct(name.stat().st_mode & 0o777) for name in tmp_path.iterdir()}
    assert {"0o600"} == set(modes.values()), modes


def test_file_says_whose_it_is_from_its_first_byte_on(tmp_path):
    path = tmp_path / "store.sqlite3"
    SqliteStore(str(path), PATIENCE).close()
    assert path.read_bytes()[68:72] == b"kosr"


def test_statements_of_a_failure_use_the_indices(tmp_path):
    """A scan of a million outcomes would be felt on every failure."""
    path = str(tmp_path / "store.sqlite3")
    SqliteStore(path, PATIENCE).close()
    asked = []
    with closing(SqliteStore(path, PATIENCE)) as store:
        store._connection.set_trace_callback(asked.append)
        store.of_failure("c0:make", "k0:a", 9)
        store.lessons_like("c0:make", "k0:a", "ValueError", 9)
    with closing(sqlite3.connect(path)) as connection:
        plans = [row[-1] for statement in asked for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
    assert 3 == len(plans)
    assert [] == [plan for plan in plans if not plan.startswith("SEARCH") or "INDEX" not in plan]
