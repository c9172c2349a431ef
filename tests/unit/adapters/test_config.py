"""Configuration files and variables: where they are looked for, what they may say, how faults in them are told."""

from __future__ import annotations

import pytest

from kos_retry.adapters.config import load, nearest
from kos_retry.errors import InputError
from kos_retry.settings import COMMAND_LINE, resolve


def _write(directory, name: str, text: str):
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def _layers(cwd, environment=None, chosen=None):
    return load(environment or {}, str(cwd), chosen).layers


def _own(tmp_path, text: str):
    """Return what a kos-retry.toml with this text says."""
    _write(tmp_path, "kos-retry.toml", text)
    return load({}, str(tmp_path), None)


@pytest.fixture(autouse=True)
def _root(tmp_path):
    """Keep the search inside the test's directory."""
    (tmp_path / ".git").mkdir()


# --- where files are found --------------------------------------------------------------------------


def test_without_files_and_variables_there_is_nothing(tmp_path):
    assert [] == _layers(tmp_path)


def test_own_file_speaks_at_its_top(tmp_path):
    path = _write(tmp_path, "kos-retry.toml", 'timeout = "5s"\n')
    assert [(str(path), {"timeout": "5s"})] == _layers(tmp_path)


def test_shared_file_speaks_in_its_table(tmp_path):
    path = _write(tmp_path, "pyproject.toml", '[project]\nname = "x"\n[tool.kos-retry]\ntimeout = "5s"\n')
    assert [(str(path), {"timeout": "5s"})] == _layers(tmp_path)


def test_both_kinds_count_and_the_shared_one_counts_more(tmp_path):
    own = _write(tmp_path, "kos-retry.toml", 'timeout = "5s"\ndelay = "1s"\n')
    shared = _write(tmp_path, "pyproject.toml", '[tool.kos-retry]\ntimeout = "7s"\n')
    assert [str(own), str(shared)] == [source for source, _ in _layers(tmp_path)]
    settings = resolve(_layers(tmp_path), {})
    assert (7.0, 1.0) == (settings.timeout, settings.delay)


def test_nearest_file_of_each_kind_counts(tmp_path):
    _write(tmp_path, "kos-retry.toml", 'timeout = "1s"\n')
    shared = _write(tmp_path, "pyproject.toml", '[tool.kos-retry]\ndelay = "1s"\n')
    nearer = _write(tmp_path / "a", "kos-retry.toml", 'timeout = "2s"\n')
    (tmp_path / "a" / "b").mkdir()
    assert [str(nearer), str(shared)] == [source for source, _ in _layers(tmp_path / "a" / "b")]


def test_search_goes_up_to_the_root_of_the_repository(tmp_path):
    path = _write(tmp_path, "kos-retry.toml", 'timeout = "1s"\n')
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert [str(path)] == [source for source, _ in _layers(tmp_path / "a" / "b")]


@pytest.mark.parametrize("kind", ["directory", "file"])
def test_search_ends_at_the_root_of_the_repository(tmp_path, kind):
    """In a linked work tree the mark of the root is a file."""
    _write(tmp_path, "kos-retry.toml", 'timeout = "1s"\n')
    (tmp_path / "a" / "b").mkdir(parents=True)
    mark = tmp_path / "a" / ".git"
    mark.mkdir() if kind == "directory" else mark.write_text("gitdir: elsewhere\n")
    assert [] == _layers(tmp_path / "a" / "b")


def test_file_in_the_root_itself_counts(tmp_path):
    _write(tmp_path, "kos-retry.toml", 'timeout = "1s"\n')
    path = _write(tmp_path / "a", "kos-retry.toml", 'timeout = "2s"\n')
    (tmp_path / "a" / ".git").mkdir()
    (tmp_path / "a" / "b").mkdir()
    assert [str(path)] == [source for source, _ in _layers(tmp_path / "a" / "b")]


def test_directory_with_the_name_of_a_file_is_passed_over(tmp_path):
    (tmp_path / "kos-retry.toml").mkdir()
    assert [] == _layers(tmp_path)


def test_directory_that_is_gone_holds_nothing():
    assert [] == load({}, "", None).layers


