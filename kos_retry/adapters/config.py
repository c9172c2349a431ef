"""Configuration: `kos-retry.toml`, `[tool.kos-retry]` in pyproject.toml, and `KOS_RETRY_OPT_*`.

Keys are the names of the options; `[profiles.NAME]` tables hold sets of them, `[[mask]]` and `[[keep]]` the own rules for signatures. A TOML reader is imported only where a file is there and,
for a pyproject.toml, speaks of us.
"""

from __future__ import annotations

import os

from kos_retry.errors import InputError
from kos_retry.settings import BY_FIELD, BY_NAME, Option, Raw, TokenRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

OWN_FILE = "kos-retry.toml"
SHARED_FILE = "pyproject.toml"
PREFIX = "KOS_RETRY_OPT_"
# A table can be written in several ways; a file without this word has none of ours.
_NAME = b"kos-retry"
_PROFILES = "profiles"
_RULES = ("keep", "mask")
_RULE_KEYS = ("name", "pattern")
_RULE_NAME_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz-")
_RULE_NAME_LENGTH = 32
# The one option that can be a list of tables.
_MATCHER = "matcher"
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


class Configuration:
    """What the files and the environment say: layers in rising precedence, the profiles of the files, and their rules for signatures."""

    def __init__(self) -> None:
        self.layers: list[tuple[str, Raw]] = []
        self.profiles: dict[str, Raw] = {}
        self.token_rules: list[TokenRule] = []


def load(environment: Mapping[str, str], cwd: str, chosen: str | None) -> Configuration:
    """Return the configuration that holds in ``cwd``; ``chosen`` is a file instead of the ones that are searched for.

    Raises InputError that names the file, the line and the nearest known key.
    """
    out = Configuration()
    for path in [chosen] if chosen else _files(cwd):
        _add_file(out, path, missing_is_wrong=chosen is not None)
    out.layers += _environment(environment)
    return out


def _files(cwd: str) -> list[str]:
    """Return the nearest file of each kind, from ``cwd`` up to the root of the repository or of the file system."""
    found: dict[str, str] = {}
    directory = cwd
    while directory:
        for name in (OWN_FILE, SHARED_FILE):
            path = os.path.join(directory, name)
            if name not in found and os.path.isfile(path):
                found[name] = path
        parent = os.path.dirname(directory)
        if parent == directory or os.path.exists(os.path.join(directory, ".git")):
            break
        directory = parent
    return [found[name] for name in (OWN_FILE, SHARED_FILE) if name in found]


def _add_file(out: Configuration, path: str, *, missing_is_wrong: bool) -> None:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        if missing_is_wrong:
            raise InputError(f"{path}: {error.strerror}") from error
        return
    shared = os.path.basename(path) == SHARED_FILE
    if shared and not _speaks_of_us(data):
        return
    table: Mapping[str, Any] = _parsed(path, data)
    where = Place(path, data, ("tool", "kos-retry") if shared else ())
    if shared:
        table = _table(_table(table, "tool", where), "kos-retry", where)
    profiles = _table(table, _PROFILES, where)
    for kind in _RULES:
        out.token_rules += _token_rules(kind, table.get(kind, []), where)
    own = {key: value for key, value in table.items() if key not in (_PROFILES, *_RULES)}
    out.layers.append((path, _raw(own, where)))
    for name in profiles:
        values = _table(profiles, name, where.below(_PROFILES))
        out.profiles[name] = _raw(values, where.below(_PROFILES, name))


def _speaks_of_us(data: bytes) -> bool:
    """Return whether a shared file may hold our table, without reading the rest of it."""
    if _NAME not in data:
        return False
    lines = [line.strip() for line in data.splitlines() if _NAME in line]
    if any(b"tool" in line for line in lines):
        return True
    # Inside a table of tools the name stands alone.
    return b"[tool]" in data and any(line.lstrip(b"\"'").startswith(_NAME) for line in lines)


def _table(table: Mapping[str, Any], key: str, where: Place) -> Mapping[str, Any]:
    """Return a table inside a table, empty where there is none; raises InputError for anything else of that name."""
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise InputError(f"{where.of(key)}: {key} should be a table")
    return value


def _parsed(path: str, data: bytes) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not valid TOML: {error}") from error


