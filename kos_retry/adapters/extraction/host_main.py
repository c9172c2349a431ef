"""The shared host: a child process that loads extractor scripts and answers one request after another.

Started as a plain script, without the core: one JSON object a line on standard input
(`{"script": PATH, "request": {…}}`), one a line on standard output (`{"answer": {…}}` or `{"error": "…"}`). A line without a
request is not answered: it says what will be asked for.
The core kills it when a script does not come back, and starts another.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

_loaded: dict[str, Any] = {}


def load(script: str) -> Any:
    """Import the script at a path, once."""
    if script not in _loaded:
        name = "extractor_" + os.path.basename(os.path.dirname(script)).replace("-", "_")
        spec = importlib.util.spec_from_file_location(name, script)
        if spec is None or spec.loader is None:
            raise ImportError(f"cannot load {script}")
        module = importlib.util.module_from_spec(spec)
        # Dataclasses and pickling look a module up by its name.
        sys.modules[name] = module
        with _importable(os.path.dirname(script)):
            spec.loader.exec_module(module)
        _loaded[script] = module
    return _loaded[script]


@contextmanager
def _importable(folder: str) -> Iterator[None]:
    """Let a script import the modules beside it, as it may where it is started by itself.

    Afterwards their names are free again: those of another extractor may be called the same.
    """
    before = set(sys.modules)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        for name in set(sys.modules) - before:
            if os.path.dirname(getattr(sys.modules[name], "__file__", None) or "") == folder:
                del sys.modules[name]


def answer(task: dict[str, Any]) -> str:
    """Run the extractor that a task names, and return the line to answer."""
    from kos_retry.sdk import Request

    try:
        return json.dumps({"answer": load(task["script"]).extract(Request(task["request"])).as_json()})
    except Exception as error:  # noqa: BLE001 - one extractor's fault is an answer, the host serves the others
        return json.dumps({"error": f"{type(error).__name__}: {error}"})


def main() -> None:
    """Serve until standard input ends."""
    # What a script prints must not be read as an answer.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        task = json.loads(line)
        if "request" in task:
            out.write(answer(task) + "\n")
            out.flush()
        else:
            with suppress(Exception):
                load(task["script"])


if __name__ == "__main__":
    # Isolated mode (-I -S) knows no site-packages; the package lies three directories up.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))))
    sys.dont_write_bytecode = True
    main()
