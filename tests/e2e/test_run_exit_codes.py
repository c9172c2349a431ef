"""The exit code of `run` is the command's own, or one of the few that are agreed for what kept it from having one."""

from __future__ import annotations

import pytest

ONCE = ("--max-attempts", "1")


def test_failure_that_repeats_stops_after_two_attempts(kos_retry):
    done = kos_retry("run", "--delay", "0s", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.code, done.stdout) == (7, b"out\nout\n")
    assert done.said[-1].startswith("stopped after 2 attempts, 1 not tried: ")


def test_every_attempt_that_failed_is_in_the_journal(kos_retry):
    kos_retry("run", "--delay", "0s", "--", "sh", "-c", "echo err >&2; exit 7")
    assert [record["type"] for record in kos_retry.journal()] == ["begin", "attempt", "attempt", "end"]


def test_pass_at_once_says_nothing(kos_retry):
    assert kos_retry("run", "--", "true") == (0, b"", b"")


@pytest.mark.parametrize("code", [0, 2, 126, 200])
def test_exit_code_is_the_commands_own(kos_retry, code):
    assert kos_retry("run", *ONCE, "--", "sh", "-c", f"exit {code}").code == code


@pytest.mark.parametrize(("signal", "number"), [("TERM", 15), ("SEGV", 11)])
def test_death_by_signal_gives_128_and_its_number(kos_retry, signal, number):
    assert kos_retry("run", *ONCE, "--", "sh", "-c", f"kill -{signal} $$").code == 128 + number


def test_command_that_is_not_found_gives_127(kos_retry):
    assert kos_retry("run", "--", "no-such-command-anywhere").code == 127


def test_command_that_is_not_found_is_not_tried_again(kos_retry):
    done = kos_retry("run", "--delay", "600s", "--jitter", "none", "--", "no-such-command-anywhere")
    assert done.said[1].startswith("stopped after 1 attempt, 2 not tried: ")


def test_file_that_is_not_executable_gives_126(kos_retry, tmp_path):
    plain = tmp_path / "plain"
    plain.write_text("exit 0\n")
    assert kos_retry("run", "--", str(plain)).code == 126


def test_directory_as_command_gives_126(kos_retry, tmp_path):
    assert kos_retry("run", "--", str(tmp_path)).code == 126


def a_script_without_interpreter_line(directory):
    script = directory / "bare-script"
    script.write_text('printf "%s|" "$@"; exit 5\n')
    script.chmod(0o755)
    return script


def test_script_without_interpreter_line_runs(kos_retry, tmp_path):
    script = a_script_without_interpreter_line(tmp_path)
    done = kos_retry("run", *ONCE, "--", str(script), "a b")
    assert (done.code, done.stdout) == (5, b"a b|")


def test_script_without_interpreter_line_is_found_on_the_path(kos_retry, tmp_path):
    directory = tmp_path / "bin"
    directory.mkdir()
    script = a_script_without_interpreter_line(directory)
    path = f"{directory}:{kos_retry.environment['PATH']}"
    done = kos_retry("run", *ONCE, "--", script.name, "a b", environment={"PATH": path})
    assert (done.code, done.stdout) == (5, b"a b|")


WRONG_CALLS = {
    "unknown option": ("--no-such-option",),
    "unknown short option": ("-x",),
    "value is no number": ("--max-attempts", "many"),
    "value is no duration": ("--timeout", "soon"),
    "value is not one of the known": ("--guidance", "telepathy"),
    "report without a path": ("--report", "json"),
    "session id that is a path": ("--session", "../elsewhere"),
    "value for a flag": ("--zero-delta-fail-fast=yes",),
}


@pytest.mark.parametrize("options", WRONG_CALLS.values(), ids=WRONG_CALLS.keys())
def test_wrong_call_gives_125(kos_retry, options):
    done = kos_retry("run", *options, "--", "true")
    assert (done.code, done.stdout, done.stderr.count(b"\n")) == (125, b"", 1)


@pytest.mark.parametrize("options", WRONG_CALLS.values(), ids=WRONG_CALLS.keys())
def test_wrong_call_starts_nothing(kos_retry, tmp_path, options):
    started = tmp_path / "started"
    kos_retry("run", *options, "--", "touch", str(started))
    assert not started.exists()


@pytest.mark.parametrize("words", [(), ("--",), ("--max-attempts",), ("--", "")])
def test_call_without_a_command_gives_125(kos_retry, words):
    assert kos_retry("run", *words).code == 125


def test_wrong_option_names_the_one_that_was_meant(kos_retry):
    done = kos_retry("run", "--max-atempts", "2", "--", "true")
    assert "did you mean --max-attempts?" in done.stderr.decode()


STREAMS_CLOSED = {"stdin": "<&-", "stdout": ">&-", "stderr": "2>&-", "all": "<&- >&- 2>&-"}


@pytest.mark.parametrize("closed", STREAMS_CLOSED.values(), ids=STREAMS_CLOSED.keys())
@pytest.mark.parametrize("code", [0, 7])
def test_closed_stream_keeps_the_exit_code(kos_retry, closed, code):
    wrapped = f"printf out; printf err >&2; exit {code}"
    line = f'exec "$0" run --delay 0s -- sh -c "$1" {closed}'
    assert kos_retry.finish(["sh", "-c", line, kos_retry.path, wrapped]).code == code


def test_full_device_behind_stderr_keeps_the_exit_code(kos_retry):
    line = 'exec "$0" run --delay 0s -- sh -c "echo err >&2; exit 7" 2>/dev/full'
    assert kos_retry.finish(["sh", "-c", line, kos_retry.path]).code == 7


def test_output_that_is_lost_to_a_full_device_is_told(kos_retry):
    done = kos_retry.finish(["sh", "-c", 'exec "$0" run -- echo out >/dev/full', kos_retry.path])
    assert "No space left on device" in done.stderr.decode()
