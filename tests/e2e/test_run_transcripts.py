"""Agents that run in a loop: what their transcripts and their actions files tell decides."""

from __future__ import annotations

import json

import pytest

AT_ONCE = ("--delay", "0s", "--max-attempts", "3")

# A stand-in for an agent: prints the transcript of this attempt, exits with the code that is written beside it.
AGENT = """
import os, sys
n = os.environ["KOS_RETRY_ATTEMPT"]
sys.stdout.write(open(f"transcript.{n}").read())
sys.stderr.write("working\\n")
sys.exit(int(open(f"code.{n}").read()))
"""


@pytest.fixture
def agent(kos_retry):
    """Return a function that runs the stand-in through some attempts and returns how it ended, and the envelopes."""

    def run(*attempts: tuple[str, int], options=("--transcript", "auto"), tail=()):
        (kos_retry.home / "agent.py").write_text(AGENT)
        for number, (transcript, code) in enumerate(attempts, 1):
            (kos_retry.home / f"transcript.{number}").write_text(transcript)
            (kos_retry.home / f"code.{number}").write_text(str(code))
        done = kos_retry("run", *AT_ONCE, *options, "--", "python3", "agent.py", *tail)
        return done, [record["envelope"] for record in kos_retry.attempts()]

    return run


def lines(*events: dict) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


def session(*events: dict, ends: str = "done", **usage) -> str:
    """Return a transcript in our own format."""
    return lines(*events, {"kind": "finish", "stop_reason": ends, "usage": usage})


MAKE = {"tool": "shell", "input": {"cmd": "make"}, "ok": False, "result": "make: nothing to do"}
EDIT = {"tool": "edit", "input": {"path": "a"}, "ok": True}


