"""Who has a say in a run: the gate, the recovery steps, whoever is asked for help, and the signal that the work is done."""

from __future__ import annotations

import json
import signal

import pytest

AT_ONCE = ("--delay", "0s")
FAILS = ("sh", "-c", "echo 'error: no plan' >&2; exit 3")


def starts(kos_retry):
    """Return how often the command of `counted` was started."""
    path = kos_retry.home / "started"
    return len(path.read_text().splitlines()) if path.exists() else 0


def counted(line):
    """Return a command that leaves a line in a file each time it is started."""
    return ("sh", "-c", f"echo x >>started; {line}")


# What a gate does, and how the run of a command that passes ends: its exit code, its stop reason, and how often it was started.
GATES = {
    "exit 0 is a yes": ("true", (0, None, 1)),
    "allow": ("""echo '{"verdict": "allow"}'""", (0, None, 1)),
    "exit 1 is a no": ("exit 1", (125, "gate_denied", 0)),
    "not found": ("no-such-gate-here", (125, "gate_denied", 0)),
    "deny": ("""echo '{"verdict": "deny", "reason": "too late"}'""", (125, "gate_denied", 0)),
    "an answer that is no verdict": ("echo maybe", (125, "gate_denied", 0)),
    "an answer that is cut off": ("""printf '{"verdict": "al'""", (125, "gate_denied", 0)),
    "a yes to another attempt": ("""echo '{"verdict": "allow", "fingerprint": "0"}'""", (125, "verdict_void", 0)),
    "killed": ("kill -KILL $$", (125, "gate_denied", 0)),
}


@pytest.mark.parametrize(("gate", "expected"), GATES.values(), ids=GATES)
def test_gate_decides_whether_an_attempt_starts(kos_retry, gate, expected):
    done = kos_retry("run", "--gate", gate, "--", *counted("exit 0"))
    reason = kos_retry.end()["stop_reason"] if kos_retry.state.exists() else None
    assert expected == (done.code, reason, starts(kos_retry))


def test_yes_to_the_fingerprint_that_was_asked_about_holds(kos_retry):
    gate = """sed 's/.*"fingerprint": *"\\([0-9a-f]*\\)".*/{"verdict": "yes", "fingerprint": "\\1"}/'"""
    done = kos_retry("run", "--gate", gate, "--", "echo", "made")
    assert (0, b"made\n") == (done.code, done.stdout)


def test_gate_reads_the_proposal(kos_retry, tmp_path):
    kos_retry("run", "--session", "s1", "--gate", "cat >asked", "--", "echo", "made")
    asked = json.loads((tmp_path / "asked").read_text())
    assert (1, "s1", ["echo", "made"], None) == tuple(asked[n] for n in ("attempt", "session", "argv", "decision"))


@pytest.mark.parametrize("delivery", ["none", "env", "file", "append"])
def test_gate_reads_what_the_next_attempt_is_told(kos_retry, tmp_path, delivery):
    supervisor = """echo '{"verdict": "retry", "guidance": "mind the gap"}'"""
    options = (
        "--max-attempts",
        "9",
        "--max-stagnant-attempts",
        "1",
        "--guidance",
        delivery,
        "--on-escalate",
        supervisor,
    )
    kos_retry("run", *AT_ONCE, *options, "--gate", "cat >asked", "--", *FAILS)
    asked = json.loads((tmp_path / "asked").read_text())
    assert (3, delivery != "none") == (asked["attempt"], "mind the gap" in asked["guidance"])


def test_gate_does_not_read_a_secret(kos_retry, tmp_path):
    secret = {"API_TOKEN": "hunter2-hunter2"}
    kos_retry("run", "--gate", "cat >asked", "--", "echo", "hunter2-hunter2", environment=secret)
    assert "hunter2" not in (tmp_path / "asked").read_text()


def test_what_a_gate_answers_is_not_on_our_streams_and_what_it_says_is_on_standard_error(kos_retry):
    gate = """echo looking >&2; echo '{"verdict": "yes"}'"""
    done = kos_retry("run", "--gate", gate, "--", "echo", "made")
    assert (b"made\n", b"looking\n") == (done.stdout, done.stderr)


def test_gate_that_says_no_later_keeps_the_last_exit_code(kos_retry):
    done = kos_retry("run", *AT_ONCE, "--gate", '[ "$KOS_RETRY_ATTEMPT" = 1 ]', "--", *FAILS)
    assert (3, "gate_denied", 1) == (done.code, kos_retry.end()["stop_reason"], kos_retry.end()["attempts"])
    assert "stopped after 1 attempt, 2 not tried: the gate said no (gate_denied)" in done.said


def test_refused_run_is_a_run_in_the_journal(kos_retry):
    kos_retry("run", "--gate", "false", "--", "true")
    assert ["begin", "end"] == [record["type"] for record in kos_retry.journal()]


