"""What documents show: blocks of commands with what they print, and files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

_CONSOLE = re.compile(r"^(`{3,})console\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"^`([\w./-]+)`\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def console_blocks(page: Path) -> list[str]:
    """Return the blocks of commands of a page."""
    return [match[2] for match in _CONSOLE.finditer(page.read_text(encoding="utf-8"))]


def files(page: Path) -> dict[str, str]:
    """Return the files of a page: blocks below a line that is nothing but a path."""
    return dict(_FILE.findall(page.read_text(encoding="utf-8")))


def check_block(block: str, home: Path, work: Path) -> None:
    """Run a block's commands and hold what they print to what is shown; ``…`` stands for anything."""
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
    }
    # One shell for the whole block, as a reader has it; the marks tell the outputs of its commands apart.
    commands = _steps(block)
    script = "".join(f"_s=$?; printf '@@\\n'; (exit $_s)\n{command}\n" for command, _ in commands)
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=work,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
        check=False,
    )
    printed = done.stdout.decode().split("@@\n")[1:]
    for (command, shown), actual in zip(commands, printed, strict=True):
        pattern = re.escape(shown).replace("…", ".*")
        assert re.fullmatch(pattern, actual, re.DOTALL), f"{command}\n--- shown\n{shown}\n--- printed\n{actual}"


def _steps(block: str) -> list[tuple[str, str]]:
    """Return the commands of a block, each with what is shown below it."""
    out: list[list[str]] = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            out.append([line[2:].rstrip("\n"), ""])
        else:
            out[-1][1] += line
    return [(command, shown) for command, shown in out]
