"""Who follows the page on extractors gets what it shows."""

import shlex
import shutil
from pathlib import Path

import pytest
from shown import check_block, console_blocks, files

PAGE = Path(__file__).resolve().parents[2] / "docs" / "writing-an-extractor.md"
# Other implementations of the shell's tools than the system's own, where they are installed.
AWKS = ("awk", "gawk", "mawk", "original-awk", "busybox awk")


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """Write the page's files, run its commands in order, and return the directory."""
    home = tmp_path_factory.mktemp("reader")
    work = home / "work"
    for name, text in files(PAGE).items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for block in console_blocks(PAGE):
        check_block(block, home, work)
    return work


def test_page_shows_whole_extractors(followed):
    assert {"stocktake", "stocktake-sh"} == {path.parent.name for path in followed.glob("*/extractor.toml")}


@pytest.mark.parametrize("awk", AWKS)
def test_shell_needs_no_particular_awk(followed, kos_retry, awk, tmp_path):
    program, *arguments = awk.split()
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed here")
    own = tmp_path / "bin" / "awk"
    own.parent.mkdir()
    own.write_text(f'#!/bin/sh\nexec {shlex.join([found, *arguments])} "$@"\n')
    own.chmod(0o755)
    environment = {"PATH": f"{own.parent}:{kos_retry.environment['PATH']}"}
    options = ("--log", str(followed / "stocktake.log"))
    by_shell, by_kit = (
        kos_retry("extractors", "run", str(followed / name), *options, environment=environment)
        for name in ("stocktake-sh", "stocktake")
    )
    assert by_kit.json == by_shell.json


def test_quotes_and_backslashes_in_a_message_are_told_as_they_are(followed, kos_retry):
    log = b'checking shelf-x ... ERROR: scanner "C:\\temp" \xc3\xa9 is offline\n'
    done = kos_retry("extractors", "run", str(followed / "stocktake-sh"), "--log", "-", stdin=log)
    assert ['scanner "C:\\temp" é is offline'] == [finding["message"] for finding in done.json["findings"]]
