"""`syncscope.lint`: the linter for programs."""

import sys

import pytest
from linter.conftest import MASKS, READS

import syncscope


def test_files_and_folders(door):
    door.write("train.py", READS)
    door.write("src/loss.py", MASKS)
    found = syncscope.lint(".")
    assert [(str(f.place), f.rule) for f in found] == [("train.py:11", "host-read"), ("src/loss.py:6", "nonzero")]
    assert syncscope.lint("train.py", ignore=["host-read"]) == []
    assert syncscope.lint(door.folder / "src", select=["host-read"]) == []


def test_a_piece_of_source(door):
    (found,) = syncscope.lint(source=MASKS)
    assert found.place == syncscope.Place("<source>", 6)
    assert found.fix.safety is syncscope.Safety.SAFE
    assert syncscope.lint("x.py", source=READS.encode())[0].place.path == "x.py"


def test_what_cannot_be_read_raises(door):
    with pytest.raises(syncscope.UserError, match=r"there is no 'nowhere\.py'"):
        syncscope.lint("nowhere.py")
    (door.folder / "dangling.py").symlink_to("nothing.py")
    with pytest.raises(syncscope.UserError, match=r"dangling\.py: No such file"):
        syncscope.lint("dangling.py")
    with pytest.raises(syncscope.UserError, match="no rule is called"):
        syncscope.lint(source="", select=["nonsense"])


def test_the_folder_named_linter_does_not_hide_the_function():
    assert callable(syncscope.lint)
    assert "syncscope.lint" not in sys.modules
