"""The examples do what their README says."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
HARNESSES = {"shell": ["sh", str(EXAMPLES / "harness.sh")], "python": [sys.executable, str(EXAMPLES / "harness.py")]}


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a command with kos-retry on its PATH and a home of its own."""
    home = tmp_path / "home"
    home.mkdir()
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }

    def call(*argv, cwd=tmp_path, stdin=""):
        return subprocess.run(
            argv, cwd=cwd, env=environment, input=stdin, capture_output=True, text=True, timeout=90, check=False
        )

    return call


def envelope_of(run, session):
    """Return the last failure of a session."""
    return json.loads(run("kos-retry", "report", "--session", session, "--format", "json").stdout)["history"][-1]


@pytest.fixture
def project(tmp_path):
    """Return a copy of the example project, whose test can be changed."""
    return Path(shutil.copytree(EXAMPLES / "pytest_project", tmp_path / "project"))


def fail(run, project, session):
    run(
        "kos-retry",
        "run",
        "--max-attempts",
        "1",
        "--session",
        session,
        "--",
        "python3",
        "-m",
        "pytest",
        "-q",
        cwd=project,
    )
    return envelope_of(run, session)


def test_failing_test_is_named(run, project):
    assert fail(run, project, "first")["failing_constraints"] == ["test_cart.py::test_total_with_tax"]


def test_delta_and_guidance_name_the_test_that_fails_otherwise(run, project, tmp_path):
    before = fail(run, project, "first")
    changed = project / "test_cart.py"
    changed.write_text(changed.read_text().replace("rate=20) == 120", "rate=30) == 130"))
    after = fail(run, project, "second")
    for name, envelope in (("old", before), ("new", after)):
        (tmp_path / name).write_text(json.dumps(envelope))
    delta = json.loads(run("kos-retry", "diff", "old", "new", "--format", "json").stdout)
    told = run("kos-retry", "next", stdin=json.dumps([before, after]))
    stayed = "test_cart.py::test_total_with_tax"
    assert (delta["same_signature"], delta["constraints_still_failing"]) == (False, [stayed])
    assert f"Look first at `{stayed}`" in json.loads(told.stdout)["guidance"]


def test_script_of_ones_own_tells_what_to_do_and_keeps_the_exit_code(run):
    done = run("sh", str(EXAMPLES / "build_script.sh"), "sh", "-c", "echo 'error: no plan'; exit 9")
    assert (done.returncode, done.stdout.splitlines()[0]) == (9, "continue")


# A command, and what a harness says on the way to its end.
COURSES = {
    "continue": ("echo x >> n; [ $(wc -l < n) -gt 1 ] || { echo 'error: one'; exit 3; }", ["trying again", "passed"]),
    "pivot": (
        '[ -n "${GUIDANCE:-}" ] || { echo "error: no"; exit 3; }',
        ["trying again", "trying again, with guidance", "passed"],
    ),
    "escalate": (
        "echo 'error: no'; exit 3",
        ["trying again", "trying again, with guidance", "asking a human|escalate"],
    ),
    "halt": ("exit 127", ["giving up|halt_loop"]),
}


@pytest.mark.parametrize("harness", HARNESSES)
@pytest.mark.parametrize("course", COURSES)
def test_harness_acts_on_each_recommendation(run, harness, course):
    line, wanted = COURSES[course]
    done = run(*HARNESSES[harness], "sh", "-c", line)
    said = [text.partition("harness: ")[2] for text in done.stdout.splitlines() if text.startswith("harness: ")]
    assert len(wanted) == len(said)
    assert all(any(text.startswith(way) for way in want.split("|")) for want, text in zip(wanted, said, strict=True))


# A recipe, and the action in which its stand-in's transcript tells of the edit.
RECIPES = {"claude": "Write", "codex": "file_change", "gemini": "write_file", "opencode": "write", "own-agent": "write"}


@pytest.fixture
def recipe(run, tmp_path):
    """Return a function that runs a recipe with the stand-in in the place of its agent."""
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    for name in RECIPES:
        (bin_directory / name).symlink_to(EXAMPLES / "agents" / "stand_in.py")

    def call(name, test):
        script = EXAMPLES / "agents" / f"{name.replace('-', '_')}.sh"
        line = 'PATH="$1:$PATH" exec sh "$2" "Write the answer." "$3"'
        return run("sh", "-c", line, "sh", str(bin_directory), str(script), test)

    return call


@pytest.mark.parametrize("name", RECIPES)
def test_agent_is_told_what_failed_and_mends_it(recipe, tmp_path, name):
    done = recipe(name, "grep -qx 42 answer.txt")
    first, second = map(json.loads, (tmp_path / "prompts.jsonl").read_text().splitlines())
    assert (done.returncode, "repaired" in done.stderr) == (0, True)
    assert ("Write the answer." in first, "Look first at `tests`" in first) == (True, False)
    assert ("Write the answer." in second, "Look first at `tests`" in second) == (True, True)


@pytest.mark.parametrize("name", RECIPES)
def test_transcript_of_a_recipe_tells_what_the_agent_did(run, recipe, name):
    recipe(name, "grep -qx 42 answer.txt")
    report = json.loads(run("kos-retry", "report", "--format", "json").stdout)
    (envelope,) = report["history"]
    assert [RECIPES[name]] == [action["name"].partition(":")[0] for action in envelope["executed_actions"]]
    assert (920, "verification_failed") == (envelope["usage"]["tokens"], envelope["category"])


@pytest.mark.parametrize("name", RECIPES)
def test_agent_that_does_the_same_over_and_over_is_stopped(recipe, name):
    done = recipe(name, "false")
    assert (done.returncode, "attempts in a row fail the same way (zero_delta)" in done.stderr) == (1, True)


def test_only_what_failed_of_a_parallel_suite_is_run_again(run, tmp_path):
    suite = Path(shutil.copytree(EXAMPLES / "flaky_suite", tmp_path / "suite"))
    done = run("sh", "rerun.sh", cwd=suite)
    told = re.findall(r"^(\d.* passed) in ", done.stdout, re.MULTILINE)
    assert (0, ["3 failed, 3 passed", "3 passed"]) == (done.returncode, told)
