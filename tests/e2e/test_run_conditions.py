"""When another attempt is made and when it starts: conditions, the deadline, waits that were asked for, profiles, nesting."""

from __future__ import annotations

import signal

import pytest

AT_ONCE = ("--delay", "0s")
LONG_WAIT = ("--delay", "600s", "--max-delay", "600s", "--jitter", "none")
KILLED, MISSING = "kill -KILL $$", "exec python3 -c 'import no_such_module'"
# A condition, a line that fails, and the number of attempts of three: two where the condition does not speak of it.
RETRIED = {
    "code": ("exit:7", "exit 7", 3),
    "another code": ("exit:1-6,8", "exit 7", 2),
    "signal by name": ("signal:KILL", KILLED, 3),
    "signal is no code": ("exit:137", KILLED, 2),
    "output": ("output:b.sy$", "echo 'so busy' >&2; exit 7", 3),
    "cause": ("cause:deterministic", MISSING, 3),
}
STOPPED = {
    "code": ("exit:7", "exit 7", 1),
    "output": ("output:fatal", "echo fatal; exit 7", 1),
    "cause": ("cause:transient", "echo ECONNRESET; exit 7", 1),
}


@pytest.mark.parametrize(("condition", "line", "attempts"), RETRIED.values(), ids=RETRIED.keys())
def test_condition_to_retry_on_is_the_last_word(kos_retry, condition, line, attempts):
    kos_retry("run", *AT_ONCE, "--retry-on", condition, "--", "sh", "-c", line)
    assert kos_retry.end()["attempts"] == attempts


@pytest.mark.parametrize(("condition", "line", "attempts"), STOPPED.values(), ids=STOPPED.keys())
def test_condition_to_stop_on_ends_the_run(kos_retry, condition, line, attempts):
    kos_retry("run", *AT_ONCE, "--stop-on", condition, "--", "sh", "-c", line)
    assert kos_retry.end()["attempts"] == attempts


@pytest.mark.parametrize(("option", "attempts"), [("--retry-on", 2), ("--stop-on", 1)])
def test_time_limit_is_a_condition(kos_retry, option, attempts):
    words = (*AT_ONCE, "--max-attempts", "2", "--timeout", "0.3s", option, "timeout")
    done = kos_retry("run", *words, "--", "sleep", "321")
    assert (done.code, kos_retry.end()["attempts"]) == (124, attempts)


@pytest.mark.parametrize("rule", ["exit:256", "output:(", "sometimes"])
def test_condition_that_is_none_starts_nothing(kos_retry, rule):
    done = kos_retry("run", "--retry-on", rule, "--", "echo", "started")
    assert (done.code, done.stdout, len(done.said)) == (125, b"", 1)


def test_wait_that_would_cross_the_deadline_is_not_begun(kos_retry):
    words = ("--deadline", "60s", *LONG_WAIT, "--retry-on", "exit:1")
    done = kos_retry("run", *words, "--", "false")
    assert (done.code, kos_retry.end()["stop_reason"], kos_retry.end()["attempts"]) == (1, "deadline", 1)


def test_attempts_before_the_deadline_are_made(kos_retry):
    words = ("--deadline", "3s", "--delay", "0.5s", "--backoff", "1", "--jitter", "none", "--max-attempts", "0")
    done = kos_retry("run", *words, "--retry-on", "exit:1", "--", "false")
    assert (done.code, kos_retry.end()["stop_reason"], kos_retry.end()["attempts"] > 1) == (1, "deadline", True)


def test_command_that_runs_at_the_deadline_is_ended(kos_retry, lifeline):
    words = ("run", "--deadline", "1s", *AT_ONCE, "--", "sh", "-c", "sleep 321 & sleep 321")
    running = kos_retry.start(*words, pass_fds=[lifeline.fd])
    lifeline.let_go()
    said = running.stderr.read().decode()
    ended = (running.wait(45), lifeline.is_over(), kos_retry.end()["stop_reason"], "deadline" in said.splitlines()[0])
    assert ended == (124, True, "deadline", True)


def test_verify_command_that_runs_at_the_deadline_is_ended(kos_retry):
    words = ("--deadline", "1s", "--verify", "sleep 321")
    done = kos_retry("run", *words, "--", "true")
    assert (done.code, kos_retry.end()["stop_reason"], kos_retry.processes()) == (1, "deadline", [])


# What is said, the longest wait, and the wait that follows.
ASKED = {
    "header": ("HTTP/1.1 429 Too Many Requests\\nRetry-After: 97", "200s", "1m37s"),
    "longer than the longest": ("HTTP 503, retry after 90 seconds", "41s", "41s"),
}


