"""Files that are replaced wholly or not at all."""

from __future__ import annotations

import os
import stat
import sys

import pytest

from lptml._files import replacing


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

    def write():
        with replacing(target) as temporary:
            temporary.write_text("ne")
            raise problem

    with pytest.raises(problem):
        write()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["table.csv"]


@pytest.mark.skipif(sys.platform == "win32", reason="rights and links of Unix")
def test_rights_and_links_stay(tmp_path):
    target, link = tmp_path / "private", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    with replacing(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    mask = os.umask(0o022)
    try:
        with replacing(tmp_path / "fresh") as temporary:
            temporary.write_text("x")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "fresh").stat().st_mode) == 0o644
