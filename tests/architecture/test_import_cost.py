"""What the way to the wrapped command imports: a wrapper is paid on every run that passes."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from builders import PYTHON, ROOT

_RUN = """
import sys
sys.path.insert(0, {root!r})
sys.argv = ["kos-retry", "run", "--", "true"]
from kos_retry import limits
# How long the command takes on this machine must not matter here.
limits.WARM_UP_SECONDS = 3600.0
from kos_retry.__main__ import main
main()
"""
# An agent waits for it at every call of a tool.
_HOOK = """
import io, os, sys
sys.path.insert(0, {root!r})
# As the command of a run is told.
os.environ.update(KOS_RETRY_SESSION="s1", KOS_RETRY_STATE_DIR=os.getcwd())
sys.argv = ["kos-retry", "hook"]
sys.stdin = io.TextIOWrapper(io.BytesIO(b'{{"hook_event_name": "PostToolUse", "tool_name": "Bash"}}'))
from kos_retry.__main__ import main
main()
"""
_IMPORTED = re.compile(r"^import time:\s+\d+ \|\s+\d+ \|\s+(\S+)$", re.MULTILINE)
_DENIED = (
    "argparse",
    "asyncio",
    "base64",
    "dataclasses",
    "datetime",
    "difflib",
    "email",
    "enum",
    "hashlib",
    "inspect",
    "json",
    "kos_retry.adapters.extraction",
    "kos_retry.cli.app",
    "kos_retry.engine.decide",
    "kos_retry.model",
    "kos_retry.ports",
    "logging",
    "orjson",
    "pathlib",
    "msgspec",
    "random",
    "re",
    "rich",
    "selectors",
    "shlex",
    "shutil",
    "signal",
    "socket",
    "sqlite3",
    "subprocess",
    "tempfile",
    "threading",
    "tomllib",
    "traceback",
    "typer",
    "typing",
    "unicodedata",
    "uuid",
    "xxhash",
)
# Of the standard library; what else the interpreter itself brings along at its start is not counted.
_MAX_OWN_MODULES = 40


def _imported(script: str, tmp_path, *flags: str) -> set[str]:
    done = subprocess.run(
        [PYTHON, *(flags or ("-S", "-I")), "-X", "importtime", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    )
    return set(_IMPORTED.findall(done.stderr))


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    directory = tmp_path_factory.mktemp("state")
    return _imported(_RUN.format(root=str(ROOT)), directory) - _imported("pass", directory)


def test_the_run_was_seen(imported):
    assert {"kos_retry.loop", "kos_retry.adapters.process.runner"} <= imported


@pytest.mark.parametrize("module", _DENIED)
def test_command_that_passes_never_pays_for(module, imported):
    assert set() == {name for name in imported if name == module or name.startswith(module + ".")}


def test_way_to_the_command_stays_short(imported):
    assert len([name for name in imported if name.startswith("kos_retry")]) <= _MAX_OWN_MODULES


@pytest.mark.parametrize(
    "module",
    [
        "typer",
        "rich",
        "kos_retry.cli.app",
        "kos_retry.cli.run",
        "kos_retry.engine.normalise",
        "kos_retry.report",
        "sqlite3",
    ],
)
def test_hook_that_is_told_of_a_call_never_pays_for(module, tmp_path):
    imported = _imported(_HOOK.format(root=str(ROOT)), tmp_path, "-I")
    assert "kos_retry.adapters.hook_record" in imported
    assert set() == {name for name in imported if name == module or name.startswith(module + ".")}


def test_importing_the_package_costs_nothing(tmp_path):
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import kos_retry"
    assert {"kos_retry"} == _imported(script, tmp_path) - _imported("import __future__", tmp_path)


@pytest.mark.parametrize("module", ["kos_retry.sdk", "kos_retry.text.escapes", "kos_retry.text.durations"])
def test_what_extractors_import_needs_no_package(module, tmp_path):
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {module}"
    heavy = {"msgspec", "orjson", "xxhash", "rich", "typer", "kos_retry.model", "kos_retry.engine"}
    assert set() == heavy & _imported(script, tmp_path)