@pytest.mark.parametrize(("said", "longest", "wait"), ASKED.values(), ids=ASKED.keys())
def test_wait_that_the_output_asks_for_is_kept(kos_retry, said, longest, wait):
    words = ("--delay", "1s", "--max-delay", longest)
    running = kos_retry.start("run", *words, "--", "sh", "-c", 'printf "$0\\n" >&2; exit 1', said)
    line = next(line for line in running.stderr if b"trying again in" in line).decode()
    running.terminate()
    running.wait(45)
    assert f"trying again in {wait}: " in line


def first_wait(kos_retry, *options, line="exit 7"):
    """Return what is said of the wait after the first failure."""
    running = kos_retry.start("run", *options, "--", "sh", "-c", line)
    said = next(line for line in running.stderr if b"trying again in" in line).decode()
    running.send_signal(signal.SIGTERM)
    running.wait(45)
    return said.partition("trying again in ")[2].partition(":")[0]


def test_profile_wait_polls_at_a_fixed_pace(kos_retry):
    assert first_wait(kos_retry, "--profile", "wait") == "2s"


def test_profile_wait_goes_on_whatever_fails_until_it_passes(kos_retry):
    line = '[ "$KOS_RETRY_ATTEMPT" = 5 ] || { echo "always the same" >&2; exit 1; }'
    assert kos_retry("run", "--profile", "wait", *AT_ONCE, "--", "sh", "-c", line).code == 0


def test_profile_wait_ends_where_the_command_cannot_be_started(kos_retry):
    assert kos_retry("run", "--profile", "wait", "--", "no-such-command-anywhere").code == 127


def test_profile_agent_has_no_limit_and_hands_guidance_on(kos_retry):
    line = 'echo "$KOS_RETRY_MAX_ATTEMPTS ${KOS_RETRY_GUIDANCE+guided}"; [ "$KOS_RETRY_ATTEMPT" = 2 ]'
    done = kos_retry("run", "--profile", "agent", *AT_ONCE, "--", "sh", "-c", line)
    assert (done.stdout, kos_retry.end()["status"]) == (b"0 \n0 guided\n", "repaired")


def test_profile_that_is_none_starts_nothing(kos_retry):
    done = kos_retry("run", "--profile", "sadness", "--", "echo", "started")
    assert (done.code, done.stdout, "ci, wait" in done.said[0] or "agent, ci, wait" in done.said[0]) == (125, b"", True)


# Options of an inner run, and how often its command runs: the outer one makes one attempt.
NESTED = {
    "default retries": ((), 1),
    "kept": (("--nested", "keep"), 2),
    "dropped": (("--nested", "drop", "--max-attempts", "2"), 1),
}


@pytest.mark.parametrize(("options", "times"), NESTED.values(), ids=NESTED.keys())
def test_run_inside_a_run_leaves_its_default_retries_to_it(kos_retry, options, times):
    inner = (kos_retry.path, "run", *AT_ONCE, *options, "--", "sh", "-c", "echo ran; exit 7")
    done = kos_retry("run", "--max-attempts", "1", "--", *inner)
    assert (done.code, done.stdout) == (7, b"ran\n" * times)


def test_profile_wait_of_an_inner_run_waits(kos_retry):
    inner = (kos_retry.path, "run", "--profile", "wait", *AT_ONCE, "--", "sh", "-c", '[ "$KOS_RETRY_ATTEMPT" = 3 ]')
    assert kos_retry("run", "--max-attempts", "1", "--", *inner).code == 0


def test_dry_run_prints_the_plan_and_runs_nothing(kos_retry, tmp_path):
    options = ("--max-attempts", "4", "--timeout", "90s", "--delay", "2s", "--jitter", "none", "--seed", "1")
    done = kos_retry("run", "--dry-run", *options, "--", "touch", "a b")
    assert (done.code, done.stderr, (tmp_path / "a b").exists()) == (0, b"", False)
    assert done.stdout.decode().splitlines()[:5] == [
        "command: touch 'a b'",
        "plan: at most 4 attempts, each within 1m30s",
        "  wait before attempt 2: 2s",
        "  wait before attempt 3: 4s",
        "  wait before attempt 4: 8s",
    ]


def test_dry_run_of_a_wrong_call_gives_125(kos_retry):
    assert kos_retry("run", "--dry-run", "--delay", "soon", "--", "true").code == 125
