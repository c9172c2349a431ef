"""The option table, how values are read, and which layer wins."""

from __future__ import annotations

import pytest

from kos_retry.errors import UsageError
from kos_retry.settings import (
    BY_NAME,
    COMMAND_LINE,
    DEFAULT,
    PROFILES,
    RUN_OPTIONS,
    Check,
    drop_nested_retries,
    read_value,
    resolve,
)

_FILE, _VARIABLE = "/w/kos-retry.toml", "$KOS_RETRY_OPT_DELAY"
_INSIDE = {"KOS_RETRY_ATTEMPT": "1", "KOS_RETRY_MARK": "m"}


def _plain(value):
    """Return a value in which checks can be compared."""
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return (value.name, value.text) if isinstance(value, Check) else value


def _read(name: str, given):
    return _plain(read_value(BY_NAME[name], given))


# For every option: what is taken, and what it means; what is refused.
_READERS = {
    "matcher": ({"lint.json": "lint.json", "{}": "{}"}, [""]),
    "max-attempts": ({"0": 0, "7": 7, "9" * 18: int("9" * 18)}, ["-1", "1.5", "", "٣", "9" * 19, "9" * 5000, "one"]),
    "timeout": ({"90": 90.0, "1h30m": 5400.0, "500ms": 0.5}, ["0s", "0", "", "5 parsecs", "-1s", "inf", "9" * 40]),
    "kill-after": ({"0s": 0.0, "2s": 2.0}, ["", "soon", "-1"]),
    "deadline": ({"10m": 600.0}, ["0s", "", "later"]),
    "delay": ({"0s": 0.0, "250ms": 0.25}, ["", "nan", "1 s x"]),
    "backoff": ({"1": 1.0, "1.5": 1.5, "1e6": 1e6}, ["0.5", "0", "-2", "nan", "inf", "1e7", "", "two"]),
    "max-delay": ({"0s": 0.0, "1d": 86400.0}, ["", "1y"]),
    "jitter": ({"full": "full", "equal": "equal", "none": "none"}, ["", "Full", "some"]),
    "seed": ({"0": 0, "42": 42}, ["-1", "", "x"]),
    "retry-on": (
        {"exit:1,75,100-110": "exit:1,75,100-110", "timeout": "timeout"},
        ["", "exit", "exit:", "when:ever", "exit:256", "output:("],
    ),
    "stop-on": ({"signal:KILL": "signal:KILL", "output:a|b": "output:a|b"}, ["signal:", "cause:bad luck"]),
    "verify": ({"true": ("true", "true"), "lint=make lint": ("lint", "make lint")}, [""]),
    "require": ({"done": ("done", "done"), "end=^done$": ("end", "^done$")}, ["", "(", "name=("]),
    "forbid": ({"WARN": ("WARN", "WARN"), "w=WARN": ("w", "WARN")}, ["", "[", "*"]),
    "flaky-result": ({"pass": "pass", "fail": "fail"}, ["", "maybe"]),
    "collect": ({"out/*.xml": "out/*.xml"}, [""]),
    "pivot": ({"make clean": "make clean"}, [""]),
    "on-pivot": ({"stop": "stop", "retry": "retry"}, ["", "go"]),
    "retry-command": ({"make failed": "make failed"}, [""]),
    "gate": ({"ask": "ask"}, [""]),
    "on-escalate": ({"ask": "ask"}, [""]),
    "done": ({"^DONE$": "^DONE$"}, ["", "("]),
    "max-cost-usd": ({"0.5": 0.5, "10": 10.0}, ["", "0", "-1", "nan", "inf", "much"]),
    "max-tokens": ({"1000": 1000}, ["", "0", "-1", "1k"]),
    "max-failures": ({"3": 3}, ["", "0", "x"]),
    "max-transient-retries": ({"0": 0, "5": 5}, ["", "-1"]),
    "max-repeated-actions": ({"3": 3}, ["", "0"]),
    "actions": ({"log.jsonl": "log.jsonl"}, [""]),
    "transcript": ({"auto": "auto", "klingon": "klingon"}, [""]),
    "extractor": ({"my-tool": "my-tool", "./ci/my-tool": "./ci/my-tool"}, [""]),
    "max-stagnant-attempts": ({"1": 1}, ["0", "-1", ""]),
    "max-identical-signatures": ({"2": 2}, ["0", "x"]),
    "guidance": ({d: d for d in ("none", "stdin", "env", "file", "arg", "append")}, ["", "mail"]),
    "max-prompt-bytes": ({"2048": 2048, "2KiB": 2048, "0": 0}, ["", "much", "-1", "1e3x"]),
    "max-prompt-tokens": ({"0": 0, "512": 512}, ["-1", "", "1k"]),
    "tty": ({"auto": "auto", "always": "always", "never": "never"}, ["", "yes"]),
    "session": ({"build-7": "build-7", "a" * 64: "a" * 64}, ["", "../x", "-a", "a" * 65, "ä", "a b", "a\n"]),
    "state-dir": ({"/srv/x": "/srv/x", "x": "x"}, [""]),
    "store": (
        {u: u for u in ("none", "sqlite:/srv/s.db", "sqlite:s.db", "postgresql://ci@db/kos", "postgres://u:p@h/d")},
        ["", "None", "sqlite:", "s.db", "/srv/s.db", "mysql://h/d", "postgresql:h"],
    ),
    "report": ({"json:a:b.json": ("json", "a:b.json"), "text:-": ("text", "-")}, ["", "json:", "out", "yaml:out"]),
    "mask-env": ({"DB_URL": "DB_URL"}, [""]),
    "nested": ({"auto": "auto", "keep": "keep", "drop": "drop"}, ["", "no"]),
    "profile": ({"ci": "ci", "nightly": "nightly"}, [""]),
    "config": ({"a.toml": "a.toml"}, [""]),
}
_TAKEN = [(name, text, value) for name, (good, _) in _READERS.items() for text, value in good.items()]
_REFUSED = [(name, text) for name, (_, bad) in _READERS.items() for text in bad]


