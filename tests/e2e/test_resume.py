"""Sessions that were killed, stopped or left go on where they were, and count what was spent."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import time

import pytest

MOMENTS = int(os.environ.get("KOS_RETRY_KILLS", "12"))
# Fails three times, each time in another way, and passes then.
PASS_AT_LAST = 'echo $KOS_RETRY_ATTEMPT >>made; [ $KOS_RETRY_ATTEMPT = 4 ] || { echo "no $(echo $KOS_RETRY_ATTEMPT | tr 1-9 a-i)"; exit 3; }'
FAIL_ANEW = "echo failure $KOS_RETRY_ATTEMPT | tr 0-9 a-j; exit 3"
ON = ("--delay", "0s", "--store", "none")


def numbers(kos_retry, session="s1"):
    """Return the numbers of the attempts of a session, as its report tells them."""
    history = kos_retry("sessions", "show", session, "--format", "json").json["history"]
    return [envelope["attempt"] for envelope in history]


def killed(kos_retry, moment, *words):
    """Start a run, kill it at some moment unless it has ended by then, and wait until its command is gone too."""
    running = kos_retry.start("run", "--session", "s1", *words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    select.select([], [], [], moment)
    running.kill()
    running.wait(45)


@pytest.mark.parametrize("seed", range(MOMENTS))
def test_killed_session_reaches_the_end_of_an_undisturbed_one(kos_retry, seed):
    words = (*ON, "--max-attempts", "0", "--guidance", "env", "--", "sh", "-c", PASS_AT_LAST)
    killed(kos_retry, random.Random(seed).uniform(0.02, 1.2), *words)
    path = kos_retry.state / "sessions" / "s1" / "journal.jsonl"
    if not path.exists():
        assert kos_retry("run", "--session", "s1", *words).code == 0
    elif kos_retry.journal()[-1]["type"] != "end":
        assert kos_retry("sessions", "resume", "s1").code == 0
    last = kos_retry.journal()[-1]
    assert (numbers(kos_retry), last["status"], last["attempts"]) == ([1, 2, 3], "repaired", 4)


def test_attempts_before_the_resume_count(kos_retry):
    kos_retry("run", "--session", "s1", *ON, "--max-attempts", "2", "--", "sh", "-c", FAIL_ANEW)
    resumed = kos_retry("sessions", "resume", "s1", "--max-attempts", "3")
    assert (resumed.code, numbers(kos_retry), kos_retry.end()["stop_reason"]) == (3, [1, 2, 3], "max_attempts")


def test_lifted_cap_goes_on_to_the_end(kos_retry):
    kos_retry("run", "--session", "s1", *ON, "--max-attempts", "2", "--", "sh", "-c", PASS_AT_LAST)
    resumed = kos_retry("sessions", "resume", "s1", "--max-attempts", "0")
    assert (resumed.code, (kos_retry.home / "made").read_text().split()) == (0, ["1", "2", "3", "4"])


def test_spent_cap_starts_nothing(kos_retry):
    kos_retry("run", "--session", "s1", *ON, "--max-attempts", "2", "--", "sh", "-c", PASS_AT_LAST)
    assert kos_retry("sessions", "resume", "s1").code == 3
    assert (kos_retry.home / "made").read_text().split() == ["1", "2"]


def test_spent_deadline_starts_nothing(kos_retry):
    kos_retry("run", "--session", "s1", *ON, "--max-attempts", "2", "--", "sh", "-c", PASS_AT_LAST)
    kos_retry("sessions", "resume", "s1", "--max-attempts", "0", "--deadline", "1ms")
    assert (kos_retry.home / "made").read_text().split() == ["1", "2"]
    assert kos_retry.end()["stop_reason"] == "deadline"


def test_guidance_after_a_resume_is_that_of_the_undisturbed_run(kos_retry):
    line = 'printf %s "$KOS_RETRY_GUIDANCE" >told$KOS_RETRY_ATTEMPT; ' + FAIL_ANEW
    words = (*ON, "--guidance", "env", "--", "sh", "-c", line)
    kos_retry("run", "--session", "whole", "--max-attempts", "3", *words)
    undisturbed = (kos_retry.home / "told3").read_text()
    kos_retry("run", "--session", "s1", "--max-attempts", "2", *words)
    kos_retry("sessions", "resume", "s1", "--max-attempts", "3")
    assert undisturbed != ""
    assert (kos_retry.home / "told3").read_text() == undisturbed


def a_running_session(kos_retry, events, *words):
    running = kos_retry.start("run", "--session", "s1", *words, "--", "sh", "-c", "echo here >events; sleep 60")
    events.wait()
    while not (kos_retry.state / "sessions" / "s1" / "journal.jsonl").exists():
        select.select([], [], [], 0.01)
    return running


def test_running_session_is_stopped_from_elsewhere_and_goes_on(kos_retry, events):
    running = a_running_session(kos_retry, events)
    assert kos_retry("sessions", "stop", "s1").code == 0
    assert (running.wait(45), kos_retry.end()["status"]) == (128 + signal.SIGTERM, "cancelled")
    resumed = kos_retry("sessions", "resume", "s1", "--", "sh", "-c", "echo $KOS_RETRY_ATTEMPT")
    assert (resumed.code, resumed.stdout, numbers(kos_retry)) == (0, b"1\n", [])


def test_running_session_is_not_resumed(kos_retry, events):
    a_running_session(kos_retry, events)
    resumed = kos_retry("sessions", "resume", "s1")
    assert (resumed.code, resumed.said) == (2, ["session 's1' is still running"])


def test_second_of_two_resumes_says_that_it_is_running(kos_retry, events, gate):
    kos_retry("run", "--session", "s1", *ON, "--max-attempts", "1", "--", "false")
    # The check before the first attempt holds the resume where nothing is recorded of it yet.
    hold = ("--gate", "echo here >events; read line <gate", "--max-attempts", "0")
    first = kos_retry.start("sessions", "resume", "s1", *hold, "--", "sh", "-c", "true")
    assert events.wait() == "here"
    second = kos_retry("sessions", "resume", "s1")
    gate.say("go")
    assert (second.code, second.said) == (2, ["session 's1' is still running"])
    assert first.wait(45) == 0


def test_resumed_session_that_was_killed_again_is_listed_as_running(kos_retry, events):
    kos_retry("run", "--session", "s1", *ON, "--max-attempts", "1", "--", "false")
    words = ("--max-attempts", "0", "--", "sh", "-c", "echo here >events; sleep 60")
    again = kos_retry.start("sessions", "resume", "s1", *words)
    events.wait()
    while kos_retry.journal()[-1]["type"] != "resume":
        select.select([], [], [], 0.01)
    again.kill()
    again.wait(45)
    assert kos_retry("sessions", "show", "s1", "--format", "json").json["status"] == "running"
    assert kos_retry("sessions", "resume", "s1", "--max-attempts", "0", "--", "true").code == 0


def test_session_that_passed_is_not_resumed(kos_retry):
    kos_retry("run", "--session", "s1", "--", "true")
    resumed = kos_retry("sessions", "resume", "s1")
    assert (resumed.code, resumed.said) == (2, ["session 's1' has passed; there is nothing to go on with"])


@pytest.mark.parametrize("command", ["resume", "stop"])
def test_unknown_session_is_refused(kos_retry, command):
    refused = kos_retry("sessions", command, "nope")
    assert (refused.code, len(refused.said)) == (2, 1)
    assert not (kos_retry.state / "sessions" / "nope").exists()


def test_session_that_has_ended_is_not_stopped(kos_retry):
    kos_retry("run", "--session", "s1", "--", "true")
    assert kos_retry("sessions", "stop", "s1").said == ["session 's1' is not running"]


SECRET = "hunter2-and-more"
IN_A_SECRET = {"API_TOKEN": SECRET}


@pytest.mark.parametrize(
    ("words", "named"),
    {
        "command": (("--", "sh", "-c", f"exit 1 # {SECRET}"), "say it after --"),
        "option": (("--verify", f"test {SECRET} = x", "--", "false"), "give --verify again"),
        "control-character": (("--", "sh", "-c", "exit 1 # \x1b[1m"), "say it after --"),
    }.values(),
    ids=("command", "option", "control-character"),
)
def test_what_was_not_recorded_whole_is_asked_for(kos_retry, words, named):
    kos_retry("run", "--session", "s1", *ON, "--max-attempts", "1", *words, environment=IN_A_SECRET)
    assert SECRET not in (kos_retry.directory("s1") / "journal.jsonl").read_text()
    resumed = kos_retry("sessions", "resume", "s1", "--max-attempts", "0", environment=IN_A_SECRET)
    assert (resumed.code, len(resumed.said)) == (2, 1)
    assert resumed.said[0].endswith(named)


def test_session_whose_directory_is_gone_is_refused(kos_retry):
    place = kos_retry.home / "place"
    place.mkdir()
    kos_retry("run", "--session", "s1", *ON, "--max-attempts", "1", "--", "false", cwd=place)
    place.rmdir()
    resumed = kos_retry("sessions", "resume", "s1", "--max-attempts", "0")
    assert (resumed.code, resumed.said) == (2, [f"session 's1' was begun in {place}: No such file or directory"])


def test_state_directory_is_read_from_where_the_resume_was_asked_for(kos_retry):
    (kos_retry.home / "a").mkdir()
    words = ("--session", "s1", "--state-dir", "../mine", *ON, "--max-attempts", "1", "--", "false")
    kos_retry("run", *words, cwd=kos_retry.home / "a")
    kos_retry("sessions", "resume", "s1", "--state-dir", "mine", "--max-attempts", "0", "--", "true")
    path = kos_retry.home / "mine" / "sessions" / "s1" / "journal.jsonl"
    assert json.loads(path.read_text().splitlines()[-1])["type"] == "end"
    assert json.loads(path.read_text().splitlines()[-1])["status"] == "flaky"


def test_journal_of_an_older_version_is_resumed(kos_retry):
    kos_retry("run", "--session", "s1", *ON, "--max-attempts", "1", "--", "sh", "-c", PASS_AT_LAST)
    path = kos_retry.directory("s1") / "journal.jsonl"
    older = kos_retry.journal()[:-1]
    for name in ("options", "pid", "exact"):
        del older[0][name]
    lines = [json.dumps(record) for record in (older[0], {"type": "of-the-future", "x": 1}, *older[1:])]
    path.write_text("\n".join([*lines, '{"v": 1, "type": "atte']))
    assert kos_retry("sessions", "resume", "s1", *ON, "--max-attempts", "0").code == 0
    report = kos_retry("sessions", "show", "s1", "--format", "json")
    assert [envelope["attempt"] for envelope in report.json["history"]] == [1, 2, 3]


def test_dry_run_of_a_resume_starts_nothing(kos_retry):
    kos_retry("run", "--session", "s1", *ON, "--max-attempts", "1", "--", "sh", "-c", PASS_AT_LAST)
    assert kos_retry("sessions", "resume", "s1", "--max-attempts", "0", "--dry-run").code == 0
    assert (kos_retry.home / "made").read_text().split() == ["1"]


# What the agent's test runner says.
SAID = """=========== short test summary info ===========
FAILED test_total.py::test_rate - KeyError: 'rate'
=========== 1 failed, 3 passed in 0.02s ===========
"""
# An agent that tells what it costs, in our own format, and fails or waits as it is told to.
AGENT = """
import json, os, sys, time
n = os.environ["KOS_RETRY_ATTEMPT"]
open("told" + n, "a").write(os.environ.get("KOS_RETRY_GUIDANCE", "") + "\\n---\\n")
def say(**event):
    print(json.dumps(event), flush=True)
