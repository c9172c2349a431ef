"""What users and programs rest on: public names, help texts, schemas."""

from __future__ import annotations

import inspect
import json
import os
import re

import pytest
import typer
from builders import ROOT
from typer.testing import CliRunner

import kos_retry
from kos_retry.cli.app import app
from kos_retry.cli.schema import schema_of
from kos_retry.engine.rules import RULES
from kos_retry.model import WIRE_TYPES, Category, CauseKind, Recommendation, StopReason, Wire
from kos_retry.settings import RUN_OPTIONS

_SCHEMAS = ROOT / "docs" / "reference" / "schemas"


def _shape(name: str) -> list[str]:
    """Return the names that users of a public object write down."""
    value = getattr(kos_retry, name)
    if inspect.isclass(value) and issubclass(value, Wire):
        return list(value.__struct_fields__)
    if inspect.isclass(value) and hasattr(value, "_fields"):
        return list(value._fields)
    if inspect.isclass(value):
        return [f"{n}{_parameters(m)}" for n, m in vars(value).items() if not n.startswith("_") and callable(m)]
    return [_parameters(value)] if callable(value) else []


def _parameters(function) -> str:
    return f"({', '.join(inspect.signature(function).parameters)})"


def test_public_names_and_their_parts(snapshot):
    assert snapshot == {name: _shape(name) for name in sorted(kos_retry.__all__)}


def test_every_public_name_can_be_reached():
    assert [] == [name for name in kos_retry.__all__ if not hasattr(kos_retry, name)]


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError):
        kos_retry.no_such_name  # noqa: B018


def _commands(command, path=()):
    yield path
    for name, sub in sorted(getattr(command, "commands", {}).items()):
        yield from _commands(sub, (*path, name))


_PATHS = list(_commands(typer.main.get_command(app)))


@pytest.mark.parametrize("path", _PATHS, ids=lambda path: " ".join(path) or "kos-retry")
def test_help(path, snapshot):
    """The width is fixed: what a terminal would do to the text is not ours to test."""
    runner = CliRunner(env={"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"})
    done = runner.invoke(app, [*path, "--help"], prog_name="kos-retry", terminal_width=80)
    assert snapshot == re.sub(r"[ \t]+$", "", done.output, flags=re.MULTILINE)


def test_help_of_run_names_every_option():
    done = CliRunner(env={"COLUMNS": "200", "TERM": "dumb"}).invoke(app, ["run", "--help"])
    assert [] == [o.name for o in RUN_OPTIONS if f"--{o.name}" not in done.output]


_CLOSED_SETS = {
    "categories": Category,
    "causes": CauseKind,
    "recommendations": Recommendation,
    "stop reasons": StopReason,
}


@pytest.mark.parametrize("kind", _CLOSED_SETS.values(), ids=_CLOSED_SETS)
def test_closed_set(kind, snapshot):
    assert snapshot == [member.value for member in kind]


def test_names_of_rules_are_part_of_the_reasons(snapshot):
    assert snapshot == sorted(rule.__name__ for rule in RULES)


def _written(name: str) -> str:
    return json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("name", sorted(WIRE_TYPES))
def test_schema_in_the_reference_is_in_step(name):
    """``KOS_RETRY_WRITE_SCHEMAS=1 pytest tests/architecture/test_public_surface.py`` writes them anew."""
    path = _SCHEMAS / f"{name}.json"
    if os.environ.get("KOS_RETRY_WRITE_SCHEMAS"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_written(name), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == _written(name)


def test_reference_holds_no_schema_of_a_type_that_is_gone():
    assert sorted(WIRE_TYPES) == sorted(path.stem for path in _SCHEMAS.glob("*.json"))


@pytest.mark.parametrize("name", sorted(WIRE_TYPES))
def test_every_field_of_a_wire_type_is_in_snake_case(name):
    assert [] == [field for field in WIRE_TYPES[name].__struct_fields__ if not re.fullmatch(r"[a-z][a-z0-9_]*", field)]
