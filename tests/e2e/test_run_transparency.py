"""What passes through `run` is what the bare command would have got and given, byte for byte and at once."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys

import pytest

PRINT_ARGUMENTS = ("printf", "%s|")
HARD_WORDS = ("a b", "it's", "$HOME", "", "*", "x\ny", "--max-attempts", "--", "{guidance}", "-")
# Everything that a text would not survive: NUL, invalid UTF-8, carriage returns, no newline at the end.
HARD_BYTES = random.Random(1).randbytes(200_000) + b"\r\n\0\xff\x1b[31mend"
# Twenty million bytes, none like its neighbour.
MUCH = 20_000_000
WRITE_MUCH = f"import sys; sys.stdout.buffer.write((b'0123456789abcdef\\n' * {MUCH // 17 + 1})[:{MUCH}])"


def digest_of_much():
    return hashlib.sha256((b"0123456789abcdef\n" * (MUCH // 17 + 1))[:MUCH]).hexdigest()


def test_arguments_arrive_byte_for_byte(kos_retry):
    done = kos_retry("run", "--", *PRINT_ARGUMENTS, *HARD_WORDS)
    assert done.stdout.decode() == "".join(f"{word}|" for word in HARD_WORDS)


def test_options_end_at_the_command_without_a_separator(kos_retry):
    done = kos_retry("run", "--max-attempts", "1", *PRINT_ARGUMENTS, "--delay", "-x")
    assert done.stdout == b"--delay|-x|"


def test_arguments_that_are_not_utf8_arrive(kos_retry):
    done = kos_retry("run", "--", *PRINT_ARGUMENTS, b"\xff\xfe\x80")
    assert done.stdout == b"\xff\xfe\x80|"


def test_environment_that_is_not_utf8_arrives(kos_retry):
    done = kos_retry("run", "--", "printenv", "ODD", environment={"ODD": b"\xff\xfe\x80"})
    assert done.stdout == b"\xff\xfe\x80\n"


def test_argument_that_is_not_utf8_keeps_the_exit_code_of_a_failure(kos_retry):
    done = kos_retry("run", "--delay", "0s", "--", "sh", "-c", "exit 7", b"\xff")
    assert done.code == 7


def test_command_name_that_is_not_utf8_is_not_found(kos_retry):
    assert kos_retry("run", "--", b"no-such-\xff").code == 127


def test_secret_that_is_not_utf8_keeps_the_exit_code_of_a_failure(kos_retry):
    environment = {"MY_TOKEN": b"secret-\xff-value"}
    done = kos_retry("run", "--max-attempts", "1", "--", "sh", "-c", "exit 7", environment=environment)
    assert done.code == 7


def test_working_directory_that_is_not_utf8_keeps_the_exit_code_of_a_failure(kos_retry, tmp_path):
    directory = os.fsencode(tmp_path) + b"/\xff"
    os.mkdir(directory)
    assert kos_retry("run", "--max-attempts", "1", "--", "sh", "-c", "exit 7", cwd=directory).code == 7


def test_report_of_a_command_that_is_not_utf8_is_written(kos_retry, tmp_path):
    path = tmp_path / "report.json"
    kos_retry("run", "--max-attempts", "1", "--report", f"json:{path}", "--", "sh", "-c", "exit 7", b"\xff")
    assert path.read_text(encoding="utf-8").startswith("{")


def test_standard_input_is_inherited(kos_retry):
    assert kos_retry("run", "--", "cat", stdin=HARD_BYTES).stdout == HARD_BYTES


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_is_passed_on_byte_for_byte(kos_retry, tmp_path, stream):
    (tmp_path / "bytes").write_bytes(HARD_BYTES)
    line = "cat bytes" if stream == "stdout" else "cat bytes >&2"
    done = kos_retry("run", "--", "sh", "-c", line)
    assert done._asdict() == {"code": 0, "stdout": b"", "stderr": b""} | {stream: HARD_BYTES}


def test_twenty_million_bytes_are_passed_on(kos_retry):
    done = kos_retry("run", "--", sys.executable, "-S", "-c", WRITE_MUCH)
    assert hashlib.sha256(done.stdout).hexdigest() == digest_of_much()


def test_slow_reader_holds_the_command_back_and_loses_nothing(kos_retry, events):
    mark = f"{WRITE_MUCH}; sys.stdout.flush(); open(sys.argv[1], 'w').write('written\\n')"
    running = kos_retry.start("run", "--", sys.executable, "-S", "-c", mark, events.path)
    early = events.wait(0.3)
    got = running.stdout.read(1)
    while chunk := running.stdout.read(4096 if len(got) < 1_000_000 else 1_000_000):
        got += chunk
    assert (early, hashlib.sha256(got).hexdigest()) == (None, digest_of_much())


def test_reader_that_comes_late_gets_what_the_command_left_in_the_pipe(kos_retry, events):
    line = "head -c 900000 /dev/zero; echo written >events"
    running = kos_retry.start("run", "--", "sh", "-c", line)
    events.wait(5)
    # Longer than kos-retry waits for output of a command that has ended.
    events.wait(0.6)
    assert len(running.communicate(timeout=45)[0]) == 900_000


def test_reader_that_never_reads_cannot_outlast_the_time_limit(kos_retry):
    limits = ("--max-attempts", "1", "--timeout", "0.3s", "--kill-after", "0.1s")
    running = kos_retry.start("run", *limits, "--", "yes", stderr=subprocess.DEVNULL)
    assert running.wait(45) == 124


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_arrives_before_the_command_ends(kos_retry, gate, stream):
    line = f"exec >&{1 if stream == 'stdout' else 2}; printf 'name? '; read line <gate; echo \"got $line\""
    running = kos_retry.start("run", "--", "sh", "-c", line)
    pipe = getattr(running, stream)
    first = pipe.read(6)
    gate.say("all")
    assert (first, pipe.read(100)) == (b"name? ", b"got all\n")


def test_reader_that_closes_ends_the_command_as_it_would_bare_and_the_run_with_it(kos_retry, lifeline):
    running = kos_retry.start("run", "--delay", "0s", "--", "yes", pass_fds=[lifeline.fd])
    lifeline.let_go()
    running.stdout.read(2)
    running.stdout.close()
    assert (running.wait(45), lifeline.is_over(), kos_retry.end()["attempts"]) == (141, True, 1)
    assert b"Traceback" not in running.stderr.read()


def test_pipeline_whose_end_closes_is_over_at_once(kos_retry):
    line = '"$0" run -- yes | head -n 1'
    assert kos_retry.finish(["bash", "-c", f"{line}; exit ${{PIPESTATUS[1]}}", kos_retry.path]).stdout == b"y\n"


def test_nothing_is_left_but_the_session(kos_retry, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    kos_retry("run", "--delay", "0s", "--guidance", "stdin", "--", "sh", "-c", "echo err >&2; exit 7", cwd=tree)
    assert [*tree.iterdir(), *kos_retry.temporary.iterdir(), *tmp_path.iterdir()] == [*tmp_path.iterdir()]


DISPOSITIONS = ("grep", "-E", "Sig(Blk|Ign)", "/proc/self/status")
# Signals 1 to 31; those above belong to the C library.
CLASSIC_SIGNALS = 0x7FFFFFFF
IGNORING = ("sh", "-c", 'trap "" INT HUP; exec "$@"', "sh")
needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads /proc")


def dispositions(done):
    return [int(line.split()[1], 16) & CLASSIC_SIGNALS for line in done.stdout.splitlines()]


@needs_proc
@pytest.mark.parametrize("start", [(), IGNORING], ids=["as usual", "with signals ignored"])
def test_command_finds_the_signal_dispositions_of_a_bare_one(kos_retry, start):
    bare = kos_retry.finish([*start, *DISPOSITIONS])
    wrapped = kos_retry.finish([*start, kos_retry.path, "run", "--", *DISPOSITIONS])
    assert dispositions(wrapped) == dispositions(bare)


@needs_proc
def test_command_finds_the_open_files_of_a_bare_one(kos_retry):
    bare = kos_retry.finish(["ls", "/proc/self/fd"]).stdout
    assert kos_retry("run", "--", "ls", "/proc/self/fd").stdout == bare


@needs_proc
def test_second_attempt_finds_the_open_files_of_the_first(kos_retry):
    done = kos_retry("run", "--delay", "0s", "--", "sh", "-c", "ls /proc/self/fd; exit 1")
    half = len(done.stdout) // 2
    assert done.stdout[:half] == done.stdout[half:]
