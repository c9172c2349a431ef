"""Where sessions live, and what may name one."""

from __future__ import annotations

import pytest

from kos_retry.adapters import state
from kos_retry.errors import InputError, StateError

_PLACES = {
    "chosen": ("/srv/state", {"XDG_STATE_HOME": "/x"}, "/srv/state"),
    "of-the-run-around-us": (None, {"KOS_RETRY_STATE_DIR": "/srv/run", "XDG_STATE_HOME": "/x"}, "/srv/run"),
    "chosen-inside-of-a-run": ("/srv/state", {"KOS_RETRY_STATE_DIR": "/srv/run"}, "/srv/state"),
    "of-the-user": (None, {"XDG_STATE_HOME": "/x"}, "/x/kos-retry"),
    "relative-is-ignored": (None, {"XDG_STATE_HOME": "x", "HOME": "/home/u"}, "/home/u/.local/state/kos-retry"),
    "home": (None, {"HOME": "/home/u"}, "/home/u/.local/state/kos-retry"),
}


@pytest.mark.parametrize(("chosen", "environment", "expected"), _PLACES.values(), ids=_PLACES)
def test_state_directory(chosen, environment, expected):
    assert expected == state.state_directory(chosen, environment)


@pytest.mark.parametrize("name", ["a", "build-7", "A.b_c", "0", "a" * 64])
def test_good_session_id(name):
    assert name == state.check_session_id(name)


@pytest.mark.parametrize("name", ["", ".", "..", "-a", "_a", "a/b", "../a", "a b", "ä", "a\n", "a" * 65])
def test_bad_session_id_is_refused(name):
    with pytest.raises(InputError, match="an id is 1 to 64"):
        state.check_session_id(name)


def test_new_id_is_a_good_one_that_sorts_by_time():
    first, second = state.new_session_id(1_772_352_942, b"\xff" * 4), state.new_session_id(1_772_352_943, b"\0" * 4)
    assert first == state.check_session_id(first) < second


def test_file_is_replaced_whole(tmp_path):
    path = tmp_path / "a"
    path.write_text("longer than what follows")
    state.write_private(str(path), b"new")
    assert ["a"] == [p.name for p in tmp_path.iterdir()]
    assert "new" == path.read_text()


def test_directory_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="file/below"):
        state.make_private(str(tmp_path / "file" / "below"))