say(tool="edit", input={"path": "total.py", "text": "try " + n}, ok=True, result="saved")
say(tool="shell", input={"command": "check"}, ok=False, result=SAID)
if os.path.exists("wait"):
    open("events", "w").write("here\\n")
    time.sleep(60)
say(kind="finish", ok=False, stop_reason="max_turns", usage={"input_tokens": 70, "output_tokens": 30, "cost_usd": 0.2})
sys.exit(1)
"""
TOLD = (*ON, "--profile", "agent", "--transcript", "generic", "--session", "s1")


@pytest.fixture
def agent(kos_retry):
    (kos_retry.home / "agent.py").write_text(f"SAID = {SAID!r}\n{AGENT}")
    return ("--", "python3", "agent.py")


def killed_in_attempt(kos_retry, events, *words):
    """Go on with, or begin, the session with an agent that waits, and kill kos-retry in the middle of its attempt."""
    (kos_retry.home / "wait").touch()
    running = kos_retry.start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert events.wait() == "here"
    running.kill()
    running.wait(45)
    (kos_retry.home / "wait").unlink()


def test_agent_killed_in_the_middle_goes_on_with_the_same_guidance_and_what_was_spent(kos_retry, agent, events):
    kos_retry("run", *TOLD, "--max-attempts", "1", *agent)
    killed_in_attempt(kos_retry, events, "sessions", "resume", "s1", "--max-attempts", "0")
    resumed = kos_retry("sessions", "resume", "s1", "--max-attempts", "0", "--max-cost-usd", "0.5")
    first, again = (kos_retry.home / "told2").read_text().split("\n---\n")[:2]
    assert "test_total.py::test_rate" in first
    assert "`edit {" in first
    # Only what is left of the budgets differs.
    assert _without_budget(again) == _without_budget(first)
    assert "- Left: 0.30 USD." in again
    assert (resumed.code, kos_retry.end()["stop_reason"], numbers(kos_retry)) == (1, "cost_budget", [1, 2])
    assert kos_retry.end()["spent"] == {"cost_usd": 0.4, "tokens": 200}
    assert resumed.said[-1] == "spent by 3 attempts: 0.40 USD, 200 tokens; what attempt 2 (cut off) cost is not known"


def test_time_until_the_kill_counts_however_often_it_happens(kos_retry, agent, events):
    """Nothing is recorded in the middle of an attempt: what ends the command then says when that was."""
    fell = kos_retry.directory("s1") / "killed"
    killed_in_attempt(kos_retry, events, "run", *TOLD, *agent)
    add_an_hour(fell)
    killed_in_attempt(kos_retry, events, "sessions", "resume", "s1")
    add_an_hour(fell)
    refused = kos_retry("sessions", "resume", "s1", "--deadline", "119m")
    assert (refused.code, kos_retry.end()["stop_reason"]) == (125, "deadline")
    assert (kos_retry.home / "told1").read_text().count("---") == 2
    allowed = kos_retry("sessions", "resume", "s1", "--deadline", "3h", "--max-attempts", "1")
    assert (allowed.code, kos_retry.end()["stop_reason"]) == (1, "max_attempts")


def add_an_hour(fell):
    """Let a run have been killed an hour later."""
    until = time.monotonic() + 45
    while not (fell.exists() and fell.stat().st_size):
        assert time.monotonic() < until
        select.select([], [], [], 0.01)
    at = fell.stat().st_mtime + 3600
    fell.write_bytes(b"")
    os.utime(fell, (at, at))


def _without_budget(guidance: str) -> list[str]:
    return [line for line in guidance.splitlines() if not line.startswith("- Left: ")]


SPENT = {"cost": ("--max-cost-usd", "0.2"), "tokens": ("--max-tokens", "100"), "attempts": ("--max-attempts", "1")}


@pytest.mark.parametrize("budget", SPENT.values(), ids=SPENT)
def test_what_was_spent_before_the_kill_starts_nothing_more(kos_retry, agent, events, budget):
    kos_retry("run", *TOLD, "--max-attempts", "1", *agent)
    killed_in_attempt(kos_retry, events, "sessions", "resume", "s1", "--max-attempts", "0")
    made = (kos_retry.home / "told2").read_text()
    kos_retry("sessions", "resume", "s1", "--max-attempts", "0", *budget)
    assert (kos_retry.home / "told2").read_text() == made
    assert kos_retry.end()["attempts"] == 1


def test_cost_of_an_attempt_that_was_interrupted_counts_after_the_resume(kos_retry, agent, events):
    """The agent tells its costs as it goes; the attempt itself is made anew."""
    line = agent_that_spends_and_waits(kos_retry)
    running = kos_retry.start("run", *TOLD, *line)
    assert events.wait() == "here"
    running.send_signal(signal.SIGTERM)
    running.wait(45)
    refused = kos_retry("sessions", "resume", "s1", "--max-cost-usd", "0.2")
    assert (refused.code, kos_retry.end()["stop_reason"]) == (125, "cost_budget")
    assert "spent by 1 attempt: 0.20 USD, 100 tokens" in refused.said
    assert (kos_retry.home / "told1").read_text().count("---") == 1


def agent_that_spends_and_waits(kos_retry):
    usage = {"input_tokens": 70, "output_tokens": 30, "cost_usd": 0.2}
    spend = json.dumps({"tool": "edit", "input": {}, "ok": True, "usage": usage})
    line = f"echo --- >>told1; echo '{spend}'; echo here >events; sleep 60"
    return ("--", "sh", "-c", line)


# Two recovery steps; the command fails the same way each time, and waits in one of its attempts until it is told to go on.
LADDER = (*ON, "--max-attempts", "9", "--pivot", "echo a >>ran", "--pivot", "echo b >>ran")
WAITS = """echo $KOS_RETRY_ATTEMPT >>made
[ $KOS_RETRY_ATTEMPT = %d ] && [ ! -e waited ] && { touch waited; echo here >events; sleep 321; }
printf %%s "$KOS_RETRY_GUIDANCE" >told$KOS_RETRY_ATTEMPT
echo 'error: no plan'; exit 3"""


def lines(kos_retry, name):
    path = kos_retry.home / name
    return path.read_text().split() if path.exists() else []


def ended_while_waiting(kos_retry, events, number, *words):
    """Start a run, end it once something waits, and wait until it is gone; signal 9 leaves it no time to say so."""
    running = kos_retry.start("run", "--session", "s1", *words)
    events.wait()
    running.send_signal(number)
    running.wait(45)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["stopped", "killed"])
@pytest.mark.parametrize("attempt", [2, 3, 4])
def test_ladder_goes_on_at_its_step(kos_retry, events, attempt, number):
    ended_while_waiting(kos_retry, events, number, *LADDER, "--", "sh", "-c", WAITS % attempt)
    resumed = kos_retry("sessions", "resume", "s1")
    assert (resumed.code, lines(kos_retry, "ran")) == (3, ["a", "b"])
    # The attempt that was cut short is made twice, the end is that of a run that was never disturbed.
    assert lines(kos_retry, "made") == sorted([*"1234", str(attempt)])
    assert (numbers(kos_retry), kos_retry.end()["attempts"]) == ([1, 2, 3, 4], 4)


def test_attempt_that_is_made_anew_is_told_which_step_ran_before_it(kos_retry, events):
    words = (*LADDER, "--guidance", "env", "--", "sh", "-c", WAITS % 3)
    ended_while_waiting(kos_retry, events, signal.SIGKILL, *words)
    kos_retry("sessions", "resume", "s1")
    assert "A recovery step ran before this attempt: `echo a >>ran`" in (kos_retry.home / "told3").read_text()


def test_step_that_was_cut_short_is_run_anew_and_one_that_failed_is_not(kos_retry, events):
    waits = "echo b >>ran; [ -e waited ] || { touch waited; echo here >events; sleep 321; }"
    pivots = ("--pivot", "echo a >>ran; exit 1", "--pivot", waits)
    words = (*ON, "--max-attempts", "9", *pivots, "--", "sh", "-c", "echo 'error: no plan'; exit 3")
    ended_while_waiting(kos_retry, events, signal.SIGKILL, *words)
    kos_retry("sessions", "resume", "s1")
    assert (lines(kos_retry, "ran"), numbers(kos_retry)) == (["a", "b", "b"], [1, 2, 3])


def test_pass_after_a_step_of_an_earlier_part_is_a_repair(kos_retry, events):
    line = """case $KOS_RETRY_ATTEMPT in 1 | 2) echo 'error: no plan'; exit 3 ;; 3) echo 'error: no way'; exit 3 ;; esac
