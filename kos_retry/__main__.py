"""The entry point: `run` goes straight to its command and `hook` to its answer, everything else through Typer."""

from __future__ import annotations

import os
import sys

_OWN_FAULT = 125


def main() -> None:
    """Run the command line and end the process with its status."""
    _forget_strangers()
    if os.name != "posix":
        sys.stderr.write("kos-retry: this is not a POSIX system; kos-retry needs process groups and signals\n")
        sys.exit(_OWN_FAULT)
    words = sys.argv[1:]
    if words[:1] == ["run"] and "_KOS_RETRY_COMPLETE" not in os.environ:
        status = _run(words[1:])
        if status is not None:
            _leave(status)
    if words[:1] == ["hook"] and "--help" not in words and "_KOS_RETRY_COMPLETE" not in os.environ:
        # An agent waits for it at every call of a tool.
        from kos_retry.cli.hook import main as hook

        hook(words[1:])
        return
    from kos_retry.cli.app import main as typer_main

    typer_main()


def _forget_strangers() -> None:
    """Take what PYTHONPATH names off our own search path: it is meant for the command, and a module there may be anything."""
    given = os.environ.get("PYTHONPATH")
    if given:
        strange = {os.path.abspath(entry or ".") for entry in given.split(os.pathsep)}
        strange.discard(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") not in strange]


def _run(words: list[str]) -> int | None:
    """Return the status of `run`, or None where help was asked for."""
    from kos_retry.cli.options import HelpAskedError
    from kos_retry.cli.run import run
    from kos_retry.errors import KosRetryError
    from kos_retry.report.terminal import tell

    try:
        return run(words)
    except HelpAskedError:
        return None
    except KosRetryError as error:
        tell(str(error))
    except Exception as error:
        tell(f"internal error: {type(error).__name__}: {error}; please report it, KOS_RETRY_DEBUG=1 shows where")
        if "KOS_RETRY_DEBUG" in os.environ:
            raise
    return _OWN_FAULT


def _leave(status: int) -> None:
    """End at once: nothing is buffered, and taking the interpreter apart costs more than a short command."""
    os._exit(status)


if __name__ == "__main__":
    main()
