"""Reading what callers hand in: files, standard input, JSON in all its forms, with errors that name the place."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import orjson

from kos_retry.adapters import state
from kos_retry.cli.output import complain
from kos_retry.errors import InputError
from kos_retry.limits import MAX_INPUT_BYTES, READ_BYTES
from kos_retry.model import Wire
from kos_retry.outcome import Captured
from kos_retry.text.durations import format_size

if TYPE_CHECKING:
    from kos_retry.adapters.own_rules import OwnRules

Model = TypeVar("Model", bound=Wire)
_STDIN = "-"


def read_bytes(source: str) -> bytes:
    """Return the content of a file, or of standard input for ``-``.

    Raises InputError that names the file and what is wrong with it; larger than the limit is wrong.
    """
    name = "standard input" if source == _STDIN else source
    try:
        if source == _STDIN:
            data = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
        else:
            with Path(source).open("rb") as file:
                data = file.read(MAX_INPUT_BYTES + 1)
    except OSError as error:
        raise InputError(f"{name}: {error.strerror}") from error
    if len(data) > MAX_INPUT_BYTES:
        raise InputError(f"{name}: larger than {format_size(MAX_INPUT_BYTES)}")
    return data


def read_log(source: str) -> Captured:
    """Return what is kept of a log, however large it is: the same as of a command's output."""
    from kos_retry.adapters.process.capture import captured

    if source == _STDIN:
        return captured(_chunks(sys.stdin.buffer))
    try:
        with Path(source).open("rb") as file:
            return captured(_chunks(file))
    except OSError as error:
        raise InputError(f"{source}: {error.strerror}") from error


def state_root(given: str | None) -> str:
    """Return the state directory that `run` would use here: the given one, that of the run around us, else the configured one.

    Raises InputError for a configuration that is not what it should be.
    """
    if given or state.VARIABLE in os.environ:
        return state.state_directory(given, os.environ)
    from kos_retry.cli.run import configuration_of
    from kos_retry.settings import resolve

    configuration = configuration_of({}, os.environ)
    settings = resolve(configuration.layers, configuration.profiles)
    return state.state_directory(settings.state_dir, os.environ)


def own_rules() -> OwnRules:
    """Return the rules for signatures of the configuration that holds here."""
    from kos_retry.adapters.own_rules import OwnRules
    from kos_retry.cli.run import configuration_of

    return OwnRules(configuration_of({}, os.environ).token_rules, complain)


def kept(text: str) -> Captured:
    """Return what is kept of an output that came as text; of most that is all."""
    from kos_retry.adapters.process.capture import captured

    data = text.encode("utf-8", "surrogatepass")
    return captured(data[at : at + READ_BYTES] for at in range(0, len(data), READ_BYTES))


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(READ_BYTES):
        yield chunk


def lines(source: str) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of standard input or a file with their numbers; blank ones are left out.

    A line that is larger than the limit is yielded cut, so that it fails to parse; the next one is read as
    usual.
    """
    try:
        stream = sys.stdin.buffer if source == _STDIN else Path(source).open("rb")  # noqa: SIM115 - closed below
    except OSError as error:
        raise InputError(f"{source}: {error.strerror}") from error
    try:
        number = 0
        while line := stream.readline(MAX_INPUT_BYTES):
            number += 1
            while not line.endswith(b"\n") and (rest := stream.readline(MAX_INPUT_BYTES)):
                line = line[:MAX_INPUT_BYTES] + (b"\n" if rest.endswith(b"\n") else b"")
            if line.strip():
                yield number, line
    except OSError as error:
        raise InputError(f"{source}: {error.strerror}") from error
    finally:
        if source != _STDIN:
            stream.close()


def parse_json(data: bytes, where: str) -> Any:
    """Return the JSON value in ``data``; raises InputError that names the position of the first fault."""
    text = data.decode("utf-8", "replace")
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        value, fault = _lenient(text)
        if fault is None:
            return value
        raise InputError(f"{where}: not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from error


def _lenient(text: str) -> tuple[Any, str | None]:
    """Read JSON that only the strict reader refuses: lone surrogates and numbers beyond 64 bits."""
    try:
        return json.loads(text, parse_constant=lambda name: name), None
    except (ValueError, RecursionError) as error:
        return None, str(error)


def parse_model(kind: type[Model], value: Any, where: str) -> Model:
    """Return ``value`` as a wire type; raises InputError that names the field and what it should have been."""
    try:
        return kind.from_json(value)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    except RecursionError as error:
        raise InputError(f"{where}: nested too deeply") from error