def test_chosen_file_stands_for_those_that_are_searched_for(tmp_path):
    _write(tmp_path, "kos-retry.toml", 'timeout = "1s"\n')
    chosen = str(_write(tmp_path, "other.toml", 'timeout = "2s"\n'))
    assert [(chosen, {"timeout": "2s"})] == _layers(tmp_path, chosen=chosen)


def test_chosen_file_that_is_missing_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"none\.toml: No such file"):
        _layers(tmp_path, chosen=str(tmp_path / "none.toml"))


# --- the shared file is none of our business ---------------------------------------------------------

_STRANGE = {
    "not-toml": "[project\nname = {{\n",
    "no-table": '[project]\nname = "x"\n',
    "table-of-another-tool": "[tool.other]\nx = 1\n",
    "our-name-in-a-list": '[project]\ndependencies = ["kos-retry"]\n',
    "empty": "",
}


@pytest.mark.parametrize("text", _STRANGE.values(), ids=_STRANGE)
def test_shared_file_that_does_not_speak_of_us_is_not_read(tmp_path, text):
    _write(tmp_path, "pyproject.toml", text)
    assert [] == [raw for _, raw in _layers(tmp_path) if raw]


def test_shared_file_that_is_not_utf8_is_none_of_our_business(tmp_path):
    (tmp_path / "pyproject.toml").write_bytes(b'name = "\xff"\n')
    assert [] == _layers(tmp_path)


def test_shared_file_that_names_us_in_a_comment_says_nothing(tmp_path):
    _write(tmp_path, "pyproject.toml", "# see tool.kos-retry\n[tool.other]\nx = 1\n")
    assert [] == [raw for _, raw in _layers(tmp_path) if raw]


_TABLES = {
    "header": '[tool.kos-retry]\ntimeout = "5s"\n',
    "dotted-keys": 'tool.kos-retry.timeout = "5s"\n',
    "quoted-header": '[tool."kos-retry"]\ntimeout = "5s"\n',
    "blanks-in-the-header": '[ tool . kos-retry ]\ntimeout = "5s"\n',
    "inline": '[tool]\nkos-retry = {timeout = "5s"}\n',
}


@pytest.mark.parametrize("text", _TABLES.values(), ids=_TABLES)
def test_table_is_found_in_any_spelling(tmp_path, text):
    _write(tmp_path, "pyproject.toml", text)
    assert [{"timeout": "5s"}] == [raw for _, raw in _layers(tmp_path)]


@pytest.mark.parametrize("text", ["tool.kos-retry = 3\n", 'tool.kos-retry = ["a"]\n', '[[tool.kos-retry]]\na = "b"\n'])
def test_table_that_is_none_is_an_error_of_the_file(tmp_path, text):
    _write(tmp_path, "pyproject.toml", text)
    with pytest.raises(InputError, match=r"pyproject\.toml"):
        _layers(tmp_path)


# --- values ----------------------------------------------------------------------------------------

_VALUES = {
    "text": ('timeout = "1m30s"', {"timeout": "1m30s"}),
    "whole-number": ("max-attempts = 5", {"max_attempts": "5"}),
    "number-with-a-point": ("backoff = 1.5", {"backoff": "1.5"}),
    "seconds-as-a-number": ("timeout = 90", {"timeout": "90"}),
    "flag": ("quiet = true", {"quiet": True}),
    "negated-flag": ("zero-delta-fail-fast = false", {"zero_delta_fail_fast": False}),
    "list": ('mask-env = ["A", "B"]', {"mask_env": ["A", "B"]}),
    "one-of-a-list": ('mask-env = "A"', {"mask_env": ["A"]}),
    "empty-list": ("mask-env = []", {"mask_env": []}),
    "empty": ("", {}),
}


@pytest.mark.parametrize(("text", "raw"), _VALUES.values(), ids=_VALUES)
def test_value_is_what_one_would_write_on_the_command_line(tmp_path, text, raw):
    assert [raw] == [raw for _, raw in _own(tmp_path, text + "\n").layers]


