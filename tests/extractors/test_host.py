"""How the shared host loads scripts, and the modules beside them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conftest import Host

REQUEST: dict[str, Any] = {"protocol": 1, "streams": {}, "reports": []}
SCRIPT = """
from dataclasses import dataclass
from kos_retry.sdk import Answer
from parse import words

@dataclass
class Seen:
    word: str

def extract(request):
    answer = Answer()
    answer.add("crash", message=Seen(words()).word)
    return answer
"""


def _an_extractor(directory: Path, parse: str, script: str = SCRIPT) -> Path:
    directory.mkdir()
    (directory / "extract.py").write_text(script, encoding="utf-8")
    (directory / "parse.py").write_text(parse, encoding="utf-8")
    return directory


def _says(host: Host, extractor: Path) -> str:
    reply = host.ask(extractor, REQUEST)
    return reply["answer"]["findings"][0]["message"] if "answer" in reply else reply["error"]


def test_modules_of_two_extractors_may_be_called_the_same(host: Host, tmp_path: Path) -> None:
    extractors = [
        _an_extractor(tmp_path / name, f"def words():\n    return 'said by {name}'\n") for name in ("one", "other")
    ]

    assert ["said by one", "said by other"] * 2 == [_says(host, extractor) for extractor in extractors * 2]


def test_modules_beside_a_script_import_each_other(host: Host, tmp_path: Path) -> None:
    extractor = _an_extractor(tmp_path / "chained", "from tell import words\n")
    (extractor / "tell.py").write_text("def words():\n    return 'told'\n", encoding="utf-8")

    assert "told" == _says(host, extractor)


def test_extractor_cannot_import_the_modules_of_one_that_was_loaded_before(host: Host, tmp_path: Path) -> None:
    _says(host, _an_extractor(tmp_path / "first", "def words():\n    return 'first'\n"))
    other = _an_extractor(tmp_path / "second", "")
    (other / "parse.py").unlink()

    assert "ModuleNotFoundError: No module named 'parse'" == _says(host, other)


def test_script_that_cannot_be_loaded_leaves_nothing_behind(host: Host, tmp_path: Path) -> None:
    broken = _an_extractor(
        tmp_path / "broken", "words = lambda: 'broken'\n", script="import parse\nraise ValueError(1)\n"
    )
    other = _an_extractor(tmp_path / "whole", "def words():\n    return 'whole'\n")

    assert ["ValueError: 1", "whole"] == [_says(host, broken), _says(host, other)]
