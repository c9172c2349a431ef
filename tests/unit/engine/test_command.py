"""Which command lines are one command."""

from __future__ import annotations

import pytest

from kos_retry.engine.command import command_fingerprint

_SAME = {
    "workspaces": (["/home/a/shop/run.sh"], ["/builds/7/shop/run.sh"]),
    "temporary": (["check", "/tmp/tmp.Ab3dE9/x.db"], ["check", "/tmp/tmp.Zz8yX1/x.db"]),
    "seed": (["check", "--seed=12345"], ["check", "--seed=54321"]),
    "id": (["check", "6f9619ff-8b86-d011-b42d-00cf4fc964ff"], ["check", "0e37df36-f698-11e6-8dd4-cb9ced3df976"]),
    "script": (["sh", "-c", "cd /home/a/shop\nmake"], ["sh", "-c", "cd /builds/7/shop\nmake"]),
}
_DIFFERENT = {
    "word": (["make", "check"], ["make", "all"]),
    "order": (["make", "a", "b"], ["make", "b", "a"]),
    "split": (["make", "a b"], ["make", "a", "b"]),
    "shard": (["check", "--shard=1"], ["check", "--shard=2"]),
    "nothing-more": (["make"], ["make", ""]),
    "long-scripts": (["sh", "-c", "a" * 9000 + "1"], ["sh", "-c", "a" * 9000 + "2"]),
}


@pytest.mark.parametrize(("one", "other"), _SAME.values(), ids=_SAME)
def test_place_and_time_do_not_count(one, other):
    assert command_fingerprint(one) == command_fingerprint(other)


@pytest.mark.parametrize(("one", "other"), _DIFFERENT.values(), ids=_DIFFERENT)
def test_words_and_their_order_count(one, other):
    assert command_fingerprint(one) != command_fingerprint(other)


def test_fingerprint_names_its_version():
    assert command_fingerprint(["make"]).startswith("c0:")
