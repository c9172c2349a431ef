"""`explain`: what a signature is made of, in words and colours, and why two of them differ."""

from __future__ import annotations

import json

import pytest

_LOG = (
    "10:00:01 start\n"
    "AssertionError: expected status 200, got 503 from http://127.0.0.1:{port}/cart\n"
    "    at cart (/home/ci/w/src/cart.js:12:3)\n"
)


@pytest.fixture
def logs(tmp_path):
    (tmp_path / "a.log").write_text(_LOG.format(port=49213))
    (tmp_path / "again.log").write_text(_LOG.format(port=50001))
    (tmp_path / "b.log").write_text(_LOG.format(port=49213).replace("503", "500"))


def test_log_is_explained(kos_retry, logs, snapshot):
    assert kos_retry("explain", "a.log").stdout.decode() == snapshot


def test_tokens_are_coloured_by_what_happened_to_them(kos_retry, logs):
    shown = kos_retry("explain", "a.log", environment={"FORCE_COLOR": "1"}).stdout.decode()
    assert (True, True) == (
        "\x1b[32mstatus 200\x1b[0m" in shown,
        "\x1b[4;31mhttp://127.0.0.1:49213/cart\x1b[0m" in shown,
    )


def test_what_differs_is_told_in_as_few_words_as_possible(kos_retry, logs, snapshot):
    assert kos_retry("explain", "a.log", "b.log").stdout.decode() == snapshot


def test_same_failure_is_said_to_be_the_same(kos_retry, logs):
    assert kos_retry("explain", "a.log", "again.log").stdout.decode().startswith("same signature k")


def test_envelope_and_log_can_be_compared(kos_retry, logs, tmp_path):
    (tmp_path / "a.json").write_bytes(kos_retry("observe", "--exit-code", "1", "--log", "a.log").stdout)
    told = kos_retry("explain", "a.json", "b.log", "--format", "json").json["similarity"]
    assert [(["503"], ["500"])] == [(d["removed"], d["added"]) for d in told["differences"]]


def test_canonical_json_is_what_was_hashed(kos_retry, logs):
    import hashlib

    told = kos_retry("explain", "a.log", "--format", "json").json
    canonical = json.dumps(told["canonical"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert told["signature"].partition(":")[2] == hashlib.sha256(canonical.encode()).hexdigest()


def test_own_rules_are_explained_like_the_classes(kos_retry, logs, tmp_path):
    (tmp_path / "kos-retry.toml").write_text("[[mask]]\nname = 'status'\npattern = 'got (5\\d\\d)'\n")
    told = kos_retry("explain", "a.log", "b.log", "--format", "json").json
    assert told["similarity"]["same_signature"]
    parts = kos_retry("explain", "a.log", "--format", "json").json["parts"]
    assert {"token_class": "status", "mask": "<status>"}.items() <= next(
        t for part in parts for t in part["tokens"] if t["token_class"] == "status"
    ).items()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.log", "b.log", "a.log"], "explain takes one input or two, not 3"),
        (["-", "-"], "only one of the two inputs can come from standard input"),
        (["none.log"], "none.log: No such file or directory"),
    ],
    ids=["three", "standard-input-twice", "missing"],
)
def test_bad_input_is_one_line(kos_retry, logs, words, said):
    done = kos_retry("explain", *words)
    assert (2, b"", [said]) == (done.code, done.stdout, done.said)


def test_rules_hold_for_run_observe_and_next_alike(kos_retry, tmp_path):
    (tmp_path / "kos-retry.toml").write_text("[[mask]]\nname = 'order'\npattern = 'order-[a-z]+'\n")
    words = ["--max-attempts", "2", "--delay", "0", "--", "sh", "-c", "echo error: order-$0 is bad; exit 1"]
    kos_retry("run", *words, "abc")
    ran = kos_retry.attempts()[0]["envelope"]["signature"]
    row = {"exit_code": 1, "output": "error: order-xyz is bad\n"}
    seen = kos_retry("observe", "--jsonl", stdin=json.dumps(row).encode()).rows[0]["envelope"]
    history = [{"exit_code": 1, "error_message": f"error: order-{name} is bad"} for name in ("a", "b")]
    decided = kos_retry("next", stdin=json.dumps(history).encode()).json
    assert (ran, True) == (seen["signature"], decided["delta"]["same_signature"])
