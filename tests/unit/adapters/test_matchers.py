"""Files of problem matchers, and tables of them in a configuration."""

from __future__ import annotations

import json

import pytest
from builders import ROOT

from kos_retry.adapters.config import load
from kos_retry.adapters.matchers import extractor_options, load_matchers
from kos_retry.errors import InputError
from kos_retry.limits import MAX_MATCHER_FILE_BYTES

_PATTERN = {"regexp": r"^(\S+): (.*)$", "file": 1, "message": 2}


def _text(*owners: str, **pattern) -> str:
    return json.dumps({"problemMatcher": [{"owner": owner, "pattern": [_PATTERN | pattern]} for owner in owners]})


def _file(directory, name: str, text: str) -> str:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(text, encoding="utf-8")
    return str(directory / name)


def _owners(texts) -> list[str]:
    return [matcher["owner"] for matcher in load_matchers(texts)]


def test_files_are_read_in_order_and_later_ones_are_tried_first(tmp_path):
    one, other = _file(tmp_path, "a.json", _text("a", "b")), _file(tmp_path, "b.json", _text("c", "A"))
    assert ["A", "c", "b"] == _owners([one, other])


def test_document_may_stand_in_place_of_a_file():
    assert ["a"] == _owners([_text("a")])


def test_mark_in_front_of_a_file_is_none_of_its_text(tmp_path):
    assert ["a"] == _owners([_file(tmp_path, "a.json", "\ufeff" + _text("a"))])


_WRONG = {
    "not-json": ("{,", "{path}: not JSON: "),
    "position": ('{"problemMatcher":\n [}', "(line 2, column 3)"),
    "no-document": ("[]", "{path}: 'problemMatcher' should be a list of matchers"),
    "construct": (
        _text("lint", regexp=r"(a)(\p{L})"),
        "{path}: owner 'lint': pattern[0].regexp: the Unicode property \\p{…} is not supported",
    ),
    "too-deep": ("[" * 200_000, "{path}: not a document of matchers: nested too deeply"),
    "too-large": (" " * (MAX_MATCHER_FILE_BYTES + 1), "{path}: larger than 1.0MiB"),
}


@pytest.mark.parametrize(("text", "told"), _WRONG.values(), ids=_WRONG)
def test_fault_is_told_with_the_file(tmp_path, text, told):
    path = _file(tmp_path, "a.json", text)
    with pytest.raises(InputError) as caught:
        load_matchers([path])
    assert told.replace("{path}", path) in str(caught.value)


def test_file_in_another_encoding_is_told(tmp_path):
    (tmp_path / "a.json").write_bytes(b"\xff\xfe{")
    with pytest.raises(InputError, match=r"a\.json: 'utf-8' codec"):
        load_matchers([str(tmp_path / "a.json")])


@pytest.mark.parametrize("name", ["none.json", "."])
def test_file_that_cannot_be_read_is_told(tmp_path, name):
    with pytest.raises(InputError, match=r"No such file|Is a directory"):
        load_matchers([str(tmp_path / name)])


def test_fault_of_a_document_is_told_with_the_option():
    with pytest.raises(InputError, match=r"^option --matcher: owner 'a': pattern\[0\]\.code: 9 is not"):
        load_matchers([_text("a", code=9)])


def test_too_many_matchers_are_told_with_the_option():
    with pytest.raises(InputError, match=r"^option --matcher: there are 65 matchers"):
        load_matchers([_text(*(str(n) for n in range(65)))])


def test_matchers_are_handed_to_the_extractor_that_runs_them():
    matchers = load_matchers([_text("a")])
    assert ({"matchers": {"matchers": matchers}}, {}) == (extractor_options(matchers), extractor_options([]))


def test_examples_of_the_reference_are_valid(tmp_path):
    section = (ROOT / "docs/reference/README.md").read_text(encoding="utf-8").partition("### Problem matchers")[2]
    table = section.partition("```toml\n")[2].partition("```")[0]
    config = _file(tmp_path, "kos-retry.toml", table)
    document = section.partition("```json\n")[2].partition("```")[0]
    assert ["lint"] == _owners([_file(tmp_path, "a.json", document)])
    assert ["lint"] == _owners(load({}, str(tmp_path), config).layers[-1][1]["matcher"])


# --- configuration ---------------------------------------------------------------------------------

