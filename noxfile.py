"""The checks of the project; `nox` alone runs the ones that every change has to pass."""

from __future__ import annotations

import os

import nox

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["lint", "types", "contracts", "tests", "build"]
nox.options.reuse_venv = "yes"
nox.options.error_on_external_run = True

PROJECT = nox.project.load_toml("pyproject.toml")


def _group(name: str) -> list[str]:
    return list(nox.project.dependency_groups(PROJECT, name))


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and formatting."""
    session.install(*_group("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check types."""
    session.install(*_group("types"), ".")
    session.run("mypy")


@nox.session
def contracts(session: nox.Session) -> None:
    """Check that no layer imports an outer one."""
    session.install(*_group("contracts"), ".")
    session.run("lint-imports")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests, in parallel."""
    session.install(*_group("test"), ".")
    # Half of the end-to-end tests wait for processes rather than work.
    workers = str(2 * (os.cpu_count() or 1))
    session.run("pytest", "-n", workers, "--dist", "worksteal", *session.posargs)


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def signatures(session: nox.Session) -> None:
    """Check on every interpreter there is that signatures are the same to the byte."""
    session.install(*_group("test"), ".")
    session.run("pytest", "tests/unit/engine/test_signature_snapshots.py", "tests/properties/test_signatures.py")


@nox.session
def build(session: nox.Session) -> None:
    """Build the source distribution and the wheel."""
    session.install("build")
    session.run("python", "-m", "build", "--outdir", session.create_tmp(), silent=True)


@nox.session
def bench(session: nox.Session) -> None:
    """Measure; nothing here passes or fails."""
    session.install(".")
    for name in session.posargs or ("startup", "failing", "throughput", "signatures", "extraction", "economics"):
        session.run("python", f"benchmarks/{name}.py")
