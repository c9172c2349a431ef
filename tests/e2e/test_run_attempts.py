"""What an attempt is told about the ones before it, and how a pass after a failure is called."""

from __future__ import annotations

import pytest

PASS_SECOND = '[ "$KOS_RETRY_ATTEMPT" = 2 ] || { echo "error: the lamp is out" >&2; exit 1; }'
AT_ONCE = ("--delay", "0s")


def failing_in_turn(*turns: str):
    """Return a command whose n-th attempt says the n-th text and fails, and passes after the last."""
    cases = "".join(f"{n}) echo '{text}' >&2; exit {n};; " for n, text in enumerate(turns, 1))
    return ("sh", "-c", f"case $KOS_RETRY_ATTEMPT in {cases}esac")


def own_variables(done):
    lines = done.stdout.decode().splitlines()
    own = dict(line.split("=", 1) for line in lines if line.startswith("KOS_RETRY_"))
    # Random, and nobody's business but ours.
    del own["KOS_RETRY_MARK"]
    return own


def test_first_attempt_knows_its_number_the_limit_and_the_session(kos_retry):
    done = kos_retry("run", "--session", "s1", "--max-attempts", "4", "--", "env")
    told = {"KOS_RETRY_ATTEMPT": "1", "KOS_RETRY_MAX_ATTEMPTS": "4", "KOS_RETRY_SESSION": "s1"}
    assert told.items() <= own_variables(done).items()


def test_variables_of_an_outer_run_are_not_inherited(kos_retry):
    outer = {"KOS_RETRY_PREVIOUS_ENVELOPE": "/outer", "KOS_RETRY_GUIDANCE": "outer", "KOS_RETRY_ATTEMPT": "7"}
    done = kos_retry("run", "--session", "s1", "--", "env", environment=outer)
    assert set(own_variables(done).items()) & set(outer.items()) == set()


def test_options_in_the_environment_are_inherited(kos_retry):
    done = kos_retry("run", "--", "env", environment={"KOS_RETRY_OPT_DELAY": "3s"})
    assert own_variables(done)["KOS_RETRY_OPT_DELAY"] == "3s"


def test_second_attempt_can_read_the_envelope_of_the_first(kos_retry):
    line = f'[ "$KOS_RETRY_ATTEMPT" = 2 ] && cat "$KOS_RETRY_PREVIOUS_ENVELOPE"; {PASS_SECOND}'
    envelope = kos_retry("run", *AT_ONCE, "--", "sh", "-c", line).json
    assert (envelope["attempt"], envelope["error_message"]) == (1, "error: the lamp is out")


def test_second_attempt_can_read_what_failed_in_the_first(kos_retry, tmp_path):
    summary = "=========== short test summary info ===========\nFAILED tests/test_lamp.py::test_is_on - assert 1 == 2\n"
    (tmp_path / "log").write_text(f"{summary}=========== 1 failed in 0.01s ===========\n")
    line = 'if [ "$KOS_RETRY_ATTEMPT" = 2 ]; then cat "$KOS_RETRY_FAILING_FILE"; else cat log >&2; exit 1; fi'
    done = kos_retry("run", *AT_ONCE, "--", "sh", "-c", line)
    assert done.stdout == b"tests/test_lamp.py::test_is_on\n"


def test_first_attempt_is_handed_no_files(kos_retry):
    done = kos_retry("run", "--guidance", "file", "--", "env")
    assert [name for name in own_variables(done) if name.endswith(("_FILE", "_ENVELOPE"))] == []


def test_pass_after_failures_without_guidance_is_flaky(kos_retry):
    done = kos_retry("run", *AT_ONCE, "--", *failing_in_turn("alpha broke", "beta went wrong"))
    assert (done.code, kos_retry.end()["status"], "flaky" in done.said[-1]) == (0, "flaky", True)


def test_report_of_a_flake_keeps_every_failure(kos_retry):
    kos_retry("run", *AT_ONCE, "--", *failing_in_turn("alpha broke", "beta went wrong"))
    report = kos_retry("report", "--format", "json").json
    told = [(envelope["exit_code"], envelope["error_message"]) for envelope in report["history"]]
    assert told == [(1, "alpha broke"), (2, "beta went wrong")]


def test_limit_of_attempts_ends_the_run(kos_retry):
    done = kos_retry("run", *AT_ONCE, "--max-attempts", "2", "--", *failing_in_turn("alpha", "beta", "gamma"))
    assert (done.code, kos_retry.end()["stop_reason"]) == (2, "max_attempts")


def test_limit_of_zero_lifts_it(kos_retry):
    turns = ("alpha", "beta", "gamma", "delta", "epsilon")
    assert kos_retry("run", *AT_ONCE, "--max-attempts", "0", "--", *failing_in_turn(*turns)).code == 0