_TABLE = """
[[matcher]]
owner = "lint"
severity = "warning"
pattern = [{regexp = '^(\\S+): (.*)$', file = 1, message = 2}]
"""
_TABLES = """
[[matcher]]
owner = "blocks"

[[matcher.pattern]]
regexp = '^(\\S+)$'
file = 1

[[matcher.pattern]]
regexp = '^ (.*)$'
message = 1
loop = true
"""


@pytest.fixture
def configured(tmp_path):
    """Return what a configuration says about matchers."""
    (tmp_path / ".git").mkdir()

    def configure(text: str, name: str = "kos-retry.toml") -> list[str]:
        _file(tmp_path, name, text)
        return load({}, str(tmp_path), None).layers[-1][1]["matcher"]

    return configure


def test_table_is_the_document_of_one_matcher(configured):
    (matcher,) = load_matchers(configured(_TABLE))
    assert ("lint", "warning", 1) == (matcher["owner"], matcher["severity"], len(matcher["pattern"]))


def test_tables_in_tables_are_patterns(configured):
    (matcher,) = load_matchers(configured(_TABLES))
    assert [False, True] == [bool(pattern.get("loop")) for pattern in matcher["pattern"]]


def test_several_tables_are_several_matchers(configured):
    assert ["blocks", "lint"] == _owners(configured(_TABLE + _TABLES))


@pytest.mark.parametrize(
    "text", ['matcher = "ci/a.json"', 'matcher = ["ci/a.json"]', '[[matcher]]\nfile = "ci/a.json"']
)
def test_file_is_relative_to_the_configuration(configured, tmp_path, monkeypatch, text):
    _file(tmp_path / "ci", "a.json", _text("a"))
    written = configured(text + "\n")
    monkeypatch.chdir("/")
    assert ["a"] == _owners(written)


def test_file_with_a_whole_path_is_taken_as_it_is(configured):
    assert ["/x/a.json"] == configured('matcher = "/x/a.json"\n')


def test_profile_and_shared_file_can_have_matchers(tmp_path):
    (tmp_path / ".git").mkdir()
    text = "[[tool.kos-retry.profiles.night.matcher]]\n" + _TABLE.partition("[[matcher]]")[2]
    _file(tmp_path, "pyproject.toml", text)
    assert ["lint"] == _owners(load({}, str(tmp_path), None).profiles["night"]["matcher"])


_FAULTS = {
    "unknown-key": (
        '[[matcher]]\nowner = "a"\nsevrity = "error"\n',
        3,
        "unknown key 'sevrity' of a matcher, did you mean 'severity'?",
    ),
    "unknown-key-of-a-pattern": (
        '[[matcher]]\nowner = "a"\n[[matcher.pattern]]\nregexp = "a"\nmesage = 0\n',
        5,
        "unknown key 'mesage' of a matcher, did you mean 'message'?",
    ),
    "unknown-key-on-one-line": (
        '[[matcher]]\nowner = "a"\npattern = [{regexp = "a", mesage = 0}]\n',
        3,
        "unknown key 'mesage'",
    ),
    "second-table": (_TABLE + "[[matcher]]\nownr = 'b'\n", 7, "unknown key 'ownr'"),
    "second-table-with-the-key-of-the-first": (_TABLE + "\n[[matcher]]\nowner = 3\n", 7, "owner should be a text"),
    "key-in-a-value": ('[[matcher]]\nowner = "ownr = 1"\nownr = "b"\n', 3, "unknown key 'ownr'"),
    "construct": (
        "[[matcher]]\nowner = 'a'\npattern = [{regexp = '(?>a)', message = 0}]\n",
        1,
        "owner 'a': pattern[0].regexp: the atomic group (?> is not supported",
    ),
    "file-and-more": ('[[matcher]]\nowner = "a"\nfile = "a.json"\n', 3, "a matcher with a file has no other keys"),
    "file-is-no-text": ("[[matcher]]\nfile = 3\n", 1, "matcher should be a list of files or tables"),
    "number": ("matcher = 3\n", 1, "matcher should be a list of files or tables"),
    "empty": ('matcher = ""\n', 1, "matcher should be a list of files or tables"),
    "table-alone": ("[matcher]\nowner = 'a'\n", 1, "owner 'a': pattern should be a list"),
}


@pytest.mark.parametrize(("text", "line", "told"), _FAULTS.values(), ids=_FAULTS)
def test_fault_of_a_table_is_told_with_its_line(configured, tmp_path, text, line, told):
    with pytest.raises(InputError) as caught:
        configured(text)
    assert str(caught.value).startswith(f"{tmp_path}/kos-retry.toml:{line}: ")
    assert told in str(caught.value)
