"""What a run learns from earlier ones, and that no store ever changes how it ends."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

# Fails in one and the same way until it has been run so many times.
FLAKE = (
    'n=$(($(cat count 2>/dev/null || echo 0) + 1)); echo $n >count; echo "error: the lamp is out" >&2; test $n -ge {}'
)
FAIL = ("--delay", "0s", "--", "sh", "-c", 'echo "error: the lamp is out" >&2; exit 7')


def run_flake(kos_retry, passes_at, *options):
    """Run a command that passes at some attempt, from the start."""
    (kos_retry.home / "count").unlink(missing_ok=True)
    # What differs is in a file, so that it is the same command each time.
    (kos_retry.home / "flake.sh").write_text(FLAKE.format(passes_at))
    return kos_retry("run", "--delay", "0s", *options, "--", "sh", "flake.sh")


def sightings(kos_retry, *place):
    return kos_retry("history", "export", *place).rows


def learn(kos_retry, count, **fields):
    """Run once, and let the store have as many more such outcomes of earlier runs."""
    kos_retry("run", *FAIL)
    (seen,) = sightings(kos_retry)
    lines = [json.dumps({**seen, "origin": "elsewhere", "run": f"r{n}", **fields}) for n in range(count)]
    return kos_retry("history", "import", stdin="\n".join(lines).encode())


def test_flake_that_passed_before_gets_the_attempt_that_repetition_would_deny_it(kos_retry):
    first = run_flake(kos_retry, 3)
    run_flake(kos_retry, 2)
    learned = run_flake(kos_retry, 3)
    assert (first.code, learned.code) == (1, 0)
    assert learned.said[1] == (
        "trying again in 0s: this failure passed on retry in 1 of 2 runs, within 2 attempts (estimate 0.22)"
    )


def test_failure_that_never_passed_stops_at_once(kos_retry):
    learn(kos_retry, 39)
    done = kos_retry("run", *FAIL)
    seen = "this failure was seen in 40 runs, tried again in 40 and passed on retry in none (estimate at most 0.08)"
    assert (done.code, done.said[1]) == (7, f"stopped after 1 attempt, 2 not tried: {seen} (non_retryable)")


def test_failure_that_never_passed_is_tried_again_where_the_user_says_so(kos_retry):
    learn(kos_retry, 39)
    assert kos_retry("run", "--retry-on", "exit:7", *FAIL).said[1].startswith("trying again")


def test_pass_at_once_leaves_nothing(kos_retry):
    kos_retry("run", "--", "true")
    assert not (kos_retry.state / "store.sqlite3").exists()


def test_store_that_is_switched_off_is_neither_read_nor_written(kos_retry):
    learn(kos_retry, 39)
    done = kos_retry("run", "--store", "none", *FAIL)
    assert (done.said[1].startswith("trying again"), len(sightings(kos_retry))) == (True, 40)


def test_repair_is_no_pass_on_retry(kos_retry):
    assert run_flake(kos_retry, 2, "--guidance", "env").code == 0
    assert [(s["passed"], s["changed"]) for s in sightings(kos_retry)] == [(True, True)]
    assert kos_retry("history", "flaky").stdout == b""


def test_run_that_was_cancelled_counts_nothing(kos_retry, events):
    line = f"echo begun >{events.path}; sleep 60"
    running = kos_retry.start("run", "--", "sh", "-c", line)
    assert events.wait() == "begun"
    running.terminate()
    running.wait(45)
    assert sightings(kos_retry) == []


def test_lessons_of_earlier_sessions_reach_the_next_attempt(kos_retry):
    for session in ("first", "second"):
        run_flake(kos_retry, 2, "--guidance", "file", "--session", session)
    told = [kos_retry.attempts(session)[0]["decision"]["guidance"] for session in ("first", "second")]
    lesson = "- Earlier: `sh flake.sh` failed with `error: the lamp is out` and passed after a change on attempt 2"
    assert [lesson in guidance for guidance in told] == [False, True]


def of_a_later_version(path):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE kos_retry_meta SET value = '99' WHERE name = 'schema'")


# What is done to the store, and what is said about it.
FAULTS = {
    "later version": (of_a_later_version, "it has version 99 and this kos-retry knows 1: it is left alone"),
    "a directory": (lambda path: (path.unlink(), path.mkdir()), "Is a directory; going on without it"),
    "something else": (lambda path: path.write_text("nothing of the kind"), "and a new one is begun"),
}


@pytest.mark.parametrize(("spoil", "said"), FAULTS.values(), ids=FAULTS.keys())
def test_fault_of_the_store_is_told_once_and_changes_nothing(kos_retry, spoil, said):
    before = kos_retry("run", *FAIL)
    spoil(kos_retry.state / "store.sqlite3")
    after = kos_retry("run", *FAIL)
    told = [line for line in after.said if line not in before.said]
    assert (after.code, after.stdout, [said in line for line in told]) == (7, b"", [True])


def test_locked_store_is_told_and_changes_nothing(kos_retry):
    kos_retry("run", *FAIL)
    with closing(sqlite3.connect(kos_retry.state / "store.sqlite3", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        done = kos_retry("run", *FAIL)
    told = [line for line in done.said if "cannot use the store" in line or "does not answer" in line]
    assert (done.code, len(told)) == (7, 1)


def test_runs_at_once_are_all_remembered(kos_retry):
    running = [kos_retry.start("run", "--max-attempts", "1", *FAIL) for _ in range(4)]
    for process in running:
        process.communicate(timeout=45)
    assert len(sightings(kos_retry)) == 4


def test_two_machines_share_what_they_learn_on_a_server(kos_retry, server):
    url = server.fresh()
    environment = {"KOS_RETRY_OPT_STORE": url}
    for machine in ("one", "two", "three"):
        done = kos_retry("run", *FAIL, environment=environment | {"XDG_STATE_HOME": str(kos_retry.home / machine)})
        assert (done.code, [line for line in done.said if "store" in line]) == (7, [])
    (known,) = kos_retry("history", "signatures", "--store", url, "--format", "json").json["signatures"]
    assert (known["runs"], known["retried"], known["passed"]) == (3, 3, 0)
    assert b"staple" not in b"".join(path.read_bytes() for path in kos_retry.home.rglob("*") if path.is_file())


def test_server_that_is_gone_changes_nothing_and_its_password_is_not_told(kos_retry):
    pytest.importorskip("psycopg")
    done = kos_retry("run", "--store", f"postgresql://ci:staple-horse@/kos?host={kos_retry.home}", *FAIL)
    told = [line for line in done.said if "cannot use the store postgresql://ci:[redacted]@/kos" in line]
    assert (done.code, len(told), b"staple" in done.stderr) == (7, 1, False)


def test_password_of_the_store_that_the_command_prints_is_kept_nowhere(kos_retry):
    environment = {"KOS_RETRY_OPT_STORE": "postgresql://ci:staple-horse@/kos?host=/nowhere"}
    kos_retry("run", "--max-attempts", "1", "--", "sh", "-c", "echo staple-horse; exit 1", environment=environment)
    assert b"staple" not in b"".join(path.read_bytes() for path in kos_retry.home.rglob("*") if path.is_file())
