"""What `history` prints, and stores that exchange what they know."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

# Long enough ago to be no recent sighting, and not so long that it is dropped.
DAYS = [(datetime.now(UTC) - timedelta(days=age)).replace(hour=8, minute=15, microsecond=0) for age in (60, 59, 58)]
DATES = [f"{day:%Y-%m-%d}" for day in DAYS]
LINE = {
    "v": 1,
    "origin": "here",
    "run": "r1",
    "time": DAYS[0].isoformat(),
    "command": "c0:make",
    "command_line": "make check",
    "signature": "k0:a",
    "coarse": "ValueError",
    "message": "ValueError: bad total",
    "passed": True,
    "changed": False,
    "last": True,
    "attempts": 2,
    "retries": 1,
    "retry_seconds": 90.0,
    "stop_reason": "",
}


def lines(*changes):
    return b"".join(json.dumps({**LINE, **change}).encode() + b"\n" for change in changes)


KNOWN = lines(
    {},
    {"run": "r2", "passed": False, "stop_reason": "zero_delta"},
    {
        "run": "r3",
        "signature": "k0:b",
        "message": "TypeError: no price",
        "retry_seconds": 600,
        "time": DAYS[1].isoformat(),
    },
    {
        "run": "r4",
        "signature": "k0:c",
        "passed": False,
        "retries": 0,
        "attempts": 1,
        "message": "\u001b[31m::error::red",
    },
    {"run": "r5", "signature": "k0:d", "changed": True, "attempts": 3, "time": DAYS[2].isoformat()},
)


@pytest.fixture
def history(kos_retry):
    """Return `history` over a store that knows something."""
    assert kos_retry("history", "import", stdin=KNOWN).stdout == b"5 sightings imported\n"
    return lambda *words, **given: kos_retry("history", *words, **given)


def test_failures_are_listed_the_last_seen_first(history):
    rows = [line.split()[0] for line in history("signatures").stdout.decode().splitlines()]
    assert rows == ["signature", "k0:d", "k0:b", "k0:a", "k0:c"]


def test_flaky_failures_are_listed_the_most_costly_first(history):
    header, *rows = (" ".join(line.split()) for line in history("flaky").stdout.decode().splitlines())
    assert header == "signature last seen first seen runs passed on retry estimate retries time trend failure command"
    assert [row.split()[:6] for row in rows] == [
        ["k0:b", DATES[1], DATES[1], "1", "1", "of"],
        ["k0:a", DATES[0], DATES[0], "2", "1", "of"],
    ]


def test_record_as_json(history):
    (costly, other) = history("flaky", "--format", "json").json["flaky"]
    assert (costly["signature"], costly["retry_seconds"]) == ("k0:b", 600.0)
    kept = ("runs", "retried", "passed", "repaired", "failed", "most_attempts", "retries", "trend", "command_line")
    assert [other[name] for name in kept] == [2, 2, 1, 0, 1, 2, 2, "gone", "make check"]
    assert 0 <= other["estimate"]["low"] < other["estimate"]["rate"] < other["estimate"]["high"] <= 1


def test_lessons_are_sentences_the_newest_first(history):
    assert history("lessons", "--limit", "2").stdout.decode().splitlines() == [
        f"'make check' failed with 'ValueError: bad total' and passed after a change on attempt 3 ({DATES[2]})",
        f"'make check' failed with 'TypeError: no price' and passed unchanged on attempt 2 ({DATES[1]})",
    ]


@pytest.mark.parametrize("what", ["signatures", "lessons", "flaky"])
def test_what_others_said_cannot_write_to_the_terminal(history, what):
    printed = history(what).stdout.decode()
    assert [line for line in printed.splitlines() if "\x1b" in line or "::error" in line] == []


def test_export_is_what_import_reads_and_comes_out_the_same(history, kos_retry, tmp_path):
    exported = history("export").stdout
    place = ("--store", f"sqlite:{tmp_path / 'other.db'}")
    assert kos_retry("history", "import", *place, stdin=exported).stdout == b"5 sightings imported\n"
    assert kos_retry("history", "export", *place).stdout == exported


def test_import_twice_counts_once(history):
    assert history("import", stdin=KNOWN).stdout == b"0 sightings imported, 5 were known\n"


def test_bad_lines_are_named_and_the_rest_is_imported(kos_retry):
    bad = lines({}) + b"nonsense\n\n" + lines({"run": "r2", "v": 2}, {"run": "r3", "attempts": "two"}, {"run": "r4"})
    done = kos_retry("history", "import", stdin=bad)
    assert (done.code, done.stdout) == (1, b"2 sightings imported, 3 bad lines\n")
    assert [line.split(": ")[0:2] for line in done.said] == [
        ["line 2", "not JSON"],
        ["line 4", "v"],
        ["line 5", "attempts"],
    ]


def test_import_reads_a_file(kos_retry, tmp_path):
    (tmp_path / "exported").write_bytes(KNOWN)
    assert kos_retry("history", "import", str(tmp_path / "exported")).code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--keep", "2"), b"3 sightings dropped\n"),
        (("--older-than", "1d"), b"5 sightings dropped\n"),
        ((), b"0 sightings dropped\n"),
    ],
)
def test_pruning_says_what_it_dropped(history, words, said):
    assert history("prune", *words).stdout == said


@pytest.mark.parametrize("what", ["signatures", "flaky", "lessons", "export"])
def test_question_about_nothing_is_answered_with_nothing_and_begins_nothing(kos_retry, what):
    assert kos_retry("history", what) == (0, b"", b"")
    assert not kos_retry.state.exists()


# The options, and what the one line says.
WRONG = {
    "switched off": (("signatures", "--store", "none"), 2, "the store is switched off"),
    "unknown kind": (("signatures", "--store", "mysql://u:secret@h/x"), 125, "'mysql://u:[redacted]@h/x' is not none"),
    "no such file": (("import", "/nowhere"), 2, "/nowhere: No such file or directory"),
    "no duration": (("prune", "--older-than", "soon"), 2, "'soon' is not a duration"),
    "unknown format": (("flaky", "--format", "xml"), 2, "'xml' is not one of text, json"),
}


@pytest.mark.parametrize(("words", "code", "said"), WRONG.values(), ids=WRONG.keys())
def test_wrong_question_is_one_line_on_standard_error(kos_retry, words, code, said):
    done = kos_retry("history", *words)
    assert (done.code, done.stdout, [said in line for line in done.said]) == (code, b"", [True])


def test_store_of_the_configuration_is_asked(kos_retry, tmp_path):
    (tmp_path / "kos-retry.toml").write_text(f'store = "sqlite:{tmp_path / "mine.db"}"\n')
    kos_retry("history", "import", stdin=KNOWN)
    assert (tmp_path / "mine.db").exists()
    assert len(kos_retry("history", "export").rows) == 5
