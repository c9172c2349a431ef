"""The core names no tool, no language and no vendor: what they mean by their words, extractors know."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from builders import ROOT

# Languages, tools and vendors. Words that are also plain English ("go", "make", "swift", "cursor") are left out.
_DENIED = frozenset(
    """
    python cpython pypy ruby perl php java javac kotlin scala clojure golang rust rustc javascript typescript
    nodejs node deno erlang elixir haskell dotnet csharp
    pytest unittest junit testng jest mocha vitest jasmine karma cypress playwright rspec minitest phpunit
    gotest gotestsum nextest ctest surefire xunit nunit
    npm yarn pnpm pip pypi uv poetry cargo maven gradle bazel cmake ninja tox nox webpack vite babel
    eslint ruff mypy pylint flake8 clippy golangci shellcheck prettier
    gcc clang msvc llvm
    git github gitlab bitbucket gitea jenkins circleci buildkite travis azure teamcity
    docker podman kubernetes kubectl helm terraform ansible vagrant
    claude codex gemini gpt chatgpt openai anthropic copilot aider ollama mistral llama
    postgres postgresql mysql redis mongodb kafka
    stripe slack sentry twilio sendgrid
    """.split()  # noqa: SIM905 - read as a text
)
# What may stand all the same: the file, the word, and why.
_ALLOWED = {
    (
        "kos_retry/engine/redact.py",
        "github",
    ): "the published prefix of a credential; a secret must go whoever issued it",
    ("kos_retry/engine/redact.py", "npm"): "the published prefix of a credential",
    ("kos_retry/engine/redact.py", "pypi"): "the published prefix of a credential",
    ("kos_retry/adapters/config.py", "git"): "the directory that marks the root of a repository, where the search ends",
    ("kos_retry/engine/tokens.py", "node"): "a machine of a cluster, in its English sense",
    ("kos_retry/settings.py", "postgres"): "the scheme of a store's address",
    ("kos_retry/settings.py", "postgresql"): "the scheme of a store's address",
    ("kos_retry/cli/app.py", "postgresql"): "the scheme of a store's address",
    ("kos_retry/adapters/store/postgres.py", "postgres"): "the adapter of the database that runners can share",
    ("kos_retry/adapters/store/location.py", "postgres"): "chooses the adapter of the database that runners can share",
    ("kos_retry/adapters/process/runner.py", "python"): "our own interpreter, whose start changes signals",
    ("kos_retry/adapters/process/signals.py", "python"): "our own interpreter, whose start changes signals",
}


def _said(tree: ast.AST) -> Iterator[str]:
    """Yield every identifier and every string that is not a docstring."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)) and id(node) not in docstrings:
            yield node.value if isinstance(node.value, str) else node.value.decode("latin-1")
        for field in ("id", "attr", "name", "arg", "asname", "module"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                yield name


def _words(text: str) -> set[str]:
    """Return the words of a text or an identifier in lower case, ``PyPI_token`` in its parts and whole."""
    whole = re.findall(r"[A-Za-z]+", text)
    return {w.lower() for w in whole} | {p.lower() for w in whole for p in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", w)}


def _denied(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {word for text in _said(tree) for word in _words(text) & _DENIED}


_FILES = sorted(
    str(path.relative_to(ROOT)) for path in (ROOT / "kos_retry").rglob("*.py") if "_extractors" not in path.parts
)


@pytest.mark.parametrize("path", _FILES)
def test_core_names_no_tool_language_or_vendor(path):
    assert set() == {word for word in _denied(path) if (path, word) not in _ALLOWED}


@pytest.mark.parametrize(("path", "word"), _ALLOWED, ids=lambda value: value)
def test_allowance_is_still_needed(path, word):
    assert word in _denied(path)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("pytest_args = 1", {"pytest"}),
        ("x = 'run cargo test'", {"cargo"}),
        ("def read_junit(): pass", {"junit"}),
        ("import docker.client", {"docker"}),
        ("def f(gradle=1): pass", {"gradle"}),
        ("f'{x} on jenkins'", {"jenkins"}),
        ("'''About pytest.'''\ndef f():\n    '''As cargo does.'''", set()),
        ("trust = entrusted", set()),
    ],
)
def test_words_are_found_where_they_count(source, found):
    assert found == {word for text in _said(ast.parse(source)) for word in _words(text) & _DENIED}
