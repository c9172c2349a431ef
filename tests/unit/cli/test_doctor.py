"""What is looked at before it goes wrong."""

from __future__ import annotations

import pytest

from kos_retry.cli import doctor
from kos_retry.cli.doctor import Finding
from kos_retry.errors import InputError


def _raises(error):
    def look():
        raise error

    return look


@pytest.fixture
def looked(monkeypatch):
    """Return a function that runs the doctor over other looks and returns its status and its lines."""

    def run(**looks):
        out = []
        monkeypatch.setattr(doctor, "write_text", out.append)
        monkeypatch.setattr(doctor, "_LOOKS", tuple(looks.items()))
        return doctor.doctor(), "".join(out).splitlines()

    return run


def test_all_is_well(looked):
    assert (0, ["ok    a: fine", "ok    b: fine"]) == looked(
        a=lambda: Finding(True, "fine"), b=lambda: Finding(True, "fine")
    )


def test_one_thing_that_is_not_well_is_the_status(looked):
    assert (1, ["FAIL  a: broken", "ok    b: fine"]) == looked(
        a=lambda: Finding(False, "broken"), b=lambda: Finding(True, "fine")
    )


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), InputError("x: unknown key 'a'")])
def test_look_that_fails_spoils_no_other(looked, error):
    status, lines = looked(a=_raises(error), b=lambda: Finding(True, "fine"))
    assert (1, f"FAIL  a: {error}", "ok    b: fine") == (status, *lines)


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def test_configuration_names_its_files(here):
    (here / "kos-retry.toml").write_text('timeout = "5s"\n')
    assert str(here / "kos-retry.toml") in doctor._configuration().text


def test_configuration_that_is_wrong_is_found(here):
    (here / "kos-retry.toml").write_text('timeout = "soon"\n')
    assert not doctor._safely(doctor._configuration).well


def test_state_directory_is_written_to_and_left_clean(here):
    assert doctor._state().well
    assert [] == list((here / "state" / "kos-retry").iterdir())


def test_state_directory_that_is_a_file_is_found(here):
    (here / "state").write_text("")
    assert not doctor._safely(doctor._state).well


@pytest.mark.parametrize(("limit", "well"), [(31, False), (32, True)])
def test_too_few_files_are_found(monkeypatch, limit, well):
    monkeypatch.setattr(doctor.resource, "getrlimit", lambda _which: (limit, limit))
    assert well == doctor._files().well


@pytest.mark.parametrize(("environment", "told"), [({}, "not inside"), ({"KOS_RETRY_MARK": "m"}, "inside another")])
def test_nesting_is_told(monkeypatch, environment, told):
    monkeypatch.delenv("KOS_RETRY_MARK", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert doctor._nested().text.startswith(told)
