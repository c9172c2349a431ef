"""What a wrapper around any command has to get right, where no other file of this directory looks at it."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys

import pytest

ONCE = ("--max-attempts", "1")
AT_ONCE = ("--delay", "0s")
EVERY_TIME = ("--delay", "0s", "--retry-on", "exit:1-255")
MIB = 1024 * 1024
MUCH = 64 * MIB
# Loose: an interpreter with nothing loaded takes ten, with all that a failure needs about sixty.
PASSING_MIB, FAILING_MIB = 64, 110
PASS_THIRD = '[ "$KOS_RETRY_ATTEMPT" = 3 ]'


@pytest.fixture(scope="module")
def much(tmp_path_factory):
    """Return files of 64 MiB: random bytes, and one line."""
    directory = tmp_path_factory.mktemp("much")
    some = random.Random(2).randbytes(MIB)
    for name, part in (("binary", some), ("line", b"x" * MIB)):
        with (directory / name).open("wb") as file:
            for number in range(MUCH // MIB):
                file.write(part[number:] + part[:number])
    return directory


# What is said of a file, and on which streams.
FLOODS = {
    "random bytes": 'cat "$0/binary"',
    "one line": 'cat "$0/line"',
    "random bytes on stderr": 'cat "$0/binary" >&2',
    "both at once": 'cat "$0/binary" & cat "$0/line" >&2; wait',
    # Time enough to make everything ready for a failure.
    "both after a pause": 'sleep 1; cat "$0/binary" & cat "$0/line" >&2; wait',
    "short lines": "sleep 1; seq 8000000",
}


@pytest.mark.parametrize("line", FLOODS.values(), ids=FLOODS.keys())
def test_flood_passes_unchanged_in_bounded_memory(kos_retry, much, line):
    bare = kos_retry.measure("/bin/sh", "-c", line, str(much))
    wrapped = kos_retry.measure(kos_retry.path, "run", "--", "sh", "-c", line, str(much))
    assert (wrapped[:3], wrapped.peak_mib <= PASSING_MIB) == (bare[:3], True), wrapped.peak_mib


@pytest.mark.parametrize("name", ["binary", "line"])
def test_flood_of_a_failure_takes_bounded_memory_and_what_is_left_out_is_counted(kos_retry, much, name):
    line = 'cat "$0"; exit 7'
    done = kos_retry.measure(kos_retry.path, "run", *ONCE, "--", "sh", "-c", line, str(much / name))
    omitted = kos_retry.attempts()[0]["envelope"]["omitted"]["output_bytes"]
    assert (done.code, done.peak_mib <= FAILING_MIB) == (7, True), done.peak_mib
    assert MUCH - 8 * MIB < omitted < MUCH


def test_flood_of_short_lines_of_a_failure_takes_bounded_memory(kos_retry):
    line = "sleep 1; seq 8000000 & seq 8000000 >&2; wait; exit 7"
    done = kos_retry.measure(kos_retry.path, "run", *ONCE, "--", "sh", "-c", line)
    assert (done.code, done.peak_mib <= FAILING_MIB) == (7, True), done.peak_mib


def test_flood_on_standard_input_is_replayed_in_bounded_memory(kos_retry, much):
    with (much / "binary").open("rb") as flood:
        bare = kos_retry.measure("/bin/cat", stdin=flood)
    with (much / "binary").open("rb") as flood:
        wrapped = kos_retry.measure(kos_retry.path, "run", "--replay-stdin", "--", "cat", stdin=flood)
    assert (wrapped[:2], wrapped.peak_mib <= PASSING_MIB) == (bare[:2], True), wrapped.peak_mib


def test_flood_of_every_attempt_leaves_a_small_report(kos_retry, much, tmp_path):
    path = tmp_path / "report.json"
    line = (
        'echo "error: début"; head -c 6000000 "$0" | fold -w 1000; echo; echo "error: fin $KOS_RETRY_ATTEMPT"; exit 7'
    )
    words = ("run", *EVERY_TIME, "--report", f"json:{path}", "--", "sh", "-c", line, str(much / "line"))
    kos_retry.measure(kos_retry.path, *words)
    report = path.read_text(encoding="utf-8")
    told = [envelope["error_message"] for envelope in json.loads(report)["history"]]
    assert (len(report) < MIB, ["début" in text and "fin" in text for text in told]) == (True, [True] * 3)


def test_flood_of_short_lines_is_read_in_time(kos_retry):
    done = kos_retry("run", *ONCE, "--", "sh", "-c", "yes | head -n 2000000 >&2; exit 7")
    said = [line for line in done.stderr.decode().splitlines() if line.startswith("kos-retry: ")]
    assert (done.code, len(said)) == (7, 2)


def test_failure_whose_child_holds_the_pipe_ends_a_pipeline(kos_retry):
    line = '"$0" run --max-attempts 1 -- sh -c "sleep 321 & echo hi; exit 3" | cat; exit ${PIPESTATUS[0]}'
    done = kos_retry.finish(["bash", "-c", line, kos_retry.path])
    assert (done.code, done.stdout) == (3, b"hi\n")


def test_command_that_had_to_be_killed_is_reported_as_such(kos_retry, tmp_path):
    path = tmp_path / "report"
    limits = ("--timeout", "0.3s", "--kill-after", "0.1s", "--report", f"text:{path}")
    line = 'trap "" TERM; while :; do sleep 0.1; done'
    done = kos_retry("run", *ONCE, *limits, "--", "sh", "-c", line)
    assert "SIGKILL" in done.stderr.decode() + path.read_text()


@pytest.mark.parametrize("code", [1, 75])
def test_exit_code_of_the_last_attempt_survives_exhaustion(kos_retry, code):
    done = kos_retry("run", *EVERY_TIME, "--max-attempts", "2", "--", "sh", "-c", f"exit {code}")
    assert (done.code, kos_retry.end()["attempts"]) == (code, 2)


def test_no_wait_follows_the_last_attempt(kos_retry):
    waits = ("--delay", "600s", "--max-delay", "600s", "--jitter", "none")
    assert kos_retry("run", *ONCE, *waits, "--", "false").code == 1


def test_options_of_the_command_are_its_own(kos_retry):
    assert kos_retry("run", "--", "echo", "--help", "--version").stdout == b"--help --version\n"


@pytest.mark.parametrize("name", ["TERM", "INT"])
def test_report_of_a_run_that_was_told_to_stop_is_complete(kos_retry, events, tmp_path, name):
    path = tmp_path / "report.json"
    line = "echo ready >events; sleep 321"
    running = kos_retry.start("run", "--report", f"json:{path}", "--", "sh", "-c", line)
    events.wait()
    running.send_signal(getattr(signal, f"SIG{name}"))
    code = running.wait(45)
    report = json.loads(path.read_text())
    told = (report["status"], report["exit_code"], report["attempts"], report["stop_reason"], len(report["history"]))
    assert told == ("cancelled", code, 1, "cancelled", 1)


COLOURS = {"FORCE_COLOR": "3", "CLICOLOR_FORCE": "1", "NO_COLOR": "", "TERM": "xterm-256color", "CI": "yes"}


def test_what_speaks_of_colours_reaches_the_command_unchanged(kos_retry):
    lines = kos_retry("run", "--", "env", environment=COLOURS).stdout.decode().splitlines()
    assert {line for line in lines if line.split("=")[0] in COLOURS} == {f"{k}={v}" for k, v in COLOURS.items()}


@pytest.mark.parametrize(("result", "code"), [("pass", 0), ("fail", 4)])
def test_every_attempt_knows_its_number_and_a_late_pass_is_a_flake(kos_retry, result, code):
    line = f"echo $KOS_RETRY_ATTEMPT; {PASS_THIRD} || exit $((KOS_RETRY_ATTEMPT + 3))"
    done = kos_retry("run", *EVERY_TIME, "--flaky-result", result, "--", "sh", "-c", line)
    assert (done.code, done.stdout, kos_retry.end()["status"]) == (code, b"1\n2\n3\n", "flaky")


# What no retry mends: what says it, and how it ends.
LASTING = {
    "missing module": f'exec {sys.executable} -c "import no_such_module"',
    "permission": "echo \"Error: EACCES: permission denied, open '/var/lamp'\" >&2; exit 1",
}
# What nobody knows to be lasting until it is there again.
REPEATING = {
    "compile error": ("main.c:3:5: error: expected ';' before '}' token", 1),
}
PASSING_BY = {
    "connection reset": ("Error: read ECONNRESET", 1),
    "too many requests": ("HTTP/1.1 429 Too Many Requests", 1),
    "exit code for a passing fault": ("", 75),
}


@pytest.mark.parametrize("line", LASTING.values(), ids=LASTING.keys())
def test_failure_that_no_retry_mends_is_run_once(kos_retry, line):
    done = kos_retry("run", *AT_ONCE, "--", "sh", "-c", line)
    assert (done.code, kos_retry.end()["attempts"]) == (1, 1)


@pytest.mark.parametrize(("said", "code"), REPEATING.values(), ids=REPEATING.keys())
def test_failure_that_repeats_is_run_twice_at_most(kos_retry, said, code):
    done = kos_retry("run", *AT_ONCE, "--", "sh", "-c", f'printf "$0\\n" >&2; exit {code}', said)
    assert (done.code, kos_retry.end()["attempts"] <= 2) == (code, True)


@pytest.mark.parametrize(("said", "code"), PASSING_BY.values(), ids=PASSING_BY.keys())
def test_failure_that_waiting_mends_is_run_to_the_limit(kos_retry, said, code):
    done = kos_retry("run", *AT_ONCE, "--", "sh", "-c", f'printf "$0\\n" >&2; exit {code}', said)
    assert (done.code, kos_retry.end()["attempts"]) == (code, 3)


def test_output_that_decides_is_not_held_back(kos_retry, gate):
    line = "echo busy; read _ <gate; exit 3"
    running = kos_retry.start("run", *AT_ONCE, "--retry-on", "output:busy", "--", "sh", "-c", line)
    for _ in range(3):
        # Each attempt ends only after its line has been seen.
        assert running.stdout.readline() == b"busy\n"
        gate.say("go on")
    assert running.wait(45) == 3


def test_stop_beats_retry_and_is_named(kos_retry, tmp_path):
    path = tmp_path / "report.json"
    rules = ("--retry-on", "exit:1", "--stop-on", "output:fatal", "--report", f"json:{path}")
    kos_retry("run", *AT_ONCE, *rules, "--", "sh", "-c", "echo fatal; exit 1")
    (reason,) = json.loads(path.read_text())["decisions"][0]["reasons"]
    assert (reason["rule"], "output:fatal" in reason["evidence"], kos_retry.end()["attempts"]) == ("stop_on", True, 1)


def waits(done):
    return re.findall(r"wait before attempt \d+: (.+)", done.stdout.decode())


def test_same_seed_gives_the_same_waits_and_none_over_the_longest(kos_retry):
    words = ("run", "--dry-run", "--max-attempts", "10000", "--delay", "1s", "--max-delay", "9s", "--seed")
    first, again, other = (waits(kos_retry(*words, seed, "--", "false")) for seed in ("1", "1", "2"))
    seconds = [float(wait.removesuffix("s")) for wait in first]
    assert (first == again, first == other, max(seconds) <= 9) == (True, False, True)


def test_standard_input_that_nobody_reads_blocks_nobody(kos_retry):
    read, write = os.pipe()
    try:
        assert kos_retry.start("run", "--", "true", stdin=read).wait(45) == 0
    finally:
        os.close(read)
        os.close(write)


SECRET = "correct-horse-battery"
# Where reads and the kept parts of an output end.
EDGES = (64 * 1024, 256 * 1024, MIB, 2 * MIB, 3 * MIB)
SAY_AT_EDGES = """
import sys
secret, out = sys.argv[1].encode(), bytearray()
for edge in map(int, sys.argv[2:]):
    out += (b"error: a line of padding\\n" * (edge // 25))[: edge - len(out) - len(secret) // 2]
    out += secret + b"\\n"
sys.stdout.buffer.write(out + (b"y" * 99 + b"\\n") * 50000)
sys.exit(1)
"""


def test_secret_that_is_cut_by_reads_and_limits_is_in_no_file(kos_retry, tmp_path):
    report = ("--report", f"json:{tmp_path / 'report.json'}")
    words = (sys.executable, "-S", "-c", SAY_AT_EDGES, SECRET, *map(str, EDGES))
    kos_retry("run", *ONCE, *report, "--mask-env", "WORD", "--", *words, environment={"WORD": SECRET})
    pieces = [SECRET[:12].encode(), SECRET[-12:].encode()]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in files if any(piece in path.read_bytes() for piece in pieces)] == []


STOP_AND_GO_ON = """
import os, signal
if not os.fork():
    while open(f"/proc/{os.getppid()}/stat").read().rpartition(")")[2].split()[0] != "T":
        pass
    os.kill(os.getppid(), signal.SIGCONT)
    os._exit(0)
os.kill(os.getpid(), signal.SIGSTOP)
os.wait()
"""
ENDINGS = {
    "exit with 256 is exit with 0": ("import os; os._exit(256)", 0),
    "stopped and continued": (STOP_AND_GO_ON, 0),
    "abort": ("import os; os.abort()", 134),
    "real-time signal": ("import os; os.kill(os.getpid(), 40)", 168),
}


@pytest.mark.parametrize(("program", "code"), ENDINGS.values(), ids=ENDINGS.keys())
def test_zero_is_given_only_where_an_attempt_gave_it(kos_retry, program, code):
    assert kos_retry("run", *ONCE, "--", sys.executable, "-S", "-c", program).code == code
