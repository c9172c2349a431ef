"""What the README and the tutorial show is what the commands print."""

from pathlib import Path

import pytest
from shown import check_block, console_blocks

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "tutorial.md")


def shown_blocks():
    return [
        pytest.param(block, id=f"{page.stem}-{number}")
        for page in PAGES
        for number, block in enumerate(console_blocks(page), 1)
    ]


@pytest.mark.parametrize("block", shown_blocks())
def test_shown_output_is_what_the_commands_print(block, tmp_path):
    work = tmp_path / "clone"
    work.mkdir()
    for name in ("examples", "docs"):
        (work / name).symlink_to(ROOT / name)
    check_block(block, tmp_path, work)
