"""Reading problem matchers: files of them, and the tables of a configuration."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kos_retry.adapters.config import Place, nearest
from kos_retry.engine.matchers import DOCUMENT_KEY, MATCHER_KEYS, PATTERN_KEYS, Matcher, read_matchers, settle_owners
from kos_retry.errors import InputError
from kos_retry.limits import MAX_MATCHER_FILE_BYTES
from kos_retry.text.durations import format_size

_OPTION = "matcher"
_FILE = "file"
# The extractor that runs them.
_EXTRACTOR = "matchers"


def load_matchers(texts: Iterable[str]) -> list[Matcher]:
    """Return the matchers of files, or of documents in place of a file's name, in the order in which they are tried.

    Raises InputError that names the file, the owner, the pattern and what is wrong with it.
    """
    out: list[Matcher] = []
    for text in texts:
        inline = text.startswith("{")
        name = f"option --{_OPTION}" if inline else text
        try:
            out += read_matchers(_parsed(text if inline else _content(text)))
        except OSError as error:
            raise InputError(f"{name}: {error.strerror}") from error
        except (InputError, ValueError) as error:
            raise InputError(f"{name}: {error}") from error
    try:
        return settle_owners(out)
    except InputError as error:
        raise InputError(f"option --{_OPTION}: {error}") from error


def extractor_options(matchers: Sequence[Matcher]) -> dict[str, dict[str, Any]]:
    """Return matchers as what is handed to the extractor that runs them."""
    return {_EXTRACTOR: {"matchers": list(matchers)}} if matchers else {}


def as_written(value: Any, where: Place) -> list[str]:
    """Return what a configuration says as one would write it on the command line.

    Names of files are relative to the configuration; a table becomes a document. Raises InputError that names file and line.
    """
    entries = value if isinstance(value, list) else [value]
    return [_entry(entry, index, where) for index, entry in enumerate(entries)]


def _entry(entry: Any, index: int, where: Place) -> str:
    if isinstance(entry, str) and entry:
        return os.path.join(where.directory, entry)
    if not isinstance(entry, dict):
        raise InputError(f"{where.inside(_OPTION, index)}: {_OPTION} should be a list of files or tables")
    _check_keys(entry, (*MATCHER_KEYS, _FILE), index, where)
    if _FILE in entry:
        if len(entry) > 1:
            raise InputError(f"{where.inside(_OPTION, index, _FILE)}: a {_OPTION} with a file has no other keys")
        return _entry(entry[_FILE], index, where)
    patterns = entry.get("pattern")
    for pattern in patterns if isinstance(patterns, list) else ():
        if isinstance(pattern, dict):
            _check_keys(pattern, PATTERN_KEYS, index, where)
    document = {DOCUMENT_KEY: [entry]}
    try:
        read_matchers(document)
    except InputError as error:
        raise InputError(f"{where.inside(_OPTION, index)}: {error}") from error
    return json.dumps(document, ensure_ascii=False)


def _check_keys(table: Mapping[str, Any], known: Sequence[str], index: int, where: Place) -> None:
    for key in table:
        if key not in known:
            place = where.inside(_OPTION, index, key)
            raise InputError(f"{place}: unknown key '{key}' of a {_OPTION}{nearest(key, known)}")


def _content(path: str) -> str:
    with open(path, "rb") as file:
        data = file.read(MAX_MATCHER_FILE_BYTES + 1)
    if len(data) > MAX_MATCHER_FILE_BYTES:
        raise ValueError(f"larger than {format_size(MAX_MATCHER_FILE_BYTES)}")
    # Editors on some systems put a mark in front.
    return data.decode("utf-8-sig")


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from error
    except RecursionError as error:
        raise ValueError("not a document of matchers: nested too deeply") from error