def test_gate_that_hangs_is_ended_with_the_run(kos_retry):
    done = kos_retry("run", "--deadline", "0.5s", "--gate", "sleep 321", "--", *counted("exit 0"))
    assert (125, 0, []) == (done.code, starts(kos_retry), kos_retry.processes())
    assert "deadline" == kos_retry.end()["stop_reason"]
    assert ["the attempt was not started (deadline): the time was up before the gate had answered"] == done.said


def test_gate_that_has_no_time_to_answer_has_not_denied(kos_retry):
    gate = '[ "$KOS_RETRY_ATTEMPT" = 1 ] || sleep 321'
    done = kos_retry("run", *AT_ONCE, "--deadline", "3s", "--gate", gate, "--", *counted("exit 3"))
    assert (3, 1, "deadline") == (done.code, starts(kos_retry), kos_retry.end()["stop_reason"])
    assert "stopped after 1 attempt, 2 not tried: the time was up (deadline)" in done.said


def test_attempt_that_a_recovery_step_left_no_time_for_is_not_started(kos_retry):
    options = (*AT_ONCE, "--deadline", "3s", "--max-attempts", "9", "--pivot", "sleep 321", "--on-pivot", "retry")
    done = kos_retry("run", *options, "--", *counted("exit 3"))
    assert (3, 2, "deadline") == (done.code, starts(kos_retry), kos_retry.end()["stop_reason"])


# Options that run a command for a failing one to wait on, and how many attempts were made by then.
INTERRUPTED = {
    "gate": (("--gate", "{wait}"), 0),
    "recovery step": (("--pivot", "{wait}"), 2),
    "recovery step that could be retried without": (("--pivot", "{wait}", "--on-pivot", "retry"), 2),
    "supervisor": (("--on-escalate", "{wait}", "--on-pivot", "retry", "--max-stagnant-attempts", "1"), 2),
}


@pytest.mark.parametrize(("options", "attempts"), INTERRUPTED.values(), ids=INTERRUPTED)
def test_interrupt_ends_whoever_is_asked_and_the_run(kos_retry, events, options, attempts):
    waits = "echo ready >events; sleep 321 & wait"
    words = [word.format(wait=waits) for word in options]
    running = kos_retry.start("run", *AT_ONCE, "--max-attempts", "9", *words, "--", *counted("exit 3"))
    events.wait()
    running.send_signal(signal.SIGINT)
    code, end = running.wait(45), kos_retry.end()
    assert (130, "cancelled", attempts, attempts) == (code, end["status"], end["attempts"], starts(kos_retry))
    assert ("cancelled", []) == (end["stop_reason"], kos_retry.processes())


# Recovery steps, and what they leave in the file `ran`, with the status of a command that passes once `mended` is there.
LADDERS = {
    "one that mends": (["echo a >>ran; touch mended"], "a", "repaired"),
    "the second mends": (["echo a >>ran", "echo b >>ran; touch mended"], "ab", "repaired"),
    "one that fails makes way": (["echo a >>ran; exit 1", "echo b >>ran; touch mended"], "ab", "repaired"),
    "each is tried once": (["echo a >>ran"], "a", "failed"),
    "all fail": (["echo a >>ran; exit 1", "no-such-step-here"], "a", "failed"),
}


@pytest.mark.parametrize(("steps", "ran", "status"), LADDERS.values(), ids=LADDERS)
def test_recovery_steps_run_in_order_where_an_attempt_must_differ(kos_retry, tmp_path, steps, ran, status):
    pivots = [word for step in steps for word in ("--pivot", step)]
    kos_retry("run", *AT_ONCE, "--max-attempts", "9", *pivots, "--", "sh", "-c", "[ -e mended ] || exit 3")
    assert (ran, status) == ((tmp_path / "ran").read_text().replace("\n", ""), kos_retry.end()["status"])


def test_output_of_a_recovery_step_is_never_on_standard_output(kos_retry):
    done = kos_retry("run", *AT_ONCE, "--pivot", "echo cleaning", "--", *FAILS)
    assert (b"", True, 3) == (done.stdout, b"cleaning\n" in done.stderr, done.code)


def test_next_attempt_is_told_which_step_ran(kos_retry, tmp_path):
    line = "echo 'error: no plan'; printenv KOS_RETRY_GUIDANCE >told; exit 3"
    kos_retry("run", *AT_ONCE, "--guidance", "env", "--pivot", "true clean", "--", "sh", "-c", line)
    assert "A recovery step ran before this attempt: `true clean`" in (tmp_path / "told").read_text()


@pytest.mark.parametrize(("choice", "attempts"), [("stop", 2), ("retry", 3)])
def test_same_again_where_an_attempt_must_differ_is_a_choice(kos_retry, choice, attempts):
    kos_retry("run", *AT_ONCE, "--on-pivot", choice, "--", *FAILS)
    assert attempts == len(kos_retry.attempts())


