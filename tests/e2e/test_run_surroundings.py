"""Where little is left to run in, the command still runs as it would bare, and its exit code is ours."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODES = [0, 7]
AT_ONCE = ("run", "--delay", "0s", "--")
# The least round number of MiB of address space in which an interpreter starts here, and room for another one.
ADDRESS_SPACE_MIB = 400
# Linux allows 128 KiB for a single variable, and a quarter of the stack for all of them.
CROWD = {f"CROWD_{number}": "x" * 100_000 for number in range(18)}


def exits(code):
    """Return a command that needs nothing to be found, says something on both streams, and exits."""
    return ("/bin/sh", "-c", f"echo out; echo err >&2; exit {code}")


def from_shell(kos_retry, before, *words, environment=None):
    """Run the command from a shell that prepares the surroundings."""
    return kos_retry.finish(["/bin/sh", "-c", f'{before}\nexec "$@"', "sh", *words], environment=environment)


def as_bare(done, code):
    """Return whether a run gave what the command gave, however often it was tried."""
    return done.code == code and set(done.stdout.splitlines()) == {b"out"} and b"err\n" in done.stderr


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("path", ["", None])
def test_path_that_leads_nowhere(kos_retry, path, code):
    before = "unset PATH" if path is None else f"PATH={path}"
    assert as_bare(from_shell(kos_retry, before, kos_retry.path, *AT_ONCE, *exits(code)), code)


@pytest.mark.parametrize("code", CODES)
def test_working_directory_that_is_gone(kos_retry, code):
    done = from_shell(kos_retry, "mkdir gone; cd gone; rmdir ../gone", kos_retry.path, *AT_ONCE, *exits(code))
    assert as_bare(done, code)


@pytest.mark.parametrize("code", CODES)
def test_environment_that_is_huge(kos_retry, code):
    line = f'[ "$(env | wc -c)" -gt 1800000 ] || exit 9; {exits(code)[2]}'
    assert as_bare(kos_retry(*AT_ONCE, "/bin/sh", "-c", line, environment=CROWD), code)


@pytest.mark.parametrize("code", CODES)
def test_few_open_files(kos_retry, code):
    assert as_bare(from_shell(kos_retry, "ulimit -n 32", kos_retry.path, *AT_ONCE, *exits(code)), code)


@pytest.mark.parametrize("code", CODES)
def test_little_address_space(kos_retry, code):
    before = f"ulimit -v {ADDRESS_SPACE_MIB * 1024}"
    if from_shell(kos_retry, before, sys.executable, "-c", "pass").code != 0:
        pytest.skip("an interpreter alone needs more")
    assert as_bare(from_shell(kos_retry, before, kos_retry.path, *AT_ONCE, *exits(code)), code)


HOMES = {"below a file": "/dev/null/home", "empty": "", "not writable": "/proc"}


@pytest.mark.parametrize("home", HOMES.values(), ids=HOMES.keys())
def test_home_that_cannot_be_used(kos_retry, home):
    done = kos_retry(*AT_ONCE, *exits(7), environment={"HOME": home, "XDG_STATE_HOME": ""})
    assert as_bare(done, 7)


@pytest.mark.parametrize("code", CODES)
def test_no_environment_at_all(kos_retry, code):
    state = ("--state-dir", str(kos_retry.state))
    done = from_shell(kos_retry, "", "/usr/bin/env", "-i", kos_retry.path, "run", *state, "--", *exits(code))
    assert as_bare(done, code)


@pytest.mark.parametrize("code", CODES)
def test_temporary_directory_that_is_missing(kos_retry, code):
    options = ("--delay", "0s", "--hold-output", "--replay-stdin")
    done = kos_retry("run", *options, "--", *exits(code), stdin=b"x", environment={"TMPDIR": "/dev/null/none"})
    assert as_bare(done, code)


CLOSED = {"stdin": "<&-", "stdout": ">&-", "stderr": "2>&-", "all": "<&- >&- 2>&-"}
SAY_WHAT_IS_OPEN = """
for fd in (0, 1, 2):
    try:
        os.fstat(fd)
    except OSError:
        continue
    with open("open", "a") as file:
        file.write(f"{fd} ")
"""


@pytest.mark.parametrize("closed", CLOSED.values(), ids=CLOSED.keys())
def test_closed_stream_is_as_closed_for_the_command(kos_retry, tmp_path, closed):
    told = []
    for wrapper in ("", '"$0" run -- '):
        (tmp_path / "open").write_text("")
        line = f'exec {wrapper}"{sys.executable}" -S -c "$1" {closed}'
        kos_retry.finish(["sh", "-c", line, kos_retry.path, SAY_WHAT_IS_OPEN])
        told.append((tmp_path / "open").read_text())
    assert told[1] == told[0]


@pytest.mark.parametrize("name", ["json", "typing", "select"])
def test_module_of_a_stranger_on_the_search_path_is_not_run(kos_retry, tmp_path, name):
    directory = tmp_path / "modules"
    directory.mkdir()
    (directory / f"{name}.py").write_text("raise RuntimeError('not me')\n")
    assert as_bare(kos_retry(*AT_ONCE, *exits(7), environment={"PYTHONPATH": str(directory)}), 7)


@pytest.mark.parametrize("name", ["json", "typing", "kos_retry"])
def test_module_of_a_stranger_in_the_working_directory_is_not_run(kos_retry, tmp_path, name):
    (tmp_path / f"{name}.py").write_text("raise RuntimeError('not me')\n")
    assert as_bare(kos_retry(*AT_ONCE, *exits(7)), 7)


def test_search_path_of_the_command_is_left_alone(kos_retry):
    done = kos_retry(*AT_ONCE, "printenv", "PYTHONPATH", environment={"PYTHONPATH": "/some/where"})
    assert done.stdout == b"/some/where\n"


INTERPRETER = {
    "warnings are errors": {"PYTHONWARNINGS": "error", "PYTHONDEVMODE": "1"},
    "ASCII": {"LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONOPTIMIZE": "2"},
}


@pytest.mark.parametrize("environment", INTERPRETER.values(), ids=INTERPRETER.keys())
def test_settings_of_the_interpreter(kos_retry, environment):
    done = kos_retry(*AT_ONCE, *exits(7), environment=environment)
    assert (as_bare(done, 7), b"Warning" in done.stderr) == (True, False)


@pytest.mark.parametrize("code", CODES)
def test_state_directory_on_a_full_disk(kos_retry, tmp_path, code):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        subprocess.run(["sh", "-c", 'cat /dev/zero >"$0/full" 2>/dev/null', str(disk)], check=False)
        done = kos_retry(
            "run", "--delay", "0s", "--state-dir", str(disk / "state"), "--guidance", "file", "--", *exits(code)
        )
        warnings = [line for line in done.said if "No space left" in line]
        assert (as_bare(done, code), len(warnings)) == (True, 1 if code else len(warnings))
    finally:
        subprocess.run(["umount", str(disk)], check=True)
