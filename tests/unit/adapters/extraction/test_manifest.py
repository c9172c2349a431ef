"""Manifests: what is taken, and what the error says where it is not."""

from __future__ import annotations

import sys

import pytest

from kos_retry.adapters.extraction.extract import chosen
from kos_retry.adapters.extraction.manifest import bundled, read_manifest
from kos_retry.errors import ManifestError, UnknownNameError

_GOOD = {
    "id": '"mine"',
    "protocol": "1",
    "version": '"1.0.0"',
    "priority": "300",
    "command": '["{interpreter}", "{dir}/run.py"]',
}


@pytest.fixture
def extractor(tmp_path):
    def write(tail: str = "", **keys: str | None):
        merged = {**_GOOD, **keys}
        lines = [f"{key} = {value}\n" for key, value in merged.items() if value is not None]
        (tmp_path / "extractor.toml").write_text("".join(lines) + tail, encoding="utf-8")
        return tmp_path

    return write


def test_what_is_left_out_has_a_default(extractor):
    manifest = read_manifest(extractor())
    assert (5.0, None, "", True) == (manifest.timeout, manifest.hosted, manifest.description, manifest.match.always)


def test_places_in_the_command_are_filled_in(extractor):
    directory = extractor()
    assert [sys.executable, f"{directory.resolve()}/run.py"] == read_manifest(directory).argv()


@pytest.mark.parametrize(("text", "seconds"), [('"2s"', 2.0), ("3", 3.0), ("0.5", 0.5), ('"5m"', 300.0)])
def test_timeout_is_a_duration(extractor, text, seconds):
    assert seconds == read_manifest(extractor(timeout=text)).timeout


_WRONG = {
    "id is missing": ({"id": None}, "", "id: the key is missing"),
    "command is missing": ({"command": None}, "", "command: the key is missing"),
    "id in capitals": ({"id": '"Mine"'}, "", "id: should be 1 to 64"),
    "id too long": ({"id": f'"{"a" * 65}"'}, "", "id: should be 1 to 64"),
    "id with a line end": ({"id": '"a\\n"'}, "", "id: should be 1 to 64"),
    "id is a number": ({"id": "1"}, "", "id: should be 1 to 64"),
    "later protocol": ({"protocol": "2"}, "", "protocol: should be 1"),
    "protocol is true": ({"protocol": "true"}, "", "protocol: should be 1"),
    "no version": ({"version": '""'}, "", "version: should be a string that is not empty"),
    "priority in words": ({"priority": '"high"'}, "", "priority: should be a whole number"),
    "priority is true": ({"priority": "true"}, "", "priority: should be a whole number"),
    "negative priority": ({"priority": "-1"}, "", "priority: should be a whole number"),
    "command of a shell": ({"command": '"run.py | cat"'}, "", "command: should be a list of strings"),
    "command of nothing": ({"command": "[]"}, "", "command: should have at least one word"),
    "empty word": ({"command": '[""]'}, "", "command: should be a list of strings that are not empty"),
    "no time": ({"timeout": '"0s"'}, "", "timeout: should be more than 0s"),
    "all the time": ({"timeout": '"1h"'}, "", "timeout: should be more than 0s and at most 5m"),
    "timeout in words": ({"timeout": '"soon"'}, "", "timeout: 'soon' is not a duration"),
    "timeout is true": ({"timeout": "true"}, "", "timeout: should be a duration"),
    "unknown key": ({"colour": '"red"'}, "", "colour: there is no such key; known are id, "),
    "match is a list": ({"match": "[]"}, "", "match: should be a table"),
    "selector is a text": ({}, '[match]\ncontains = "x"\n', "match.contains: should be a list of strings"),
    "selector of nothing": ({}, '[match]\ncontains = [""]\n', "match.contains: should be a list of strings"),
    "unknown selector": ({}, '[match]\nexit = ["1"]\n', "match.exit: there is no such key; known are reports, "),
    "hook without an event": ({}, '[hook]\nstop = ["Stop"]\n', "hook.event: the key is missing"),
    "hook is a text": ({"hook": '"x"'}, "", "hook: should be a table"),
    "not TOML": ({}, "[match\n", "not valid TOML"),
}


@pytest.mark.parametrize(("keys", "tail", "said"), _WRONG.values(), ids=_WRONG)
def test_error_names_the_file_and_the_key(extractor, keys, tail, said):
    directory = extractor(tail, **keys)
    with pytest.raises(ManifestError) as caught:
        read_manifest(directory)
    assert str(caught.value).startswith(f"{directory / 'extractor.toml'}: {said}")


def test_directory_without_a_manifest_is_an_error(tmp_path):
    with pytest.raises(ManifestError, match="No such file"):
        read_manifest(tmp_path)


def test_manifest_that_is_no_text_is_an_error(tmp_path):
    (tmp_path / "extractor.toml").write_bytes(b"\xff")
    with pytest.raises(ManifestError, match="not valid TOML"):
        read_manifest(tmp_path)


def test_bundled_extractor_shares_a_host_and_another_one_does_not(extractor):
    assert {True} == {manifest.bundled for manifest in bundled()}
    assert not read_manifest(extractor()).bundled


def test_nothing_chosen_is_the_bundled_ones():
    assert (bundled(), ()) == chosen([])


def test_name_asks_for_a_bundled_one():
    name = bundled()[0].id
    assert (bundled(), (name,)) == chosen([name, name])


def test_directory_adds_one_in_sorted_order_and_asks_for_it(extractor):
    directory = extractor()
    manifests, asked = chosen([str(directory), f"{directory}/."])
    assert sorted([*(m.id for m in bundled()), "mine"]) == [m.id for m in manifests]
    assert ("mine", "mine") == asked


def test_added_one_can_be_named(extractor):
    assert ("mine", "mine") == chosen([str(extractor()), "mine"])[1]


def test_unknown_name_is_an_error():
    with pytest.raises(UnknownNameError, match="extractor 'q0000': there is none, see kos-retry extractors list"):
        chosen(["q0000"])


def test_name_that_is_nearly_one_is_mended():
    with pytest.raises(UnknownNameError, match=f"there is none, did you mean '{bundled()[0].id}'?"):
        chosen([bundled()[0].id + "s"])


def test_name_that_is_taken_is_refused(extractor):
    name = bundled()[0].id
    with pytest.raises(ManifestError, match=f"id: '{name}' is the name of another extractor"):
        chosen([str(extractor(id=f'"{name}"'))])
