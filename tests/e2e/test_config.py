"""Configuration: where values come from, what is said of a wrong one, and looking at what holds."""

from __future__ import annotations

import pytest


def sources(kos_retry, *words, **given):
    return kos_retry("config", "show", "--format", "json", *words, **given).json


def a_file(directory, text, name="kos-retry.toml"):
    (directory / name).write_text(text)


def test_every_value_is_shown_with_its_source(kos_retry, tmp_path):
    a_file(tmp_path, 'delay = "3s"\nretry-on = ["exit:7"]\n[profiles.night]\ntimeout = "2h"\n')
    shown = sources(kos_retry, "--profile", "night", environment={"KOS_RETRY_OPT_BACKOFF": "3"})
    told = {name: (shown[name]["value"], shown[name]["source"]) for name in ("delay", "retry-on", "timeout", "backoff")}
    assert told == {
        "delay": ("3s", str(tmp_path / "kos-retry.toml")),
        "retry-on": (["exit:7"], str(tmp_path / "kos-retry.toml")),
        "timeout": ("2h", "profile night"),
        "backoff": ("3", "$KOS_RETRY_OPT_BACKOFF"),
    }
    assert (shown["jitter"]["source"], shown["profile"]["source"]) == ("default", "command line")


# Layers in rising precedence, and the delay that holds with them.
def test_nearer_layers_win(kos_retry, tmp_path):
    a_file(tmp_path, '[tool.kos-retry]\ndelay = "1m1s"\n', "pyproject.toml")
    told = [sources(kos_retry)["delay"]["value"]]
    environment = {"KOS_RETRY_OPT_DELAY": "1m2s"}
    told.append(sources(kos_retry, environment=environment)["delay"]["value"])
    words = ("run", "--dry-run", "--delay", "1m3s", "--max-delay", "2m", "--jitter", "none", "--", "true")
    plan = kos_retry(*words, environment=environment).stdout.decode()
    assert (told, "wait before attempt 2: 1m3s" in plan) == (["1m1s", "1m2s"], True)


def test_file_of_a_parent_directory_holds_up_to_the_repository(kos_retry, tmp_path):
    a_file(tmp_path, 'delay = "9s"\n')
    inner = tmp_path / "repository" / "package"
    inner.mkdir(parents=True)
    open_tree = sources(kos_retry, cwd=inner)["delay"]["value"]
    (tmp_path / "repository" / ".git").mkdir()
    assert (open_tree, sources(kos_retry, cwd=inner)["delay"]["value"]) == ("9s", "1s")


def test_chosen_file_is_the_only_one(kos_retry, tmp_path):
    a_file(tmp_path, 'delay = "9s"\n')
    a_file(tmp_path, "backoff = 4\n", "other.toml")
    shown = sources(kos_retry, "--config", "other.toml")
    assert (shown["delay"]["value"], shown["backoff"]["value"]) == ("1s", "4")


def test_file_steers_a_run(kos_retry, tmp_path):
    a_file(tmp_path, 'max-attempts = 2\ndelay = "0s"\nretry-on = ["exit:1-255"]\nquiet = true\n')
    assert kos_retry("run", "--", "sh", "-c", "echo ran; exit 7") == (7, b"ran\n" * 2, b"")


def test_profile_of_a_file_steers_a_run(kos_retry, tmp_path):
    a_file(tmp_path, "[profiles.once]\nmax-attempts = 1\n")
    assert kos_retry("run", "--profile", "once", "--", "sh", "-c", "echo ran; exit 7").stdout == b"ran\n"


def test_variable_steers_a_run(kos_retry):
    environment = {"KOS_RETRY_OPT_MAX_ATTEMPTS": "1", "KOS_RETRY_OPT_QUIET": "yes"}
    assert kos_retry("run", "--", "sh", "-c", "exit 7", environment=environment) == (7, b"", b"")


def test_file_that_init_writes_is_accepted_and_changes_nothing_with_or_without_its_comments(kos_retry, tmp_path):
    before = sources(kos_retry)
    kos_retry("config", "init")
    path = tmp_path / "kos-retry.toml"
    written = sources(kos_retry)
    # What has no default stands there with an empty text.
    options = path.read_text().partition("# [profiles.")[0].splitlines()
    lines = [line.removeprefix("# ") for line in options if '"" #' not in line]
    path.write_text("\n".join(line for line in lines if line.split(" = ")[0] in before) + "\n")
    bare = sources(kos_retry)
    values = [{name: entry["value"] for name, entry in shown.items()} for shown in (before, written, bare)]
    assert (values[1], values[2], bare["delay"]["source"]) == (values[0], values[0], str(path))


def test_init_leaves_a_file_that_is_there(kos_retry, tmp_path):
    a_file(tmp_path, 'delay = "9s"\n')
    done = kos_retry("config", "init")
    assert (done.code, (tmp_path / "kos-retry.toml").read_text()) == (2, 'delay = "9s"\n')


