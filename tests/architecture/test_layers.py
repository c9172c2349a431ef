"""The layers of the import contracts, and what they cannot say."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys

import pytest
from builders import PYTHON, ROOT

_EXTRACTORS = sorted((ROOT / "extractors").glob("*/*.py"))


def test_import_contracts_hold():
    if importlib.util.find_spec("importlinter") is None:
        pytest.skip("import-linter is not installed here; the session `contracts` of nox runs it")
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run([PYTHON, "-c", program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr


def _imports(path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("path", _EXTRACTORS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_extractor_imports_nothing_of_the_core_but_the_kit(path):
    core = {name for name in _imports(path) if name.split(".")[0] == "kos_retry"}
    assert set() == {name for name in core if not name.startswith(("kos_retry.sdk", "kos_retry.text"))}


@pytest.mark.parametrize("path", _EXTRACTORS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_extractor_imports_no_other_extractor(path):
    assert set() == {name for name in _imports(path) if name.split(".")[0] == "extractors"}


@pytest.mark.parametrize("path", _EXTRACTORS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_module_of_an_extractor_hides_none_of_the_standard_library(path):
    """A script's own folder comes first where modules are looked for."""
    assert path.stem not in sys.stdlib_module_names


@pytest.mark.parametrize("path", sorted((ROOT / "kos_retry" / "engine").glob("*.py")), ids=lambda path: path.stem)
def test_engine_reads_no_clock_and_draws_no_chance(path):
    """`random` is allowed for the seeded jitter alone."""
    denied = {"time", "os", "sys", "uuid", "secrets", "socket", "subprocess"} | (
        set() if path.stem == "backoff" else {"random"}
    )
    assert set() == {name for name in _imports(path) if name.split(".")[0] in denied}


def test_no_module_has_a_name_that_says_nothing():
    names = {path.stem for path in (ROOT / "kos_retry").rglob("*.py")}
    assert set() == names & {"utils", "util", "helpers", "helper", "common", "manager", "misc", "base_utils"}
