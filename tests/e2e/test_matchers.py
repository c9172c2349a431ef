"""Problem matchers that the user brings, from the command line and the configuration to the envelope."""

from __future__ import annotations

import json

import pytest

LINE = {"regexp": r"^(\S+?):(\d+): (.*)$", "file": 1, "line": 2, "message": 3}
SLOW = {"regexp": r"^(a+)+$", "message": 1}
FAILS = 'echo "cart.q:3: the cart is empty"; echo "door.q:9: the door is shut"; exit 1'
NAMES = ("the cart is empty", "the door is shut")


def document(pattern=LINE, owner="q"):
    return json.dumps({"problemMatcher": [{"owner": owner, "pattern": [pattern]}]})


@pytest.fixture
def files(tmp_path):
    (tmp_path / "q.json").write_text(document())
    (tmp_path / "slow.json").write_text(document(SLOW, "trap"))
    (tmp_path / "wrong.json").write_text(document(LINE | {"regexp": r"(\p{L}+)"}))
    return tmp_path


def constraints(kos_retry, *words, **given):
    kos_retry("run", "--max-attempts", "1", *words, "--", "sh", "-c", FAILS, **given)
    return kos_retry.attempts()[0]["envelope"]["failing_constraints"]


def test_errors_are_failing_constraints(kos_retry, files):
    assert constraints(kos_retry, "--matcher", "q.json") == sorted(NAMES)


def test_without_matchers_the_same_output_has_none(kos_retry):
    assert constraints(kos_retry) == []


def test_configuration_has_matchers_too(kos_retry, files):
    (files / "kos-retry.toml").write_text("[[matcher]]\nfile = 'q.json'\n")
    (files / "below").mkdir()
    assert constraints(kos_retry, cwd=files / "below") == sorted(NAMES)


def test_command_line_stands_for_the_configuration(kos_retry, files):
    (files / "kos-retry.toml").write_text("matcher = 'q.json'\n")
    assert constraints(kos_retry, "--matcher", document({"regexp": "^(door)", "message": 1})) == ["door"]


@pytest.mark.parametrize("configured", [False, True], ids=["option", "configuration"])
def test_run_and_observe_give_one_signature(kos_retry, files, configured):
    words = [] if configured else ["--matcher", "q.json"]
    if configured:
        (files / "kos-retry.toml").write_text("matcher = 'q.json'\n")
    kos_retry("run", "--max-attempts", "1", *words, "--", "sh", "-c", FAILS)
    log = kos_retry.finish(["sh", "-c", FAILS]).stdout
    observed = kos_retry("observe", "--exit-code", "1", "--log", "-", *words, stdin=log).json
    rows = kos_retry(
        "observe", "--jsonl", *words, stdin=json.dumps({"exit_code": 1, "output": log.decode()}).encode() + b"\n"
    ).rows
    signature = kos_retry.attempts()[0]["envelope"]["signature"]
    assert [observed["signature"], rows[0]["envelope"]["signature"]] == [signature] * 2


def test_explain_explains_the_signature_of_a_configured_run(kos_retry, files):
    (files / "kos-retry.toml").write_text("matcher = 'q.json'\n")
    log = kos_retry.finish(["sh", "-c", FAILS]).stdout
    observed = kos_retry("observe", "--exit-code", "1", "--log", "-", stdin=log).json
    explained = kos_retry("explain", "--format", "json", stdin=log).json
    assert observed["signature"] == explained["signature"]


def test_what_an_extractor_read_is_not_told_twice(kos_retry, files):
    """Its own name for it stays, whatever the matcher calls it."""
    (files / "own.json").write_text(
        document({"regexp": r"^(\S+?):(\d+):(\d+): error: (.*)$", "file": 1, "line": 2, "column": 3, "message": 4})
    )
    log = b"cart.c:3:1: error: no cart [-Wcart]\n"
    told = [
        kos_retry("observe", "--exit-code", "1", "--log", "-", *words, stdin=log).json["failing_constraints"]
        for words in ([], ["--matcher", "own.json"])
    ]
    assert told == [["-Wcart"]] * 2


def test_expression_that_never_ends_is_named_and_the_run_goes_on(kos_retry, files):
    script = 'echo "q.q:1: one of $KOS_RETRY_ATTEMPT"; echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!; exit 1'
    words = ["--matcher", "q.json", "--matcher", "slow.json", "--max-attempts", "2", "--delay", "0"]
    done = kos_retry("run", *words, "--", "sh", "-c", script)
    left_out = "left out what takes too long on this output: the expressions of 'trap'"
    assert [a["envelope"]["extractors"] for a in kos_retry.attempts()] == [{"matchers": left_out}] * 2
    assert f"extractor matchers failed: {left_out}" in done.said
    assert [a["envelope"]["failing_constraints"] for a in kos_retry.attempts()] == [["one of 1"], ["one of 2"]]


WRONG = {
    "missing": (["--matcher", "none.json"], ["none.json", "No such file"]),
    "construct": (["--matcher", "wrong.json"], ["wrong.json", "owner 'q'", "pattern[0]", "Unicode property"]),
    "second": (["--matcher", "q.json", "--matcher", "wrong.json"], ["wrong.json"]),
    "empty": (["--matcher", ""], ["--matcher", "empty"]),
}


@pytest.mark.parametrize(("words", "named"), WRONG.values(), ids=WRONG)
@pytest.mark.parametrize(
    ("command", "code"),
    [(["run", "{}", "--", "echo", "ran"], 125), (["observe", "--exit-code", "1", "{}"], 2)],
    ids=["run", "observe"],
)
def test_wrong_matcher_is_told_before_anything_runs(kos_retry, files, words, named, command, code):
    at = command.index("{}")
    done = kos_retry(*command[:at], *words, *command[at + 1 :])
    missing = [name for name in named if name not in done.stderr.decode()]
    assert (done.code, done.stdout, done.stderr.count(b"\n"), missing) == (code, b"", 1, [])


@pytest.mark.parametrize("command", [["config", "show"], ["explain", "/dev/null"]], ids=["config", "explain"])
def test_wrong_matcher_of_a_configuration_is_bad_input_to_other_commands(kos_retry, files, command):
    (files / "kos-retry.toml").write_text("matcher = 'wrong.json'\n")
    done = kos_retry(*command)
    assert (done.code, done.stdout, b"wrong.json: owner 'q'" in done.stderr) == (2, b"", True)
