"""Input that every attempt gets, and output that is shown only once it is known which attempt decides."""

from __future__ import annotations

import hashlib
import random
import select
import signal
import subprocess

import pytest

AT_ONCE = ("--delay", "0s")
EVERY_TIME = (*AT_ONCE, "--retry-on", "exit:1-255")
PASS_THIRD = '[ "$KOS_RETRY_ATTEMPT" = 3 ]'


def test_replayed_input_reaches_every_attempt(kos_retry):
    done = kos_retry("run", "--replay-stdin", *EVERY_TIME, "--", "sh", "-c", f"cat; {PASS_THIRD}", stdin=b"hi\n")
    assert (done.code, done.stdout) == (0, b"hi\n" * 3)


def test_large_input_is_replayed_byte_for_byte(kos_retry):
    given = random.Random(3).randbytes(8 * 1024 * 1024)
    words = ("run", "--replay-stdin", *EVERY_TIME, "--", "sh", "-c", f"sha256sum; {PASS_THIRD}")
    done = kos_retry(*words, stdin=given)
    assert (done.code, {line.split()[0].decode() for line in done.stdout.splitlines()}) == (
        0,
        {hashlib.sha256(given).hexdigest()},
    )


def test_attempt_that_reads_a_part_leaves_the_whole_to_the_next(kos_retry):
    words = ("run", "--replay-stdin", *EVERY_TIME, "--", "sh", "-c", f"head -n 1; {PASS_THIRD}")
    assert kos_retry(*words, stdin=b"one\ntwo\n").stdout == b"one\n" * 3


def test_without_replay_input_is_read_once(kos_retry):
    done = kos_retry("run", *EVERY_TIME, "--", "sh", "-c", f"cat; {PASS_THIRD}", stdin=b"hi\n")
    assert done.stdout == b"hi\n"


def test_guidance_follows_the_replayed_input(kos_retry):
    options = ("--replay-stdin", "--guidance", "stdin", *EVERY_TIME, "--max-attempts", "2")
    done = kos_retry("run", *options, "--", "sh", "-c", "cat; echo; exit 1", stdin=b"the task|")
    guidance = kos_retry.attempts()[0]["decision"]["guidance"]
    assert done.stdout.decode() == f"the task|\nthe task|{guidance}\n"


def test_replay_of_a_closed_input_is_no_input(kos_retry):
    line = 'exec "$0" run --replay-stdin -- sh -c "exit 7" <&-'
    assert kos_retry.finish(["sh", "-c", line, kos_retry.path]).code == 7


def test_signal_while_input_is_being_collected_ends_the_run(kos_retry):
    running = kos_retry.start("run", "--replay-stdin", "--", "cat", stdin=subprocess.PIPE)
    # The pipe has room for less than this, so that whoever writes it all has been read.
    running.stdin.write(b"x" * 1_000_000)
    running.send_signal(signal.SIGTERM)
    assert running.wait(45) in (143, -signal.SIGTERM)


SAY_IN_TURNS = 'n=$KOS_RETRY_ATTEMPT; echo "out $n"; echo "err $n" >&2; echo "more $n"; '


@pytest.mark.parametrize(("then", "code", "deciding"), [(PASS_THIRD, 0, 3), ("exit $((n + 3))", 6, 3)])
def test_held_output_is_that_of_the_deciding_attempt(kos_retry, then, code, deciding):
    done = kos_retry("run", "--hold-output", *EVERY_TIME, "--", "sh", "-c", SAY_IN_TURNS + then)
    own = [line for line in done.stderr.decode().splitlines() if not line.startswith("kos-retry: ")]
    assert (done.code, done.stdout.decode(), own) == (
        code,
        f"out {deciding}\nmore {deciding}\n",
        [f"err {deciding}"],
    )


def test_held_output_of_both_streams_keeps_its_order(kos_retry):
    # Two pipes have no common order but that of time.
    line = "for i in 1 2; do echo out $i; sleep 0.4; echo err $i >&2; sleep 0.4; done"
    script = '"$0" run --hold-output -- sh -c "$1" 2>&1'
    done = kos_retry.finish(["sh", "-c", script, kos_retry.path, line])
    assert done.stdout.decode().split("\n")[:-1] == [f"{name} {i}" for i in (1, 2) for name in ("out", "err")]


def test_held_output_of_a_cancelled_attempt_is_shown(kos_retry, events):
    running = kos_retry.start("run", "--hold-output", "--", "sh", "-c", "echo begun; echo ready >events; sleep 321")
    events.wait()
    # Said before the event, but it may still be on its way through the pipe.
    running.send_signal(signal.SIGTERM)
    assert (running.stdout.read(), running.wait(45)) == (b"begun\n", 143)


def test_held_output_is_held(kos_retry, events, gate):
    running = kos_retry.start("run", "--hold-output", "--", "sh", "-c", "echo said; echo ready >events; read _ <gate")
    events.wait()
    early = select.select([running.stdout], [], [], 0.3)[0]
    gate.say("go on")
    assert (early, running.stdout.read()) == ([], b"said\n")


def test_held_output_of_any_size_is_complete(kos_retry):
    line = "head -c 20000000 /dev/zero; head -c 3000000 /dev/zero >&2"
    done = kos_retry("run", "--hold-output", "--", "sh", "-c", line)
    assert (len(done.stdout), len(done.stderr)) == (20_000_000, 3_000_000)


def test_held_output_to_a_reader_that_is_gone_ends_the_run(kos_retry):
    line = '"$0" run --hold-output -- sh -c "yes | head -n 1000000; exit 7" | true; exit ${PIPESTATUS[0]}'
    done = kos_retry.finish(["bash", "-c", line, kos_retry.path])
    assert (done.code in (7, 141), b"Traceback" in done.stderr) == (True, False)


def test_quiet_says_nothing_of_its_own(kos_retry):
    done = kos_retry("run", "--quiet", *EVERY_TIME, "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert done == (7, b"out\n" * 3, b"err\n" * 3)


def test_quiet_still_tells_what_is_wrong_with_kos_retry(kos_retry):
    done = kos_retry("run", "--quiet", "--report", "text:/dev/null/report", "--", "true")
    assert (done.code, len(done.said)) == (0, 1)


def test_verbose_says_more_of_a_failure(kos_retry):
    words = ("run", "--max-attempts", "1", "--", "sh", "-c", "echo HTTP 503 >&2; exit 7")
    plain, verbose = kos_retry(*words), kos_retry("run", "--verbose", *words[1:])
    signature = kos_retry.journal(max(p.name for p in (kos_retry.state / "sessions").iterdir()))[1]["envelope"][
        "signature"
    ]
    assert (signature in verbose.stderr.decode(), len(verbose.said) > len(plain.said)) == (True, True)