def test_what_differs_from_run_to_run_does_not_make_another_failure(kos_retry):
    line = (
        'echo "$(date -u +%Y-%m-%dT%H:%M:%S.%NZ) [$$] error: cannot open $(mktemp -u /tmp/run-XXXXXXXX)/cache'
        ' at 0x7f3a5c${KOS_RETRY_ATTEMPT}d40" >&2; exit 1'
    )
    kos_retry("run", *AT_ONCE, "--", "sh", "-c", line)
    assert len({record["envelope"]["signature"] for record in kos_retry.attempts()}) == 1


def test_exit_code_alone_makes_another_failure(kos_retry):
    kos_retry("run", *AT_ONCE, "--", "sh", "-c", "exit 1$KOS_RETRY_ATTEMPT")
    assert len({record["envelope"]["signature"] for record in kos_retry.attempts()}) == 3


# How each delivery reaches the command: what the shell must do to print it.
READ_GUIDANCE = {
    "stdin": "cat",
    "env": 'printf %s "$KOS_RETRY_GUIDANCE"',
    "file": '[ -z "$KOS_RETRY_GUIDANCE_FILE" ] || cat "$KOS_RETRY_GUIDANCE_FILE"',
    "arg": 'printf %s "$1"',
    "append": '[ $# = 1 ] || printf %s "$2"',
}


@pytest.mark.parametrize("delivery", READ_GUIDANCE)
def test_second_attempt_alone_gets_the_guidance_that_was_decided(kos_retry, tmp_path, delivery):
    line = f'{{ {READ_GUIDANCE[delivery]}; }} >"got.$KOS_RETRY_ATTEMPT"; {PASS_SECOND}'
    kos_retry("run", *AT_ONCE, "--guidance", delivery, "--", "sh", "-c", line, "sh", "{guidance}")
    decided = kos_retry.attempts()[0]["decision"]["guidance"]
    got = [(tmp_path / f"got.{attempt}").read_text() for attempt in (1, 2)]
    assert (got, "the lamp is out" in decided) == (["", decided], True)


def test_pass_after_guidance_is_a_repair_whether_it_was_read_or_not(kos_retry):
    done = kos_retry("run", *AT_ONCE, "--guidance", "stdin", "--", "sh", "-c", PASS_SECOND)
    assert (done.code, kos_retry.end()["status"], "repaired" in done.said[-1]) == (0, "repaired", True)


def test_without_guidance_nothing_is_delivered(kos_retry):
    line = f'echo "$# ${{KOS_RETRY_GUIDANCE-none}} ${{KOS_RETRY_GUIDANCE_FILE-none}}"; {PASS_SECOND}'
    done = kos_retry("run", *AT_ONCE, "--", "sh", "-c", line)
    assert done.stdout == b"0 none none\n" * 2


def test_without_guidance_braces_in_a_command_stay(kos_retry):
    words = ("{guidance}", "{guidance_file}", "{attempt}", "{session}", "{}")
    done = kos_retry("run", "--", "printf", "%s|", *words)
    assert done.stdout.decode() == "".join(f"{word}|" for word in words)


def test_placeholders_are_filled_where_guidance_comes_as_an_argument(kos_retry):
    done = kos_retry(
        "run", "--guidance", "arg", "--session", "s1", "--", "printf", "%s|", "n{attempt}", "{session}.{}", "${attempt"
    )
    assert done.stdout == b"n1|s1.{}|${attempt|"


def test_guidance_file_placeholder_names_the_file(kos_retry):
    line = f'[ "$1" = /dev/null ] || cat "$1"; {PASS_SECOND}'
    done = kos_retry("run", *AT_ONCE, "--guidance", "arg", "--", "sh", "-c", line, "sh", "{guidance_file}")
    assert done.stdout.decode() == kos_retry.attempts()[0]["decision"]["guidance"]


def test_standard_input_is_ours_until_there_is_guidance(kos_retry):
    line = f"cat; {PASS_SECOND}"
    done = kos_retry("run", *AT_ONCE, "--guidance", "stdin", "--", "sh", "-c", line, stdin=b"ours|")
    assert done.stdout.decode() == "ours|" + kos_retry.attempts()[0]["decision"]["guidance"]


def test_bound_of_the_guidance_holds(kos_retry):
    words = ("--guidance", "env", "--max-prompt-bytes", "160")
    kos_retry("run", *AT_ONCE, *words, "--", *failing_in_turn("alpha broke" + " and so on" * 60))
    assert 0 < len(kos_retry.attempts()[0]["decision"]["guidance"].encode()) <= 160


def test_handed_files_are_private(kos_retry):
    kos_retry("run", *AT_ONCE, "--guidance", "file", "--", "sh", "-c", "exit 7")
    modes = {path.name: oct(path.stat().st_mode & 0o077) for path in kos_retry.directory().iterdir()}
    assert modes == dict.fromkeys(("failing.txt", "guidance.md", "journal.jsonl", "previous_envelope.json"), "0o0")