class Place:
    """Where in a file a key of one table stands."""

    def __init__(self, path: str, data: bytes, table: tuple[str, ...]) -> None:
        self._path = path
        self.directory = os.path.dirname(os.path.abspath(path))
        self._data = data
        self._table = table

    def below(self, *names: str) -> Place:
        """Return the place of a table inside this one."""
        return Place(self._path, self._data, (*self._table, *names))

    def of(self, key: str) -> str:
        """Return ``path:line`` of the line that sets ``key`` in the table, or the path where it is not found."""
        current: tuple[str, ...] = ()
        for number, line in enumerate(self._data.decode("utf-8", "replace").splitlines(), 1):
            text = line.strip()
            if text.startswith("["):
                current = _names(text.strip("[] ").partition("]")[0])
                if current == (*self._table, key):
                    return f"{self._path}:{number}"
            elif "=" in text and (*current, *_names(text.partition("=")[0]))[: len(self._table) + 1] == (
                *self._table,
                key,
            ):
                return f"{self._path}:{number}"
        return self._path

    def inside(self, key: str, index: int, name: str | None = None) -> str:
        """Return ``path:line`` of the table at ``index`` of the list of tables ``key``, or of what sets ``name`` in it."""
        import re

        lines = self._data.decode("utf-8", "replace").splitlines()
        starts = [number for number, line in enumerate(lines, 1) if _opens(line) == (*self._table, key)]
        if index >= len(starts):
            return self.of(key)
        end = starts[index + 1] - 1 if index + 1 < len(starts) else len(lines)
        setting = re.compile(rf"(?:^|[{{,.])\s*[\"']?{re.escape(name or '')}[\"']?\s*=")
        found = (n for n in range(starts[index], end + 1) if name and setting.search(lines[n - 1]))
        return f"{self._path}:{next(found, starts[index])}"


def _opens(line: str) -> tuple[str, ...]:
    """Return the name of the list of tables that a line adds one to, empty for any other line."""
    text = line.strip()
    return _names(text.strip("[] ").partition("]")[0]) if text.startswith("[[") else ()


def _names(dotted: str) -> tuple[str, ...]:
    """Return the parts of a dotted key without their quotes."""
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def _token_rules(kind: str, tables: Any, where: Place) -> Iterable[TokenRule]:
    """Yield the rules of the `[[mask]]` or `[[keep]]` tables; raises InputError that says which one is wrong, and how."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InputError(f"{where.of(kind)}: {kind} should be an array of tables, [[{kind}]]")
    for number, table in enumerate(tables, 1):
        try:
            yield _token_rule(table, keeps=kind == "keep")
        except ValueError as error:
            raise InputError(f"{where.of(kind)}: [[{kind}]] number {number}: {error}") from error


def _token_rule(table: Mapping[str, Any], *, keeps: bool) -> TokenRule:
    from kos_retry.engine.conditions import check_expression

    for key in table:
        if key not in _RULE_KEYS:
            raise ValueError(f"unknown key '{key}'{nearest(key, _RULE_KEYS)}")
    name, pattern = (_rule_text(table, key) for key in _RULE_KEYS)
    if not set(name) <= _RULE_NAME_CHARS or len(name) > _RULE_NAME_LENGTH or not name[0].isalpha():
        raise ValueError(f"name '{name}' should be up to {_RULE_NAME_LENGTH} small letters and hyphens")
    check_expression(pattern)
    return TokenRule(name, pattern, keeps=keeps)


def _rule_text(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{key} is missing" if value is None else f"{key} should be a text that is not empty")
    return value


def _raw(table: Mapping[str, Any], where: Place) -> Raw:
    out: Raw = {}
    for key, value in table.items():
        option = BY_NAME.get(key)
        if option is None:
            raise InputError(f"{where.of(key)}: unknown key '{key}'{nearest(key, BY_NAME)}")
        if key == _MATCHER:
            from kos_retry.adapters.matchers import as_written

            out[option.field] = as_written(value, where)
        else:
            out[option.field] = _value(option, value, where.of(key))
    return out


def _value(option: Option, value: Any, place: str) -> str | bool | list[str]:
    """Return a TOML value as one would write it on the command line."""
    if option.read is None:
        if not isinstance(value, bool):
            raise InputError(f"{place}: {option.name} should be true or false")
        return value
    if option.many:
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(v, str) for v in values):
            raise InputError(f"{place}: {option.name} should be a list of strings")
        return values
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise InputError(f"{place}: {option.name} should be a string or a number")
    return str(value)


def _environment(environment: Mapping[str, str]) -> Iterable[tuple[str, Raw]]:
    """Yield a layer for each variable; a repeatable option takes one value a line."""
    for name in sorted(environment):
        if not name.startswith(PREFIX):
            continue
        field = name[len(PREFIX) :].lower()
        option = BY_FIELD.get(field)
        if option is None:
            raise InputError(f"variable {name}: unknown option{nearest(field, BY_FIELD)}")
        yield f"${name}", {field: _from_variable(option, name, environment[name])}


def _from_variable(option: Option, name: str, text: str) -> str | bool | list[str]:
    if option.many:
        return [line for line in text.splitlines() if line]
    if option.read is not None:
        return text
    if text.lower() not in _TRUE | _FALSE:
        raise InputError(f"variable {name}: '{text}' is not true or false")
    return text.lower() in _TRUE


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``, did you mean X?`` for the known name that is closest, or nothing."""
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), 1)
    return f", did you mean '{close[0]}'?" if close else ""