# A file, and what its message must name.
WRONG = {
    "unknown key": ('# delays\ndealy = "3s"\n', ["kos-retry.toml:2: ", "'dealy'", "did you mean 'delay'?"]),
    "mask without a pattern": (
        '[[mask]]\nname = "a"\n',
        ["kos-retry.toml:1: ", "[[mask]] number 1", "pattern is missing"],
    ),
    "mask of a bad name": ('[[mask]]\nname = "A1"\npattern = "a"\n', ["[[mask]] number 1", "'A1'", "small letters"]),
    "unknown key of a rule": (
        '[[keep]]\nname = "a"\npatern = "a"\n',
        ["[[keep]] number 1", "'patern'", "did you mean 'pattern'?"],
    ),
    "expression of a rule": (
        '[[keep]]\nname = "a"\npattern = "("\n',
        ["[[keep]] number 1", "'(' is not a regular expression"],
    ),
    "rule that is no table": ('mask = "a"\n', ["kos-retry.toml:1: ", "array of tables", "[[mask]]"]),
    "unknown key of a profile": ('[profiles.night]\ntimout = "2h"\n', ["kos-retry.toml:2: ", "'timeout'"]),
    "wrong type": ('quiet = "very"\n', ["kos-retry.toml:1: ", "quiet"]),
    "wrong value": ('delay = "soon"\n', ["kos-retry.toml", "--delay"]),
    "no TOML": ("delay =\n", ["kos-retry.toml", "line 1"]),
    "unknown profile": ('profile = "nihgt"\n', ["nihgt", "kos-retry.toml"]),
}


@pytest.mark.parametrize(("text", "named"), WRONG.values(), ids=WRONG.keys())
def test_wrong_file_is_told_with_its_place_and_nothing_runs(kos_retry, tmp_path, text, named):
    a_file(tmp_path, text)
    done = kos_retry("run", "--", "echo", "ran")
    missing = [name for name in named if name not in done.stderr.decode()]
    assert (done.code, done.stdout, done.stderr.count(b"\n"), missing) == (125, b"", 1, [])


@pytest.mark.parametrize("text", [WRONG["unknown key"][0], WRONG["wrong value"][0]], ids=["key", "value"])
def test_wrong_file_is_bad_input_to_other_commands(kos_retry, tmp_path, text):
    a_file(tmp_path, text)
    done = kos_retry("config", "show")
    assert (done.code, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)


VARIABLES = {
    "unknown": ({"KOS_RETRY_OPT_DEALY": "1s"}, ["KOS_RETRY_OPT_DEALY", "delay"]),
    "wrong value": ({"KOS_RETRY_OPT_DELAY": "soon"}, ["KOS_RETRY_OPT_DELAY", "soon"]),
    "wrong flag": ({"KOS_RETRY_OPT_QUIET": "perhaps"}, ["KOS_RETRY_OPT_QUIET", "perhaps"]),
}


@pytest.mark.parametrize(("environment", "named"), VARIABLES.values(), ids=VARIABLES.keys())
def test_wrong_variable_is_named(kos_retry, environment, named):
    done = kos_retry("run", "--", "echo", "ran", environment=environment)
    missing = [name for name in named if name not in done.stderr.decode()]
    assert (done.code, done.stdout, missing) == (125, b"", [])


def test_chosen_file_that_is_missing_is_an_error(kos_retry):
    assert kos_retry("run", "--config", "none.toml", "--", "true").code == 125


def test_project_file_that_does_not_speak_of_us_is_not_read(kos_retry, tmp_path):
    a_file(tmp_path, "this is [ no TOML\n", "pyproject.toml")
    assert kos_retry("run", "--", "true").code == 0


def test_doctor_finds_this_machine_well(kos_retry):
    done = kos_retry("doctor")
    assert (done.code, {line[:4] for line in done.stdout.decode().splitlines()}, done.stderr) == (0, {"ok  "}, b"")


def test_doctor_finds_what_is_wrong(kos_retry, tmp_path):
    a_file(tmp_path, "dealy = 1\n")
    done = kos_retry("doctor", environment={"XDG_STATE_HOME": "/dev/null"})
    wrong = [line.split(":")[0] for line in done.stdout.decode().splitlines() if line.startswith("FAIL")]
    assert (done.code, wrong) == (1, ["FAIL  state directory", "FAIL  configuration"])


_LOOKING = {
    "list": ("sessions", "list"),
    "show": ("sessions", "show", "s1"),
    "report": ("report", "--session", "s1"),
    "resume": ("sessions", "resume", "s1", "--max-attempts", "0", "--", "true"),
}


@pytest.mark.parametrize("words", _LOOKING.values(), ids=_LOOKING)
def test_sessions_are_looked_for_where_the_file_says_that_runs_keep_them(kos_retry, tmp_path, words):
    (tmp_path / "kos-retry.toml").write_text(f'state-dir = "{tmp_path}/mine"\n')
    kos_retry("run", "--session", "s1", "--max-attempts", "1", "--", "false", cwd=tmp_path)
    looked = kos_retry(*words, cwd=tmp_path)
    assert (looked.code, (tmp_path / "mine" / "sessions" / "s1").is_dir()) == (0, True), looked.stderr


def test_place_that_is_given_goes_before_the_file(kos_retry, tmp_path):
    (tmp_path / "kos-retry.toml").write_text(f'state-dir = "{tmp_path}/mine"\n')
    kos_retry("run", "--session", "s1", "--max-attempts", "1", "--", "false", cwd=tmp_path)
    assert kos_retry("sessions", "show", "s1", "--state-dir", str(tmp_path / "other"), cwd=tmp_path).code == 2
