"""Files that were named or found never block a run, and are trusted only where nobody else can change them."""

from __future__ import annotations

import os
import threading
import time

import pytest

from kos_retry import files

SECONDS = 0.2


def test_regular_file_is_read_whole(tmp_path):
    (tmp_path / "f").write_bytes(b"abc")

    assert files.read_file(str(tmp_path / "f"), 3) == b"abc"


def test_file_over_the_limit_is_refused(tmp_path):
    (tmp_path / "f").write_bytes(b"abcd")

    with pytest.raises(OSError, match="larger than 3 bytes"):
        files.read_file(str(tmp_path / "f"), 3)


def test_device_without_end_is_refused_at_the_limit():
    with pytest.raises(OSError, match="larger than 1000 bytes"):
        files.read_file("/dev/zero", 1000)


def test_pipe_without_a_writer_is_given_up(tmp_path):
    os.mkfifo(tmp_path / "f")

    with pytest.raises(OSError, match=r"nothing came from it within 0\.2s"):
        files.read_file(str(tmp_path / "f"), 1000, seconds=SECONDS)


def test_pipe_is_read_to_its_end_although_its_writer_comes_late(tmp_path):
    os.mkfifo(tmp_path / "f")
    writer = threading.Thread(target=lambda: (time.sleep(0.05), (tmp_path / "f").write_bytes(b"late")))
    writer.start()

    assert files.read_file(str(tmp_path / "f"), 1000, seconds=5.0) == b"late"
    writer.join()


@pytest.mark.parametrize("write", [files.replace_file, files.append_file])
def test_pipe_without_a_reader_is_not_waited_for(tmp_path, write):
    os.mkfifo(tmp_path / "f")

    with pytest.raises(OSError, match="No such device"):
        write(str(tmp_path / "f"), b"x")


def test_pipe_whose_reader_does_not_read_is_given_up(tmp_path):
    os.mkfifo(tmp_path / "f")
    reader = os.open(tmp_path / "f", os.O_RDONLY | os.O_NONBLOCK)
    fd = files.open_file(str(tmp_path / "f"), os.O_WRONLY)

    with pytest.raises(OSError, match=r"nobody reads it within 0\.2s"):
        files.write_all(fd, b"x" * 10_000_000, seconds=SECONDS)
    os.close(fd)
    os.close(reader)


@pytest.mark.parametrize("path", ["/", "/dev/full"])
def test_place_that_cannot_be_written_is_an_error(path):
    with pytest.raises(OSError, match=r"directory|space"):
        files.replace_file(path, b"x")


def test_replaced_link_leaves_its_target_alone(tmp_path):
    (tmp_path / "precious").write_bytes(b"keep")
    (tmp_path / "f").symlink_to(tmp_path / "precious")

    files.replace_file(str(tmp_path / "f"), b"new")

    assert ((tmp_path / "precious").read_bytes(), (tmp_path / "f").read_bytes()) == (b"keep", b"new")
    assert sorted(os.listdir(tmp_path)) == ["f", "precious"]


def test_replaced_file_keeps_its_mode(tmp_path):
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / "f").chmod(0o640)

    files.replace_file(str(tmp_path / "f"), b"new")

    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o640


def test_appended_parts_stand_one_behind_the_other(tmp_path):
    files.append_file(str(tmp_path / "f"), b"one ")
    files.append_file(str(tmp_path / "f"), b"two")

    assert (tmp_path / "f").read_bytes() == b"one two"


@pytest.mark.parametrize(("mode", "said"), [(0o644, None), (0o666, "everybody can write it"), (0o600, None)])
def test_what_everybody_can_write_is_not_trusted(tmp_path, mode, said):
    (tmp_path / "f").write_bytes(b"")
    (tmp_path / "f").chmod(mode)

    assert files.distrust(str(tmp_path / "f")) == said


def test_what_belongs_to_another_user_is_not_trusted(tmp_path):
    (tmp_path / "f").write_bytes(b"")
    owner = os.geteuid()
    if owner == 0:
        os.chown(tmp_path / "f", 65534, -1)
        assert "belongs to" in (files.distrust(str(tmp_path / "f")) or "")
    else:
        assert "belongs to" in (files.distrust(str(tmp_path / "f"), user=owner + 1) or "")
