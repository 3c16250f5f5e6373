"""A baseline holds what a project lives with; moved lines stay known, new findings do not."""

import json

from linter.conftest import MASKS, READS


def test_a_baseline_hides_what_it_holds_and_nothing_else(door):
    path = door.write("train.py", READS)
    ran = door("lint", "--write-baseline", "known.json")
    assert ran.code == 0
    assert "1 finding written to known.json" in ran.err
    ran = door("lint", "--baseline", "known.json")
    assert (ran.code, ran.lines) == (0, [])
    assert "1 known to the baseline" in ran.err
    path.write_text(READS + "        print(loss.sum().item())\n")
    assert door("lint", "--baseline", "known.json").lines == [("train.py", 12, "host-read")]


def test_moved_and_indented_lines_stay_known(door):
    path = door.write("train.py", READS)
    door("lint", "--write-baseline", "known.json")
    moved = READS.replace("import torch\n", "import math\nimport torch\n\nX = math.pi\n")
    path.write_text(moved.replace("print(loss.item())", "if True:\n            print( loss.item())".replace("( ", "(")))
    assert door("lint", "--baseline", "known.json").lines == []


def test_a_second_finding_with_the_same_text_is_new(door):
    path = door.write("train.py", READS)
    door("lint", "--write-baseline", "known.json")
    path.write_text(READS + "        print(loss.item())\n")
    assert len(door("lint", "--baseline", "known.json").lines) == 1


def test_a_renamed_file_brings_its_own_along(door):
    path = door.write("train.py", READS)
    door("lint", "--write-baseline", "known.json")
    path.rename(door.folder / "main.py")
    assert door("lint", "--baseline", "known.json").lines == []


def test_a_copied_file_does_not(door):
    door.write("train.py", READS)
    door("lint", "--write-baseline", "known.json")
    door.write("copy.py", READS)
    assert door("lint", "--baseline", "known.json").lines == [("copy.py", 11, "host-read")]


def test_the_table_names_a_baseline_relative_to_itself(door, monkeypatch):
    door.write("pyproject.toml", '[tool.syncscope.lint]\nbaseline = "lint/known.json"\n')
    door.write("lint/x.txt", "")
    door.write("src/train.py", READS)
    door("lint", "--isolated", "--write-baseline", "lint/known.json")
    assert door("lint").lines == []
    monkeypatch.chdir(door.folder / "src")
    assert door("lint").lines == []


def test_a_baseline_can_be_read_and_has_no_lines_that_change_with_every_edit(door):
    door.write("loss.py", MASKS)
    door("lint", "--write-baseline", "known.json")
    told = json.loads((door.folder / "known.json").read_text())
    assert told["version"] == 1
    (entry,) = told["findings"]["loss.py"]
    assert entry["rule"] == "nonzero"
    assert entry["code"] == "background = torch.nonzero(target == 9, as_tuple=True)"
    assert set(entry) == {"rule", "code", "fingerprint"}


def test_what_is_no_baseline_is_said_to_be_none(door):
    door.write("train.py", READS)
    door.write("bad.json", "[]")
    door.write("new.json", '{"version": 99, "findings": {}}')
    assert "cannot read the baseline none.json" in door("lint", "--baseline", "none.json").err
    assert "bad.json: not a baseline" in door("lint", "--baseline", "bad.json").err
    assert "a baseline of version 99" in door("lint", "--baseline", "new.json").err
