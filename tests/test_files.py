"""Files that are replaced wholly or not at all, and what is no file."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading

import pytest

from lptml._files import replacing

unix = pytest.mark.skipif(sys.platform == "win32", reason="rights, links and devices of Unix")


def write(target, text):
    with replacing(target) as temporary:
        temporary.write_text(text)


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path):
    target = tmp_path / "table.csv"
    target.write_text("old")
    with replacing(target) as temporary:
        temporary.write_text("new")
        assert target.read_text() == "old"
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".csv"
    assert target.read_text() == "new"
    assert os.listdir(tmp_path) == ["table.csv"]


@pytest.mark.parametrize("problem", [ValueError, KeyboardInterrupt])
def test_an_interrupted_write_leaves_nothing_behind(tmp_path, problem):
    target = tmp_path / "table.csv"
    target.write_text("old")

    def half():
        with replacing(target) as temporary:
            temporary.write_text("ne")
            raise problem

    with pytest.raises(problem):
        half()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["table.csv"]


def rights(path):
    return stat.S_IMODE(path.stat().st_mode)


@unix
def test_rights_and_links_stay(tmp_path):
    target, link = tmp_path / "private", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    with replacing(link) as temporary:
        assert rights(temporary) == 0o600  # from the start
        temporary.write_text("new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert rights(target) == 0o600


@unix
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_a_new_file_gets_the_rights_that_the_umask_leaves(tmp_path, mask):
    before = os.umask(mask)
    try:
        write(tmp_path / "fresh", "x")
    finally:
        os.umask(before)
    assert rights(tmp_path / "fresh") == 0o666 & ~mask


def test_the_umask_of_the_process_is_never_touched(tmp_path, monkeypatch):
    def touched(mask):
        raise AssertionError("other threads create files meanwhile")

    monkeypatch.setattr(os, "umask", touched)
    write(tmp_path / "new", "x")
    write(tmp_path / "new", "y")
    assert (tmp_path / "new").read_text() == "y"


@unix
def test_a_pipe_is_written_to(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link.csv"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    heard = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()))
    reader.start()
    with replacing(link) as temporary:
        assert temporary.suffix == ".csv"
        temporary.write_text("whole")
    reader.join()
    assert heard == ["whole"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["link.csv", "pipe"]


@unix
def test_a_character_device_is_written_to():
    primary, secondary = os.openpty()
    try:
        write(os.ttyname(secondary), "whole")
        assert os.read(primary, 100) == b"whole"
        assert stat.S_ISCHR(os.stat(os.ttyname(secondary)).st_mode)
    finally:
        os.close(primary)
        os.close(secondary)


@unix
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_is_written_to_where_it_stands(tmp_path, name):
    log = tmp_path / "log"
    log.write_text("kept\n")
    code = (
        "from lptml._files import replacing\n"
        "print('before')\n"
        f"with replacing({name!r}) as temporary:\n"
        "    temporary.write_text('whole\\n')\n"
        "print('after')\n"
    )
    with log.open("a") as stream:
        subprocess.run([sys.executable, "-c", code], stdout=stream, check=True)
    assert log.read_text() == "kept\nbefore\nwhole\nafter\n"


@unix
def test_what_can_neither_be_replaced_nor_written_to_is_refused(tmp_path):
    with pytest.raises(IsADirectoryError):
        write(tmp_path, "x")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        with pytest.raises(OSError, match="is a socket or a disk"):
            write(tmp_path / "socket", "x")
    assert os.listdir(tmp_path) == ["socket"]
