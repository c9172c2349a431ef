"""What counts as success beside exit code 0: verify commands, and what the output must and must not contain."""

from __future__ import annotations

import json
import signal

import pytest

ONCE = ("--max-attempts", "1")
AT_ONCE = ("--delay", "0s")


def checked(kos_retry, *options, line="echo 'all is well'"):
    """Run a command that passes under some checks, and return how it ended and what failed."""
    path = kos_retry.home / "report.json"
    done = kos_retry("run", *ONCE, "--report", f"json:{path}", *options, "--", "sh", "-c", line)
    history = json.loads(path.read_text())["history"]
    return done, [name for envelope in history for name in envelope["failing_constraints"]]


# Checks, and the names of those that fail.
CHECKS = {
    "verify passes": (("--verify", "true"), []),
    "verify without a name": (("--verify", "exit 3"), ["exit 3"]),
    "every verify is tried": (("--verify", "a=false", "--verify", "b=true", "--verify", "c=false"), ["a", "c"]),
    "require is there": (("--require", "well=al+ is well"), []),
    "forbid is not there": (("--forbid", "alarm"), []),
    "one of each": (("--verify", "a=false", "--require", "b=xyz", "--forbid", "c=well"), ["a", "b", "c"]),
}


@pytest.mark.parametrize(("options", "failing"), CHECKS.values(), ids=CHECKS.keys())
def test_check_that_fails_is_named_in_the_envelope_and_gives_1(kos_retry, options, failing):
    done, named = checked(kos_retry, *options)
    assert (done.code, sorted(named), done.stdout) == (1 if failing else 0, failing, b"all is well\n")


@pytest.mark.parametrize("stream", ["", " >&2"])
def test_both_streams_are_searched(kos_retry, stream):
    done, named = checked(kos_retry, "--forbid", "fire", line=f"echo 'fire in the hall'{stream}")
    assert (done.code, named) == (1, ["fire"])


def test_checks_of_a_failure_are_not_asked(kos_retry, tmp_path):
    done, named = checked(kos_retry, "--verify", "touch asked", "--require", "xyz", line="exit 7")
    assert (done.code, named, (tmp_path / "asked").exists()) == (7, [], False)


def test_output_of_a_verify_command_is_never_on_standard_output(kos_retry):
    done, _ = checked(kos_retry, "--verify", "echo from verify; echo and more >&2; exit 3")
    assert done.stdout == b"all is well\n"
    assert done.stderr.startswith(b"from verify\nand more\n")


def test_last_words_of_a_verify_command_are_told(kos_retry):
    done, _ = checked(kos_retry, "--verify", "lamp=echo the lamp is out; exit 3")
    assert "lamp" in done.said[0]
    assert "the lamp is out" in done.said[0]


def test_verify_command_has_the_time_limit(kos_retry):
    done, named = checked(kos_retry, "--timeout", "0.5s", "--verify", "slow=sleep 321")
    assert (done.code, named, kos_retry.processes()) == (1, ["slow"], [])


def test_verify_command_reads_nothing(kos_retry):
    assert kos_retry("run", "--verify", "! read line", "--", "true", stdin=b"input\n").code == 0


def test_signal_during_a_verify_command_ends_it_and_the_run(kos_retry, events, tmp_path):
    verify = "trap 'echo asked >asked; exit 0' TERM; echo ready >events; sleep 321 & wait"
    running = kos_retry.start("run", *AT_ONCE, "--verify", verify, "--", "true")
    events.wait()
    running.send_signal(signal.SIGTERM)
    ended = (running.wait(45), (tmp_path / "asked").read_text(), kos_retry.end()["status"], kos_retry.end()["attempts"])
    assert ended == (143, "asked\n", "cancelled", 1)


def test_attempt_that_fails_a_check_is_tried_again(kos_retry):
    words = ("--verify", '[ "$KOS_RETRY_ATTEMPT" = 2 ]')
    done = kos_retry("run", *AT_ONCE, *words, "--", "echo", "made")
    assert (done.code, done.stdout, kos_retry.end()["status"]) == (0, b"made\n" * 2, "flaky")


CATASTROPHIC = "(a+)+$"
AS = "printf 'a%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36; echo b"


def test_condition_that_never_ends_is_given_up_and_named(kos_retry):
    options = (*ONCE, "--stop-on", f"output:{CATASTROPHIC}")
    done = kos_retry("run", *options, "--", "sh", "-c", f"{AS}; exit 7")
    assert (done.code, any(CATASTROPHIC in line for line in done.said)) == (7, True)


def test_expressions_beside_one_that_never_ends_are_tried(kos_retry):
    options = ("--forbid", f"slow={CATASTROPHIC}", "--forbid", "end=b$")
    done, named = checked(kos_retry, *options, line=AS)
    assert (done.code, sorted(named)) == (1, ["end", "slow"])