def _given(name: str, text: str):
    return [text] if BY_NAME[name].many else text


def test_every_option_with_a_value_has_a_row():
    assert sorted(o.name for o in RUN_OPTIONS if o.read) == sorted(_READERS)


@pytest.mark.parametrize(("name", "text", "value"), _TAKEN, ids=lambda v: str(v)[:24])
def test_value_is_read(name, text, value):
    assert ([value] if BY_NAME[name].many else value) == _read(name, _given(name, text))


@pytest.mark.parametrize(("name", "text"), _REFUSED, ids=lambda v: v[:24])
def test_bad_value_is_refused_with_the_name_of_its_option(name, text):
    with pytest.raises(UsageError, match=rf"^option --{name}(?: \(command line\))?: "):
        resolve([(COMMAND_LINE, {BY_NAME[name].field: _given(name, text)})], {})


def test_number_of_many_digits_is_refused_in_our_own_words():
    with pytest.raises(UsageError, match="is not a whole number of at least 0"):
        resolve([(COMMAND_LINE, {"max_attempts": "9" * 5000})], {})


@pytest.mark.parametrize("option", [o for o in RUN_OPTIONS if o.read is None], ids=lambda o: o.name)
def test_flag_is_what_was_said(option):
    assert [True, False] == [read_value(option, True), read_value(option, False)]


def test_names_are_unique():
    assert len(RUN_OPTIONS) == len(BY_NAME) == len({o.field for o in RUN_OPTIONS})


def test_options_of_a_section_stand_together():
    sections = [o.section for o in RUN_OPTIONS]
    assert len(set(sections)) == sum(one != other for one, other in zip(sections, [None, *sections], strict=False))


def test_value_of_every_option_is_an_attribute():
    settings = resolve([], {})
    assert settings.values == {o.field: getattr(settings, o.field) for o in RUN_OPTIONS}


def test_without_layers_the_written_defaults_hold():
    settings = resolve([], {})
    assert {o.field: _plain(read_value(o, o.default)) for o in RUN_OPTIONS} == settings.values
    assert {DEFAULT} == set(settings.sources.values())


# --- checks ----------------------------------------------------------------------------------------

