"""What commands other than `run` write: data on standard output, one clear line on standard error."""

from __future__ import annotations

import os
import sys
from typing import Any

import orjson

from kos_retry.errors import InputError
from kos_retry.model import Wire
from kos_retry.text.escapes import printable


def write_json(value: Wire | dict[str, Any], *, indent: bool = False) -> None:
    """Write one JSON document and a newline; indented for a terminal, on one line for a pipe."""
    data = value.as_json() if isinstance(value, Wire) else value
    option = orjson.OPT_APPEND_NEWLINE | (orjson.OPT_INDENT_2 if indent or sys.stdout.isatty() else 0)
    write_bytes(orjson.dumps(data, option=option))


def write_text(text: str) -> None:
    """Write text as UTF-8, whatever the locale says."""
    write_bytes(text.encode("utf-8", "replace"))


def complain(message: str) -> None:
    """Write one line to standard error, where there is one; what it quotes is made safe to print."""
    if sys.stderr is not None:
        sys.stderr.write(f"kos-retry: {printable(message)}\n")


def write_bytes(data: bytes) -> None:
    """Write to standard output; a reader that is gone ends the command as it ends any other."""
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The interpreter flushes once more at its end; that must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise SystemExit(141) from None
    except OSError as error:
        raise InputError(f"standard output: {error.strerror}") from error
