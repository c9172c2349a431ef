"""Formats of hooks: what a manifest says of them, and what is read with that."""

from __future__ import annotations

import pytest

from kos_retry.adapters.extraction.hook_format import HookEvent, HookFormat, read_hook_format
from kos_retry.adapters.extraction.manifest import bundled
from kos_retry.errors import ManifestError

_TABLE = {
    "event": "what",
    "stop": ["Ended"],
    "called": ["Did"],
    "failed": ["Failed"],
    "again": "more.again",
    "tool": "tool",
    "input": "given",
    "response": "got",
    "error": "got.error",
    "block": {"no": "{text}", "really": True},
    "context": {"inner": {"of": "{event}", "say": "{text}"}},
}
_CALL = {"what": "Did", "tool": "shell", "given": {"cmd": "make"}, "got": {"out": "ok"}}

_EVENTS = {
    "stop": ({"what": "Ended"}, HookEvent("stop", "Ended")),
    "stop again": ({"what": "Ended", "more": {"again": True}}, HookEvent("stop", "Ended", again=True)),
    "flag of another type": ({"what": "Ended", "more": {"again": "yes"}}, HookEvent("stop", "Ended")),
    "path through no object": ({"what": "Ended", "more": "again"}, HookEvent("stop", "Ended")),
    "call": (_CALL, HookEvent("called", "Did", None, "shell", {"cmd": "make"}, {"out": "ok"})),
    "call with an error": (
        {**_CALL, "got": {"error": "no"}},
        HookEvent("failed", "Did", None, "shell", {"cmd": "make"}, {"error": "no"}),
    ),
    "failed call": ({"what": "Failed", "tool": 7}, HookEvent("failed", "Failed")),
    "another event": ({"what": "Began"}, None),
    "no event": ({}, None),
    "event of another type": ({"what": ["Ended"]}, None),
}


@pytest.mark.parametrize(("data", "expected"), _EVENTS.values(), ids=_EVENTS)
def test_event_is_read(data, expected):
    assert expected == read_hook_format(_TABLE).read(data)


def test_answers_have_the_shape_that_the_manifest_says():
    form = read_hook_format(_TABLE)
    event = HookEvent("called", "Did")
    assert {"no": "go on {event}", "really": True} == form.answer("block", event, "go on {event}")
    assert {"inner": {"of": "Did", "say": "look"}} == form.answer("context", event, "look")


_WRONG = {
    "no table": ([], "should be a table"),
    "no event": ({"stop": []}, "event: the key is missing"),
    "no stop": ({"event": "x"}, "stop: the key is missing"),
    "unknown key": ({**_TABLE, "colour": "red"}, "colour: there is no such key; known are event, "),
    "empty field": ({**_TABLE, "tool": ""}, "tool: should be a string that is not empty"),
    "names in a text": ({**_TABLE, "stop": "Ended"}, "stop: should be a list of strings"),
    "answer in a text": ({**_TABLE, "block": "{text}"}, "block: should be a table"),
}


@pytest.mark.parametrize(("table", "said"), _WRONG.values(), ids=_WRONG)
def test_error_names_the_key(table, said):
    with pytest.raises(ManifestError) as caught:
        read_hook_format(table)
    assert str(caught.value).startswith(said)


def test_bundled_formats_do_not_answer_for_each_other():
    formats = [m.hook for m in bundled() if m.hook]
    names = [(f.event, name) for f in formats for name in (*f.stop, *f.called, *f.failed)]
    assert len(names) == len(set(names))


def test_every_bundled_format_can_answer():
    def texts(value):
        return [t for v in value.values() for t in texts(v)] if isinstance(value, dict) else [value]

    formats: list[HookFormat] = [m.hook for m in bundled() if m.hook]
    assert formats
    assert all("{text}" in texts(shape) for f in formats for shape in (f.block, f.context))
