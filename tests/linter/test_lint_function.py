"""`syncscope.lint`: the linter for programs."""

import gc
import os
import subprocess
import sys

import pytest
from linter.conftest import MASKS, READS

import syncscope


def test_lint_takes_files_and_folders_and_which_rules(door):
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


def test_the_caller_finds_his_interpreter_as_it_was(door):
    door.write("large.py", READS + "#" * 200_000)  # so much that circles of garbage are looked for seldom
    limit, thresholds = sys.getrecursionlimit(), gc.get_threshold()
    assert syncscope.lint(".", source=MASKS + "x = " + "-" * 3000 + "1\n")
    assert len(syncscope.lint(".")) == 1
    assert (sys.getrecursionlimit(), gc.get_threshold(), gc.get_freeze_count()) == (limit, thresholds, 0)


LEFT_BEHIND = """
import gc, syncscope
gc.disable()
for _ in range(2):  # once there is what is made once
    gc.collect()
    for _ in range(5):
        assert len(syncscope.lint(".", all=True)) == 5
        syncscope.lint(source="import torch")
print(gc.collect())
"""


def test_what_a_file_leaves_behind_is_freed_without_the_garbage_collector(door, monkeypatch):
    monkeypatch.setenv("SYNCSCOPE_CACHE_DIR", os.devnull)
    forward = (
        "class Layer(torch.nn.Module):\n    def forward(self, x):\n        return x[x > 0], x.sum().item(), float(x[0])"
    )
    door.write("layers.py", f"import torch\n\n\n{forward}\n")
    door.write("train.py", f"from layers import Layer\n{READS}{MASKS}")
    # in a process of its own: the last projects are kept, and elsewhere those of other tests would go meanwhile
    left = subprocess.run([sys.executable, "-c", LEFT_BEHIND], capture_output=True, text=True, check=True).stdout
    assert int(left) < 100  # a tree is thousands, each time