# What a supervisor does, and how the run of a command that fails the same way each time ends: attempts and stop reason.
SUPERVISORS = {
    "halt": ("""echo '{"verdict": "halt"}'""", (2, "escalated")),
    "nothing": ("true", (2, "escalated")),
    "no verdict": ("echo well", (2, "escalated")),
    "fails": ("exit 4", (2, "escalated")),
    "retry in spite of a failure": ("""echo '{"verdict": "retry"}'; exit 4""", (2, "escalated")),
    "retry": ("""echo '{"verdict": "retry", "guidance": "look again"}'""", (3, "escalation_ignored")),
}
ESCALATES = ("--max-attempts", "9", "--max-stagnant-attempts", "1", "--guidance", "env")


@pytest.mark.parametrize(("supervisor", "expected"), SUPERVISORS.values(), ids=SUPERVISORS)
def test_whoever_is_asked_for_help_decides_whether_the_run_goes_on(kos_retry, supervisor, expected):
    done = kos_retry("run", *AT_ONCE, *ESCALATES, "--on-escalate", supervisor, "--", *FAILS)
    assert (3, b"", expected) == (done.code, done.stdout, (len(kos_retry.attempts()), kos_retry.end()["stop_reason"]))


def test_supervisor_that_never_answers_is_ended_with_the_run(kos_retry):
    options = (*AT_ONCE, *ESCALATES, "--deadline", "3s", "--on-escalate", "sleep 321")
    done = kos_retry("run", *options, "--", *FAILS)
    assert (3, "escalated", []) == (done.code, kos_retry.end()["stop_reason"], kos_retry.processes())


def test_supervisor_reads_the_decision(kos_retry, tmp_path):
    kos_retry("run", *AT_ONCE, *ESCALATES, "--on-escalate", "cat >asked", "--", *FAILS)
    asked = json.loads((tmp_path / "asked").read_text())
    assert (2, "escalate_to_supervisor") == (asked["attempt"], asked["decision"]["recommendation"])


def test_words_of_the_supervisor_reach_the_next_attempt(kos_retry, tmp_path):
    supervisor = """echo '{"verdict": "retry", "guidance": "mind the gap"}'"""
    line = "echo 'error: no plan'; printenv KOS_RETRY_GUIDANCE >told; exit 3"
    kos_retry("run", *AT_ONCE, *ESCALATES, "--on-escalate", supervisor, "--", "sh", "-c", line)
    assert "mind the gap" in (tmp_path / "told").read_text()


def test_help_is_called_for_where_nothing_makes_the_next_attempt_differ(kos_retry, tmp_path):
    supervisor = """touch mended; echo '{"verdict": "retry"}'"""
    done = kos_retry("run", *AT_ONCE, "--on-escalate", supervisor, "--", "sh", "-c", "[ -e mended ] || exit 3")
    assert 0 == done.code


@pytest.mark.parametrize("guidance", ["", "look again"])
def test_pass_after_help_is_a_repair_and_no_pass_on_retry(kos_retry, guidance):
    supervisor = f"""touch mended; echo '{{"verdict": "retry", "guidance": "{guidance}"}}'"""
    options = ("--on-escalate", supervisor, "--flaky-result", "fail")
    done = kos_retry("run", *AT_ONCE, *options, "--", "sh", "-c", "[ -e mended ] || exit 3")
    (seen,) = kos_retry("history", "export").rows
    assert (0, "repaired", True, True) == (done.code, kos_retry.end()["status"], seen["passed"], seen["changed"])
    assert b"" == kos_retry("history", "flaky").stdout


# What a command says in its first and its second attempt, and how its run under `--done` ends.
DONE = {
    "said at once": ("echo ALL DONE", (0, 1, "done_signal")),
    "said on standard error": ("echo ALL DONE >&2", (0, 1, "done_signal")),
    "said the second time": ('[ "$KOS_RETRY_ATTEMPT" = 1 ] || echo ALL DONE', (0, 2, "done_signal")),
    "said by a command that fails": ("echo ALL DONE; exit 5", (5, 2, "zero_delta")),
    "never said": ("echo hello", (1, 2, "zero_delta")),
}


@pytest.mark.parametrize(("line", "expected"), DONE.values(), ids=DONE)
def test_run_ends_when_the_work_is_said_to_be_done(kos_retry, line, expected):
    done = kos_retry("run", *AT_ONCE, "--done", "^ALL DONE$", "--", "sh", "-c", line)
    end = kos_retry.end()
    assert expected == (done.code, end["attempts"], end["stop_reason"])


@pytest.mark.parametrize(
    "words", [("--done", "("), ("--gate", ""), ("--max-cost-usd", "0"), ("--max-tokens", "-1"), ("--max-failures", "0")]
)
def test_value_that_cannot_be_meant_starts_nothing(kos_retry, words):
    done = kos_retry("run", *words, "--", *counted("exit 0"))
    assert (125, 0, True) == (done.code, starts(kos_retry), words[0] in done.stderr.decode())
