"""What the README and the tutorial show is what the commands print."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "tutorial.md")
_BLOCK = re.compile(r"^(`{3,})console\n(.*?)^\1$", re.DOTALL | re.MULTILINE)


def shown_blocks():
    return [
        pytest.param(match[2], id=f"{page.stem}-{number}")
        for page in PAGES
        for number, match in enumerate(_BLOCK.finditer(page.read_text(encoding="utf-8")), 1)
    ]


def steps(block):
    """Return the commands of a block, each with what is shown below it."""
    out = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            out.append([line[2:].rstrip("\n"), ""])
        else:
            out[-1][1] += line
    return out


@pytest.mark.parametrize("block", shown_blocks())
def test_shown_output_is_what_the_commands_print(block, tmp_path):
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "LANG": "C.UTF-8",
        "NO_COLOR": "1",
    }
    work = tmp_path / "clone"
    work.mkdir()
    for name in ("examples", "docs"):
        (work / name).symlink_to(ROOT / name)
    # One shell for the whole block, as a reader has it; the marks tell the outputs of its commands apart.
    commands = steps(block)
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