_WRONG = {
    "number-for-a-flag": ("quiet = 1", "quiet should be true or false"),
    "text-for-a-flag": ('quiet = "true"', "quiet should be true or false"),
    "flag-for-a-text": ("timeout = true", "timeout should be a string or a number"),
    "list-for-a-text": ('timeout = ["5s"]', "timeout should be a string or a number"),
    "date-for-a-text": ("deadline = 2026-03-01", "deadline should be a string or a number"),
    "number-for-a-list": ("mask-env = 3", "mask-env should be a list of strings"),
    "numbers-in-a-list": ("retry-on = [75]", "retry-on should be a list of strings"),
    "table-for-a-list": ('verify = {lint = "make lint"}', "verify should be a list of strings"),
    "unknown": ('tiemout = "5s"', "unknown key 'tiemout', did you mean 'timeout'?"),
    "underscores": ("max_attempts = 5", "unknown key 'max_attempts', did you mean 'max-attempts'?"),
    "unknown-and-far-from-all": ("xyzzy = 1", "unknown key 'xyzzy'"),
    "table": ("[retries]\na = 1", "unknown key 'retries'"),
    "quoted": ('"tiemout" = "5s"', "unknown key 'tiemout'"),
    "in-a-profile": ('[profiles.a]\ntiemout = "5s"', "unknown key 'tiemout', did you mean 'timeout'?"),
    "profile-that-is-no-table": ("profiles.a = 3", "a should be a table"),
}


@pytest.mark.parametrize(("text", "told"), _WRONG.values(), ids=_WRONG)
def test_fault_is_told_with_its_file(tmp_path, text, told):
    with pytest.raises(InputError) as caught:
        _own(tmp_path, text + "\n")
    assert str(caught.value).startswith(f"{tmp_path}/kos-retry.toml:")
    assert told in str(caught.value)


def test_key_that_is_near_to_none_gets_no_proposal(tmp_path):
    with pytest.raises(InputError) as caught:
        _own(tmp_path, "xyzzy = 1\n")
    assert "did you mean" not in str(caught.value)


_PLACES = {
    "first-line": ("tiemout = 1\n", 1),
    "behind-a-comment": ("# timeout\n\ntiemout = 1\n", 3),
    "indented": ("quiet = true\n  tiemout = 1\n", 2),
    "quoted": ('quiet = true\n"tiemout" = 1\n', 2),
    "behind-a-longer-key": ("delays = 1\n", 1),
    "behind-a-known-key-that-starts-alike": ('timeout = "5s"\ntime = 1\n', 2),
    "behind-a-value-that-starts-alike": ('mask-env = [\n"time",\n]\ntime = 1\n', 4),
    "in-a-profile": ('timeout = "5s"\n[profiles.a]\ntiemout = 1\n', 3),
    "same-key-twice": ('timeout = "5s"\n[profiles.a]\ntimeout = true\n', 3),
    "profile": ("quiet = true\n[profiles]\na = 3\n", 3),
}


@pytest.mark.parametrize(("text", "line"), _PLACES.values(), ids=_PLACES)
def test_fault_is_told_with_its_line(tmp_path, text, line):
    with pytest.raises(InputError) as caught:
        _own(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path}/kos-retry.toml:{line}: ")


@pytest.mark.parametrize("data", [b"timeout = \n", b"= 1\n", b'timeout = "\xff"\n'], ids=["value", "key", "encoding"])
def test_own_file_that_is_not_toml_is_an_error(tmp_path, data):
    (tmp_path / "kos-retry.toml").write_bytes(data)
    with pytest.raises(InputError, match=r"kos-retry\.toml: not valid TOML: "):
        _layers(tmp_path)


# --- profiles --------------------------------------------------------------------------------------


def test_tables_are_profiles(tmp_path):
    configuration = _own(tmp_path, 'delay = "1s"\n[profiles.nightly]\ndeadline = "2h"\nquiet = true\n')
    assert {"nightly": {"deadline": "2h", "quiet": True}} == configuration.profiles
    assert [{"delay": "1s"}] == [raw for _, raw in configuration.layers]