[ -e waited ] || { touch waited; echo here >events; sleep 321; }"""
    words = (*ON, "--max-attempts", "9", "--pivot", "true", "--", "sh", "-c", line)
    ended_while_waiting(kos_retry, events, signal.SIGKILL, *words)
    assert (kos_retry("sessions", "resume", "s1").code, kos_retry.end()["status"]) == (0, "repaired")


def test_step_with_a_secret_in_it_is_known_again(kos_retry, events):
    pivots = ("--pivot", f"echo a >>ran # {SECRET}", "--pivot", "echo b >>ran")
    words = (*ON, "--max-attempts", "9", *pivots)
    running = kos_retry.start("run", "--session", "s1", *words, "--", "sh", "-c", WAITS % 3, environment=IN_A_SECRET)
    events.wait()
    running.kill()
    running.wait(45)
    kos_retry("sessions", "resume", "s1", *pivots, environment=IN_A_SECRET)
    assert lines(kos_retry, "ran") == ["a", "b"]


def test_pause_before_a_resume_that_starts_nothing_is_no_time_spent(kos_retry):
    kos_retry("run", "--session", "s1", *ON, "--max-attempts", "2", "--", "sh", "-c", PASS_AT_LAST)
    path = kos_retry.directory("s1") / "journal.jsonl"
    then = "2026-01-01T00:00:00.000Z"
    path.write_text("".join(json.dumps(record | {"time": then}) + "\n" for record in kos_retry.journal()))
    assert kos_retry("sessions", "resume", "s1").code == 3
    resumed = kos_retry("sessions", "resume", "s1", "--max-attempts", "0", "--deadline", "1h")
    assert (resumed.code, kos_retry.end()["status"]) == (0, "flaky")


def test_help_that_was_given_is_not_asked_for_again(kos_retry, events):
    supervisor = """echo asked >>ran; echo '{"verdict": "retry", "guidance": "mind the gap"}'"""
    words = (
        *ON,
        "--max-attempts",
        "9",
        "--max-stagnant-attempts",
        "1",
        "--guidance",
        "env",
        "--on-escalate",
        supervisor,
    )
    ended_while_waiting(kos_retry, events, signal.SIGKILL, *words, "--", "sh", "-c", WAITS % 3)
    resumed = kos_retry("sessions", "resume", "s1")
    assert (resumed.code, lines(kos_retry, "ran"), numbers(kos_retry)) == (3, ["asked"], [1, 2, 3])
    assert "mind the gap" in (kos_retry.home / "told3").read_text()
