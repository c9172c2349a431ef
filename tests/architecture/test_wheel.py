"""The wheel: what is in it, and that it works where nothing else is."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import zipfile

import pytest
from builders import PYTHON, ROOT

if importlib.util.find_spec("hatchling") is None or importlib.util.find_spec("build") is None:
    pytest.skip("build and hatchling are not installed here", allow_module_level=True)


def _ran(*argv: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, check=False, **options)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    directory = tmp_path_factory.mktemp("dist")
    done = _ran(PYTHON, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(directory), str(ROOT))
    assert 0 == done.returncode, done.stdout + done.stderr
    (path,) = directory.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_types_are_shipped(names):
    assert "kos_retry/py.typed" in names


@pytest.mark.parametrize("extractor", sorted(path.parent.name for path in ROOT.glob("extractors/*/extractor.toml")))
def test_extractor_is_shipped_inside_the_package(names, extractor):
    modules = {path.name for path in (ROOT / "extractors" / extractor).glob("*.py")}
    assert {f"kos_retry/_extractors/{extractor}/{file}" for file in {"extractor.toml", *modules}} <= set(names)


def test_nothing_else_is_installed_beside_the_package(names):
    beside = [name for name in names if ".dist-info/" not in name and not name.startswith("kos_retry/")]
    assert ["scripts/kos-retry"] == [name.partition(".data/")[2] for name in beside]


def test_nothing_private_is_shipped(names):
    assert [] == [n for n in names if "__pycache__" in n or n.endswith(".pyc") or "/." in n or "/tests/" in n]


def test_licence_is_shipped(names):
    assert any(name.endswith("LICENSE") for name in names)


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Return the bin directory of a fresh environment with the wheel and what it needs."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("pip is not installed here")
    environment = tmp_path_factory.mktemp("fresh") / "venv"
    _ran(PYTHON, "-m", "venv", "--without-pip", str(environment))
    done = _ran(PYTHON, "-m", "pip", "--python", str(environment), "install", "--quiet", "--no-compile", str(wheel))
    assert 0 == done.returncode, done.stderr
    return environment / "bin"


def _command(installed, tmp_path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "CI")}
    environment = {**kept, "XDG_STATE_HOME": str(tmp_path / "state")}
    return _ran(str(installed / "kos-retry"), *words, cwd=tmp_path, env=environment)


def test_installed_command_keeps_the_exit_code_of_what_it_wraps(installed, tmp_path):
    done = _command(installed, tmp_path, "run", "--max-attempts", "2", "--delay", "0s", "--", "sh", "-c", "exit 3")
    assert (3, "") == (done.returncode, done.stdout), done.stderr


def test_installed_command_finds_its_extractors(installed, tmp_path):
    done = _command(installed, tmp_path, "extractors", "list", "--format", "json")
    expected = sorted(path.parent.name for path in ROOT.glob("extractors/*/extractor.toml"))
    listed = [entry["id"].replace("-", "_") for entry in json.loads(done.stdout)["extractors"]]
    assert expected == sorted(listed), done.stderr


def test_installed_extractors_answer(installed, tmp_path):
    (tmp_path / "log").write_text("error: no total\n")
    done = _command(installed, tmp_path, "extractors", "run", "tail", "--log", "log")
    assert 1 == json.loads(done.stdout)["protocol"], done.stderr
