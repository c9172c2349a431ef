"""The configuration file to start from, and the settings that hold here."""

from __future__ import annotations

import tomllib

import pytest

from kos_retry.adapters.config import load
from kos_retry.cli import config, run
from kos_retry.cli.config import template
from kos_retry.errors import InputError, UsageError
from kos_retry.settings import RUN_OPTIONS, read_value, resolve

_LEFT_OUT = {"config", "dry-run"}
_OPTIONS = [o for o in RUN_OPTIONS if o.name not in _LEFT_OUT]


def _line(option) -> str:
    """Return the line of an option, without the mark of a comment."""
    return next(line for line in template().splitlines() if line.startswith(f"# {option.name} = ")).removeprefix("# ")


def test_template_changes_nothing():
    assert {} == tomllib.loads(template())


def test_template_names_every_option_a_file_can_set():
    assert [o.name for o in _OPTIONS] == [
        line[2:].partition(" = ")[0] for line in template().splitlines() if " = " in line and line[2:3].islower()
    ][: len(_OPTIONS)]


@pytest.mark.parametrize("option", _OPTIONS, ids=lambda o: o.name)
def test_line_of_the_template_is_toml(option):
    assert [option.name] == list(tomllib.loads(_line(option)))


@pytest.mark.parametrize("option", [o for o in _OPTIONS if o.default is not None or o.many], ids=lambda o: o.name)
def test_line_of_the_template_sets_the_default(option, tmp_path):
    (tmp_path / "kos-retry.toml").write_text(_line(option) + "\n")
    settings = resolve(load({}, str(tmp_path), str(tmp_path / "kos-retry.toml")).layers, {})
    assert read_value(option, option.default) == settings.values[option.field]


@pytest.mark.parametrize("option", [o for o in _OPTIONS if o.default is None and not o.many], ids=lambda o: o.name)
def test_line_of_an_option_without_a_default_says_what_no_value_means(option):
    assert _line(option).endswith(f'"" # {option.unset} where it is left out')


def test_lines_of_the_template_are_short():
    assert [] == [line for line in template().splitlines() if len(line) > 120]


def test_all_sections_of_the_template_can_hold_together():
    """A chosen profile and profiles of one's own are two keys, whatever their names."""
    lines = [line.removeprefix("# ") for line in template().splitlines()]
    kept = [
        line for line in lines if (" = " in line and '""' not in line and line[:1].islower()) or line.startswith("[")
    ]
    assert {"profile", "profiles"} <= set(tomllib.loads("\n".join(kept)))


def test_template_is_written_once(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "write_text", lambda _text: None)
    path = tmp_path / "kos-retry.toml"
    config.init(str(path))
    assert template() == path.read_text(encoding="utf-8")
    with pytest.raises(InputError, match="File exists"):
        config.init(str(path))


# --- the settings that hold ------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_file_environment_and_command_line_are_read_together(here):
    (here / "kos-retry.toml").write_text('timeout = "1s"\ndelay = "1s"\nbackoff = 3\n')
    settings = run.settings_of({"delay": "3s"}, {"KOS_RETRY_OPT_DELAY": "2s", "KOS_RETRY_OPT_TIMEOUT": "2s"})
    assert (2.0, 3.0, 3.0) == (settings.timeout, settings.delay, settings.backoff)
    assert "kos-retry.toml" in settings.sources["backoff"]


@pytest.mark.parametrize("how", ["command-line", "environment"])
def test_file_can_be_chosen(here, how):
    (here / "kos-retry.toml").write_text('timeout = "1s"\n')
    (here / "other.toml").write_text('timeout = "2s"\n')
    given = ({"config": "other.toml"}, {}) if how == "command-line" else ({}, {"KOS_RETRY_OPT_CONFIG": "other.toml"})
    assert 2.0 == run.settings_of(*given).timeout


def test_directory_that_is_gone_does_not_keep_a_run_from_starting(here, monkeypatch):
    (here / "gone").mkdir()
    monkeypatch.chdir(here / "gone")
    (here / "gone").rmdir()
    assert 3 == run.settings_of({}, {}).max_attempts


@pytest.mark.parametrize("command", [[], [""]], ids=["none", "empty"])
def test_without_a_command_nothing_is_run(here, command):
    with pytest.raises(UsageError, match="command to run"):
        run.run_command({}, command)


def test_dry_run_runs_nothing(here, monkeypatch):
    shown = []
    monkeypatch.setattr("kos_retry.cli.plan.show_plan", lambda settings, command: shown.append(list(command)))
    monkeypatch.setattr("kos_retry.composition.run", pytest.fail)
    assert (0, [["make"]]) == (run.run_command({"dry_run": True}, ["make"]), shown)
