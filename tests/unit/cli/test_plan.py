"""What a dry run and `config show` print."""

from __future__ import annotations

import json

import pytest

from kos_retry.cli import plan
from kos_retry.engine.backoff import Schedule
from kos_retry.settings import COMMAND_LINE, RUN_OPTIONS, Check, read_value, resolve


@pytest.fixture
def printed(monkeypatch):
    """Return what was printed, in place of standard output."""
    out = []
    monkeypatch.setattr(plan, "write_text", out.append)
    monkeypatch.setattr(plan, "write_json", lambda value: out.append(json.dumps(value)))
    return out


def _settings(**raw):
    return resolve([(COMMAND_LINE, raw)], {})


_PLANS = {
    "defaults": {},
    "seed": {"seed": "7", "max_attempts": "5"},
    "equal-jitter": {"jitter": "equal", "max_attempts": "4"},
    "no-jitter": {"jitter": "none", "max_attempts": "6", "max_delay": "10s"},
    "one-attempt": {"max_attempts": "1"},
    "uncapped": {"max_attempts": "0", "deadline": "10m", "timeout": "90s", "jitter": "none"},
    "wait": {"profile": "wait"},
    "everything-said": {
        "verify": ["lint=make lint", "make test"],
        "report": ["json:out.json"],
        "quiet": True,
        "zero_delta_fail_fast": False,
        "max_prompt_bytes": "2KiB",
    },
}


@pytest.mark.parametrize("raw", _PLANS.values(), ids=_PLANS)
def test_plan(printed, raw, snapshot):
    plan.show_plan(_settings(**raw), ["make", "a b", "it's"])
    assert snapshot == "".join(printed).splitlines()


def test_seeded_plan_shows_the_waits_of_the_run(printed):
    settings = _settings(seed="7", max_attempts="4")
    plan.show_plan(settings, ["make"])
    waits = [float(line.rpartition(": ")[2][:-1]) for line in "".join(printed).splitlines() if "wait before" in line]
    schedule = Schedule(settings.delay, settings.backoff, settings.max_delay, settings.jitter, 7)
    assert [True] * 3 == [abs(wait - schedule.delay(n)) < 0.06 for n, wait in enumerate(waits, 1)]


def test_command_cannot_write_to_the_terminal(printed):
    plan.show_plan(_settings(), ["a\x1b[31m", "::error::b\n::error::c"])
    assert [] == [line for line in "".join(printed).splitlines() if "\x1b" in line or line.startswith("::")]


def test_every_value_is_shown_with_its_source(printed):
    plan.show_config(_settings(delay="2s"), "text")
    lines = "".join(printed).splitlines()
    assert [o.name for o in RUN_OPTIONS] == [line.partition(" = ")[0] for line in lines]
    assert "delay = 2s  (command line)" in lines


def test_values_and_sources_as_json(printed):
    plan.show_config(_settings(delay="2s", quiet=True), "json")
    shown = json.loads("".join(printed))
    assert {"value": "2s", "source": "command line"} == shown["delay"]
    assert [True, None, []] == [shown[name]["value"] for name in ("quiet", "timeout", "verify")]


_WRITTEN = {
    "max-attempts": "5",
    "timeout": "1h30m",
    "kill-after": "500ms",
    "delay": "250ms",
    "backoff": "1.5",
    "seed": "7",
    "verify": ["lint=make lint", "make test", "a b=c"],
    "require": ["end=^done$"],
    "report": ["json:a:b.json"],
    "retry-on": ["exit:1,2", "output:a|b"],
    "max-prompt-bytes": "2KiB",
    "session": "build-7",
    "jitter": "none",
    "quiet": True,
}


@pytest.mark.parametrize(("name", "given"), _WRITTEN.items(), ids=_WRITTEN)
def test_value_that_is_shown_means_the_same_when_it_is_written(name, given):
    option = next(o for o in RUN_OPTIONS if o.name == name)
    settings = _settings(**{option.field: given})
    again = read_value(option, plan.shown(option, settings))
    assert _plain(settings.values[option.field]) == _plain(again)


def _plain(value):
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return (value.name, value.text) if isinstance(value, Check) else value


def test_password_of_the_store_is_not_shown(printed):
    settings = _settings(store="postgresql://ci:staple-horse@db/kos")
    plan.show_config(settings, "text")
    plan.show_config(settings, "json")
    plan.show_plan(settings, ["make"])
    assert (True, False) == ("postgresql://ci:[redacted]@db/kos" in printed[0], "staple" in "".join(printed))