def test_profile_of_the_shared_file_replaces_one_of_the_same_name(tmp_path):
    _write(tmp_path, "pyproject.toml", '[tool.kos-retry.profiles.nightly]\ndeadline = "3h"\n')
    assert {"nightly": {"deadline": "3h"}} == _own(tmp_path, '[profiles.nightly]\ndeadline = "2h"\n').profiles


def test_file_can_choose_a_profile_of_its_own(tmp_path):
    configuration = _own(tmp_path, 'profile = "nightly"\n[profiles.nightly]\nmax-attempts = 7\n')
    assert 7 == resolve(configuration.layers, configuration.profiles).max_attempts


def test_file_can_choose_a_profile_of_ours(tmp_path):
    configuration = _own(tmp_path, 'profile = "wait"\n')
    assert 0 == resolve(configuration.layers, configuration.profiles).max_attempts


# --- variables -------------------------------------------------------------------------------------

_VARIABLES = {
    "text": ("TIMEOUT", "5s", {"timeout": "5s"}),
    "text-with-blanks": ("SESSION", " a ", {"session": " a "}),
    "number": ("MAX_ATTEMPTS", "5", {"max_attempts": "5"}),
    "repeatable": ("VERIFY", "lint=make lint\nmake test\n", {"verify": ["lint=make lint", "make test"]}),
    "repeatable-with-blank-lines": ("MASK_ENV", "\nA\n\nB\n", {"mask_env": ["A", "B"]}),
    "repeatable-and-empty": ("MASK_ENV", "", {"mask_env": []}),
    "flag-on": ("QUIET", "1", {"quiet": True}),
    "flag-on-in-words": ("QUIET", "Yes", {"quiet": True}),
    "flag-off": ("ZERO_DELTA_FAIL_FAST", "off", {"zero_delta_fail_fast": False}),
    "flag-off-in-words": ("QUIET", "FALSE", {"quiet": False}),
}


@pytest.mark.parametrize(("name", "text", "raw"), _VARIABLES.values(), ids=_VARIABLES)
def test_variable_is_a_layer(tmp_path, name, text, raw):
    assert [(f"$KOS_RETRY_OPT_{name}", raw)] == _layers(tmp_path, {f"KOS_RETRY_OPT_{name}": text})


def test_other_variables_of_ours_are_no_options(tmp_path):
    assert [] == _layers(tmp_path, {"KOS_RETRY_ATTEMPT": "1", "KOS_RETRY_TIMEOUT": "x", "HOME": "/h"})


def test_variables_lie_above_the_files(tmp_path):
    _write(tmp_path, "kos-retry.toml", 'timeout = "1s"\n')
    assert 2.0 == resolve(_layers(tmp_path, {"KOS_RETRY_OPT_TIMEOUT": "2s"}), {}).timeout


@pytest.mark.parametrize("text", ["", "2", "ja", "truee"])
def test_flag_in_other_words_is_refused(tmp_path, text):
    with pytest.raises(InputError, match=f"variable KOS_RETRY_OPT_QUIET: '{text}' is not true or false"):
        _layers(tmp_path, {"KOS_RETRY_OPT_QUIET": text})


def test_unknown_variable_is_told_with_the_nearest_option(tmp_path):
    with pytest.raises(InputError) as caught:
        _layers(tmp_path, {"KOS_RETRY_OPT_TIEMOUT": "5s"})
    assert str(caught.value).startswith("variable KOS_RETRY_OPT_TIEMOUT: unknown option, did you mean ")
    assert "timeout" in str(caught.value).lower().partition("did you mean")[2]


def test_bad_value_of_a_variable_is_told_with_its_name(tmp_path):
    layers = [*_layers(tmp_path, {"KOS_RETRY_OPT_TIMEOUT": "soon"}), (COMMAND_LINE, {})]
    with pytest.raises(Exception, match=r"option --timeout \(\$KOS_RETRY_OPT_TIMEOUT\): 'soon'"):
        resolve(layers, {})


@pytest.mark.parametrize(("name", "told"), [("tiemout", ", did you mean 'timeout'?"), ("xyzzy", ""), ("", "")])
def test_nearest_name_is_proposed(name, told):
    assert told == nearest(name, ["timeout", "delay"])