_CHECKS = {
    "text-alone": ("make lint", ("make lint", "make lint")),
    "name": ("lint=make lint", ("lint", "make lint")),
    "name-with-signs": ("a.b_c-1=x", ("a.b_c-1", "x")),
    "equals-in-the-text": ("lint=A=1 make", ("lint", "A=1 make")),
    "name-that-starts-with-a-digit": ("1=x", ("1=x", "1=x")),
    "name-that-starts-with-a-dash": ("-a=x", ("-a=x", "-a=x")),
    "name-with-a-blank": ("a b=x", ("a b=x", "a b=x")),
    "name-in-another-script": ("ä=x", ("ä=x", "ä=x")),
    "equals-first": ("=x", ("=x", "=x")),
    "equals-last": ("a=", ("a=", "a=")),
    "comparison": ("test $x == y", ("test $x == y", "test $x == y")),
}


@pytest.mark.parametrize(("text", "expected"), _CHECKS.values(), ids=_CHECKS)
def test_check_has_a_name_or_is_its_own(text, expected):
    assert [expected] == _read("verify", [text])


# --- layers ----------------------------------------------------------------------------------------

# Rising precedence; each gives a value of its own.
_LAYERS = {
    DEFAULT: "1s",
    "a file": "2s",
    "the nearer file": "3s",
    "profile mine": "4s",
    "$KOS_RETRY_OPT_DELAY": "5s",
    COMMAND_LINE: "6s",
}


def _resolved(upto: int):
    """Return the settings of the first so many layers, given in an order that says nothing."""
    names = list(_LAYERS)[: upto + 1]
    layers = [(n, {"delay": _LAYERS[n]}) for n in names if n not in (DEFAULT, "profile mine")]
    layers.append(("$KOS_RETRY_OPT_PROFILE", {"profile": "mine"}))
    profiles = {"mine": {"delay": _LAYERS["profile mine"]} if "profile mine" in names else {}}
    return resolve(layers, profiles)


@pytest.mark.parametrize("upto", range(len(_LAYERS)), ids=list(_LAYERS))
def test_highest_layer_wins(upto):
    assert float(upto + 1) == _resolved(upto).delay


@pytest.mark.parametrize("upto", range(len(_LAYERS)), ids=list(_LAYERS))
def test_source_is_the_layer_that_won(upto):
    assert list(_LAYERS)[upto] == _resolved(upto).sources["delay"]


def test_layers_that_speak_of_other_options_leave_each_other_alone():
    settings = resolve([(_FILE, {"delay": "2s"}), (COMMAND_LINE, {"timeout": "9s"})], {})
    assert (2.0, 9.0, 3) == (settings.delay, settings.timeout, settings.max_attempts)


def test_repeatable_option_of_a_higher_layer_replaces_the_lower_one():
    settings = resolve([(_FILE, {"mask_env": ["A", "B"]}), (COMMAND_LINE, {"mask_env": ["C"]})], {})
    assert ["C"] == settings.mask_env


def test_flag_of_a_higher_layer_can_take_back_one_of_a_lower():
    settings = resolve([(_FILE, {"quiet": True}), (COMMAND_LINE, {"quiet": False})], {})
    assert settings.quiet is False


@pytest.mark.parametrize("source", [_FILE, _VARIABLE, "profile mine"])
def test_error_names_the_option_and_the_source(source):
    layers = [(source, {"delay": "soon"})]
    profiles = {}
    if source == "profile mine":
        layers, profiles = [(COMMAND_LINE, {"profile": "mine"})], {"mine": {"delay": "soon"}}
    with pytest.raises(UsageError) as caught:
        resolve(layers, profiles)
    assert str(caught.value).startswith(f"option --delay ({source}): 'soon' is not a duration")


def test_error_on_the_command_line_needs_no_source():
    with pytest.raises(UsageError, match=r"^option --delay: "):
        resolve([(COMMAND_LINE, {"delay": "soon"})], {})


def test_bad_value_that_a_higher_layer_replaces_does_no_harm():
    assert 2.0 == resolve([(_FILE, {"delay": "soon"}), (COMMAND_LINE, {"delay": "2s"})], {}).delay


# --- profiles --------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [_FILE, _VARIABLE, COMMAND_LINE])
def test_profile_can_be_chosen_in_any_layer(source):
    assert 0 == resolve([(source, {"profile": "wait"})], {}).max_attempts