def test_exit_code_0_is_no_success_where_the_transcript_tells_of_a_failure(agent):
    denied = lines({"type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "result": "I could not.", "session_id": "s", "total_cost_usd": 0.5, "permission_denials": [{"tool_name": "Bash", "tool_use_id": "1"}]})  # fmt: skip
    done, (envelope,) = agent((denied, 0))
    assert (done.code, envelope["category"], envelope["cause"]["kind"]) == (1, "execution_failure", "permission_denied")
    assert done.stdout.decode() == denied
    assert "allow Bash for this run" in done.stderr.decode()


def test_success_that_is_told_is_a_success(agent):
    done, envelopes = agent((session(MAKE, EDIT), 0))
    assert (done.code, envelopes) == (0, [])


def test_failed_attempt_is_tried_again_and_mended(agent):
    done, (envelope,) = agent((session(MAKE, ends="max_turns", input_tokens=5, cost_usd=0.1), 0), (session(EDIT), 0))
    assert (done.code, envelope["cause"]["kind"], envelope["usage"]["cost_usd"]) == (0, "turn_limit", 0.1)
    assert [a["name"] for a in envelope["executed_actions"]] == ["shell"]


def test_failure_is_a_failure_whatever_the_transcript_says(agent):
    done, envelopes = agent((session(EDIT), 7), (session(EDIT), 7))
    assert (done.code, {e["category"] for e in envelopes}) == (7, {"execution_failure"})


def test_passing_trouble_is_waited_for_and_a_used_up_quota_is_not(agent):
    busy = lines(
        {"type": "thread.started", "thread_id": "t"},
        {"type": "turn.failed", "error": {"message": "503 Service Unavailable"}},
    )
    gone = lines({"type": "thread.started", "thread_id": "t"}, {"type": "turn.failed", "error": {"message": "You've hit your usage limit. Try again at 9 PM."}})  # fmt: skip
    done, envelopes = agent((busy, 0), (gone, 1))
    assert ([e["cause"]["kind"] for e in envelopes], done.code) == (["transient", "quota"], 1)
    assert "9 PM" in done.stderr.decode()


def test_transcript_that_is_longer_than_what_is_captured_is_read_whole(agent):
    long = session(
        *({"tool": "read", "input": {"path": f"{n}"}, "ok": True, "result": "x" * 4000} for n in range(2000)),
        ends="loop",
    )
    done, (envelope, *_) = agent((long, 0), (session(EDIT), 0), options=("--transcript", "generic"))
    assert (done.code, envelope["transcript"]["actions"], envelope["cause"]["kind"]) == (0, 2000, "loop_detected")
    assert len(done.stdout) == len(long) + len(session(EDIT))


def test_verify_is_not_run_for_an_agent_that_says_it_failed(agent, kos_retry):
    agent((session(ends="permission_denied"), 0), options=("--transcript", "auto", "--verify", "touch verified"))
    assert not (kos_retry.home / "verified").exists()


def test_verify_decides_where_the_agent_says_that_it_succeeded(agent):
    done, envelopes = agent(
        (session(EDIT), 0), (session(EDIT), 0), options=("--transcript", "auto", "--verify", "tests=false")
    )
    assert (done.code, envelopes[0]["failing_constraints"], envelopes[0]["category"]) == (
        1,
        ["tests"],
        "verification_failed",
    )
    assert envelopes[0]["executed_actions"][0]["name"] == "edit"


def test_output_that_is_no_transcript_is_told_and_the_exit_code_counts(agent):
    done, envelopes = agent(("All done.\n", 0))
    assert (done.code, envelopes) == (0, [])
    assert any("transcript of no known format" in line for line in done.said)


def test_unknown_format_is_named_and_nothing_is_started(agent, kos_retry):
    done = kos_retry("run", "--transcript", "klingon", "--", "touch", "started")
    assert (done.code, (kos_retry.home / "started").exists()) == (125, False)
    assert "there is no format 'klingon'; known are auto, action-log, " in done.said[0]


def test_nothing_is_left_in_the_temporary_directory(agent, kos_retry):
    agent((session(MAKE, ends="loop"), 0), (session(EDIT), 0))
    assert list(kos_retry.temporary.iterdir()) == []


def test_attempt_that_passed_is_paid_for_too(agent, kos_retry):
    failed = session(MAKE, ends="max_turns", input_tokens=5, output_tokens=1, cost_usd=0.1)
    done, _ = agent((failed, 0), (session(EDIT, input_tokens=7, output_tokens=2, cost_usd=0.25), 0))
    assert (done.code, done.said[-1]) == (0, "spent by 2 attempts: 0.35 USD, 15 tokens")
    end, spent = kos_retry.end(), {"cost_usd": 0.35, "tokens": 15}
    assert (end["usage"], end["spent"]) == ({"cost_usd": 0.25, "tokens": 9}, spent)
    (listed,) = kos_retry("sessions", "list", "--format", "json").json["sessions"]
    assert listed["spent"] == {**spent, "unknown": []}


def test_attempt_that_passes_at_once_says_what_it_cost(agent, kos_retry):
    done, _ = agent((session(EDIT, input_tokens=7, cost_usd=0.25), 0))
    assert done.said == ["spent by 1 attempt: 0.25 USD, 7 tokens"]
    assert "spent by 1 attempt: 0.25 USD, 7 tokens" in kos_retry("report").stdout.decode()


def test_cost_that_the_passing_attempt_does_not_tell_is_unknown(agent):
    done, _ = agent((session(MAKE, ends="max_turns", cost_usd=0.1), 0), (session(EDIT), 0))
    assert (
        done.said[-1] == "spent by 2 attempts: 0.10 USD, an unknown number of tokens; what attempt 2 cost is not known"
    )


def test_totals_of_a_session_that_goes_on_are_counted_once_up_to_its_end(agent, kos_retry):
    said = {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "Done."}}
    turns = [
        lines(
            {"type": "thread.started", "thread_id": "t"},
            said,
            {"type": "turn.completed", "usage": {"input_tokens": tokens, "output_tokens": 0}},
        )
        for tokens in (100, 130)
    ]
    done, _ = agent((turns[0], 1), (turns[1], 0), options=("--transcript", "codex"))
    assert (done.code, kos_retry.end()["usage"]["tokens"], kos_retry.end()["spent"]["tokens"]) == (0, 30, 130)


def test_nothing_is_said_about_costs_where_nothing_is_known(agent, kos_retry):
    done, _ = agent((session(EDIT), 0))
    assert (done.said, "spent" in kos_retry.end()) == ([], False)


LOG = 'echo \'{"name": "step", "input": {"n": \'$KOS_RETRY_ATTEMPT\'}}\' >>"$KOS_RETRY_ACTIONS_FILE"; echo broken >>"$KOS_RETRY_ACTIONS_FILE"; exit 1'


def test_actions_that_an_attempt_appends_are_its_own(kos_retry):
    (kos_retry.home / "log").write_text('"of an earlier run"\n')
    kos_retry("run", *AT_ONCE, "--actions", "log", "--", "sh", "-c", LOG)
    found = [record["envelope"] for record in kos_retry.attempts()]
    assert [[a["input"] for a in e["executed_actions"]] for e in found][:2] == [[{"n": 1}], [{"n": 2}]]
    assert found[0]["extractors"]["actions-file"] == "1 of 2 lines are no actions"


def test_observe_reads_transcripts_and_actions_files(kos_retry):
    (kos_retry.home / "out").write_text(session(MAKE, ends="max_turns", input_tokens=5, output_tokens=2))
    (kos_retry.home / "log").write_text('{"tool": "traced"}\n')
    words = ("observe", "--exit-code", "0", "--log", "out", "--transcript")
    told = kos_retry(*words, "auto").json
    assert kos_retry(*words, "generic").json == told
    assert (told["cause"]["kind"], told["usage"]["tokens"], told["executed_actions"][0]["name"]) == (
        "turn_limit",
        7,
        "shell",
    )
    assert [a["name"] for a in kos_retry(*words, "auto", "--actions", "log").json["executed_actions"]] == ["traced"]


def test_observe_reads_transcripts_in_rows(kos_retry):
    rows = [
        {"id": n, "exit_code": 0, "stdout": session(ends=ends), "transcript": "auto"}
        for n, ends in enumerate(("done", "loop"))
    ]
    found = kos_retry(
        "observe", "--jsonl", stdin=lines(*rows, {"id": 2, "exit_code": 0, "transcript": "klingon"}).encode()
    ).rows
    assert [row["envelope"]["category"] for row in found[:2]] == ["success", "execution_failure"]
    assert "klingon" in found[2]["error"]


def test_observe_refuses_an_unknown_format_in_one_line(kos_retry):
    done = kos_retry("observe", "--exit-code", "1", "--log", "-", "--transcript", "klingon")
    assert (done.code, done.stdout, len(done.stderr.splitlines())) == (2, b"", 1)
