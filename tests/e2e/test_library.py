"""What the page on the library shows runs."""

import subprocess
import sys
from pathlib import Path

import pytest
from shown import files

PAGE = Path(__file__).resolve().parents[2] / "docs" / "library.md"
PRINTS = {"fetch.py": "attempt 2: 12 items\n", "judge.py": "pivot_strategy zero_delta\n"}


def test_every_file_of_the_page_is_tried():
    assert sorted(PRINTS) == sorted(files(PAGE))


@pytest.mark.parametrize("name", PRINTS)
def test_file_of_the_page_prints_what_it_should(name, tmp_path):
    (tmp_path / name).write_text(files(PAGE)[name])
    done = subprocess.run([sys.executable, name], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (PRINTS[name], "") == (done.stdout, done.stderr)