def test_unknown_profile_is_told_with_its_source_and_the_known_ones():
    with pytest.raises(UsageError) as caught:
        resolve([(_FILE, {"profile": "nightli"})], {"nightly": {}})
    assert f"option --profile ({_FILE}): there is no profile 'nightli'; known are agent, ci, nightly, wait" == str(
        caught.value
    )


def test_profile_of_the_configuration_replaces_one_of_ours():
    assert 7 == resolve([(COMMAND_LINE, {"profile": "ci"})], {"ci": {"max_attempts": "7"}}).max_attempts


def test_name_of_the_profile_is_the_one_that_holds():
    settings = resolve([(_FILE, {"profile": "mine"})], {"mine": {"profile": "wait", "delay": "2s"}})
    assert ("mine", 2.0, 3) == (settings.profile, settings.delay, settings.max_attempts)


_PROFILES = {
    "ci": {"max_attempts": 3, "deadline": None, "guidance": "none", "retry_on": []},
    "wait": {
        "max_attempts": 0,
        "deadline": 600.0,
        "delay": 2.0,
        "backoff": 1.0,
        "jitter": "none",
        "retry_on": ["exit:1-125,128-255", "timeout"],
    },
    "agent": {"max_attempts": 0, "guidance": "env"},
}


@pytest.mark.parametrize("name", PROFILES)
def test_profile_bundles(name):
    settings = resolve([(COMMAND_LINE, {"profile": name})], {})
    assert _PROFILES[name] == {field: settings.values[field] for field in _PROFILES[name]}


@pytest.mark.parametrize("name", PROFILES)
def test_profile_touches_only_what_it_bundles(name):
    settings, plain = resolve([(COMMAND_LINE, {"profile": name})], {}), resolve([], {})
    touched = {f for f in settings.values if settings.values[f] != plain.values[f]} - {"profile"}
    assert touched <= set(PROFILES[name])


# --- a run inside a run ----------------------------------------------------------------------------

_NESTED = {
    "outside": ({}, [], False),
    "inside": (_INSIDE, [], True),
    "marks-incomplete": ({"KOS_RETRY_ATTEMPT": "1"}, [], False),
    "attempts-asked-for-here": (_INSIDE, [(COMMAND_LINE, {"max_attempts": "5"})], False),
    "condition-asked-for-here": (_INSIDE, [(COMMAND_LINE, {"retry_on": ["timeout"]})], False),
    "profile-asked-for-here": (_INSIDE, [(COMMAND_LINE, {"profile": "wait"})], False),
    "something-else-asked-for-here": (_INSIDE, [(COMMAND_LINE, {"timeout": "5s"})], True),
    "attempts-of-a-file": (_INSIDE, [(_FILE, {"max_attempts": "5"})], True),
    "attempts-of-a-variable": (_INSIDE, [("$KOS_RETRY_OPT_MAX_ATTEMPTS", {"max_attempts": "5"})], True),
    "profile-of-a-variable": (_INSIDE, [("$KOS_RETRY_OPT_PROFILE", {"profile": "wait"})], True),
    "keep": (_INSIDE, [(_FILE, {"nested": "keep"})], False),
    "drop": (_INSIDE, [(COMMAND_LINE, {"nested": "drop", "max_attempts": "5"})], True),
    "drop-outside": ({}, [(COMMAND_LINE, {"nested": "drop", "max_attempts": "5"})], False),
}


@pytest.mark.parametrize(("environment", "layers", "dropped"), _NESTED.values(), ids=_NESTED)
def test_retries_are_left_to_the_outer_run(environment, layers, dropped):
    settings = resolve(layers, {})
    drop_nested_retries(settings, environment)
    assert (dropped, dropped) == (settings.retries_dropped, settings.max_attempts == 1)


def test_what_is_shown_is_what_holds_inside_another_run():
    settings = resolve([], {})
    drop_nested_retries(settings, _INSIDE)
    assert settings.max_attempts == settings.values["max_attempts"]


def test_password_in_a_value_that_is_refused_is_not_repeated():
    with pytest.raises(UsageError, match="redacted") as refused:
        resolve([(COMMAND_LINE, {"store": "mysql://ci:staple-horse@db/kos"})], {})
    assert "staple" not in str(refused.value)
