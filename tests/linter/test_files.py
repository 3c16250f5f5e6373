"""Which files are linted: folders, globs, .gitignore, links, and what cannot be read."""

import os

import pytest
from linter.conftest import READS


def linted(door, *args: str) -> list[str]:
    return sorted(path for path, _, _ in door("lint", *args).lines)


def test_folders_are_walked_without_what_is_nobodys_source(door):
    nobodys = ".git/d.py node_modules/e.py build/lib/e.py env/lib/f.py .hidden/g.py"
    for name in ("a.py", "deep/er/b.py", "c.txt", *nobodys.split()):
        door.write(name, READS)
    door.write("env/pyvenv.cfg", "")
    assert linted(door) == [".hidden/g.py", "a.py", "deep/er/b.py"]


def test_gitignore_is_respected_at_every_level(door):
    (door.folder / ".git").mkdir()
    door.write(".gitignore", "build/\n*_gen.py\n!keep_gen.py\n# a comment\n/top.py\n")
    door.write("pkg/.gitignore", "local.py\n!x_gen.py\n")
    for name in (
        "build/a.py",
        "b_gen.py",
        "keep_gen.py",
        "top.py",
        "pkg/top.py",
        "pkg/local.py",
        "pkg/x_gen.py",
        "c.py",
    ):
        door.write(name, READS)
    assert linted(door) == ["c.py", "keep_gen.py", "pkg/top.py", "pkg/x_gen.py"]
    assert linted(door, "pkg") == ["pkg/top.py", "pkg/x_gen.py"]
    assert linted(door, "build/a.py") == ["build/a.py"], "what is named itself is linted"


def test_a_pattern_that_is_none_ends_nothing(door):
    (door.folder / ".git").mkdir()
    door.write(".gitignore", "!\nb.py\n\\\n")
    for name in ("a.py", "b.py"):
        door.write(name, READS)
    assert linted(door) == ["a.py"]


def test_gitignore_can_be_switched_off(door):
    (door.folder / ".git").mkdir()
    door.write(".gitignore", "a.py")
    door.write("a.py", READS)
    door.write("pyproject.toml", "[tool.syncscope.lint]\nrespect-gitignore = false\n")
    assert linted(door) == ["a.py"]


def test_globs_are_resolved_here_too(door):
    for name in ("src/a.py", "src/deep/b.py", "src/deep/c.txt", "other/d.py"):
        door.write(name, READS)
    assert linted(door, "src/**/*.py") == ["src/a.py", "src/deep/b.py"]
    assert linted(door, "s*") == ["src/a.py", "src/deep/b.py"]


def test_a_file_is_linted_once_however_often_it_is_named(door):
    door.write("a.py", READS)
    (door.folder / "b.py").symlink_to("a.py")
    assert linted(door, "a.py", ".", "./a.py", "b.py") == ["a.py"]


def test_loops_of_links_end(door):
    door.write("pkg/a.py", READS)
    (door.folder / "pkg/again").symlink_to("..")
    (door.folder / "round.py").symlink_to("round.py")
    (door.folder / "dangling.py").symlink_to("nothing.py")
    assert linted(door) == ["pkg/a.py"]


def test_a_linked_folder_that_is_left_out_is_named(door):
    door.write("src/a.py", "import torch\n")
    door.write("elsewhere/waits.py", READS)
    (door.folder / "src/models").symlink_to(door.folder / "elsewhere", target_is_directory=True)
    ran = door("lint", "src")
    assert (ran.code, ran.lines) == (0, [])
    assert "not followed: src/models, a link to a folder; name it to lint it, or `exclude` it" in ran.err
    assert linted(door, "src", "src/models") == ["src/models/waits.py"]
    for said in (["src", "src/models"], ["src", "elsewhere"], ["."]):
        assert "not followed" not in door("lint", *said).err, "what it leads to is linted"
    (door.folder / "src/more").symlink_to(door.folder / "elsewhere", target_is_directory=True)
    assert "not followed: src/models and 1 more, which are links to folders;" in door("lint", "src").err
    door.write("pyproject.toml", '[tool.syncscope.lint]\nexclude = ["src/mo*"]\n')
    assert "not followed" not in door("lint", "src").err


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_linted(door, monkeypatch):
    door.write("a.py", READS)
    (door.folder / "dangling.py").symlink_to("nothing.py")
    ran = door("lint", "a.py", "dangling.py")
    assert ran.code == 2
    assert "error: dangling.py: No such file or directory" in ran.err
    assert ran.lines == [("a.py", 11, "host-read")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_listed_is_named(door):
    door.write("a.py", READS)
    door.write("closed/b.py", READS)
    (door.folder / "closed").chmod(0)
    ran = door("lint")
    (door.folder / "closed").chmod(0o700)
    assert ran.code == 2
    assert "closed: Permission denied" in ran.err
    assert ran.lines == [("a.py", 11, "host-read")]


def test_an_empty_folder_is_clean(door):
    ran = door("lint")
    assert (ran.code, ran.out) == (0, "")
    assert "no files to lint" in ran.err


def test_a_folder_that_is_named_and_holds_nothing_to_lint_is_no_pass(door):
    (door.folder / "empty").mkdir()
    door.write("left_out/a.py", READS)
    door.write(".gitignore", "left_out/\n")
    (door.folder / ".git").mkdir()
    for named in ("empty", "left_out"):
        ran = door("lint", named, "--exit-zero")
        assert (ran.code, ran.out) == (2, "")
        assert f"no files to lint in {named}" in ran.err
    assert door("lint", "empty", "--force-exclude").code == 0
    door.write("b.py", READS)
    assert door("lint", "empty", "b.py").lines == [("b.py", 11, "host-read")]


def test_a_file_that_is_named_has_to_be_python_whatever_it_speaks_of(door):
    door.write("broken.py", "for i in range(9:\n    pass\n")
    door.write("old.py", "print 9\n")
    door.write("fine.py", "print(9)\n")
    door.write("LICENSE", "Copyright (c) those who wrote it\n")
    for given in ([], ["--no-cache"], ["--fix"]):
        ran = door("lint", "broken.py", "old.py", "fine.py", "LICENSE", *given)
        assert ran.code == 1
        assert ran.lines == [("broken.py", 1, "syntax-error"), ("old.py", 1, "syntax-error")]
        assert "not read: 1 file that names neither torch nor OpenCL" in ran.err
    ran = door("lint", ".")
    assert (ran.code, ran.lines) == (0, [])
    assert "not read: 3 files that name neither torch nor OpenCL" in ran.err


def test_a_file_that_has_torch_by_a_star_alone_is_read(door):
    door.write("base.py", "import torch as t\nfrom torch import nn\n")
    door.write(
        "own.py",
        "from base import *\n\n\ndef step(loss, opt):\n    loss.backward()\n    opt.step()\n    return loss.item()\n",
    )
    assert door("lint", ".").lines == [("own.py", 7, "host-read")]


def test_what_is_called_like_nothing_that_is_linted_is_left_out_and_named(door):
    door.write("a.py", READS)
    door.write("README.md", "# Uses torch: see the [guide](guide.md)\n")
    door.write("notes.rst", "torch\n=====\n")
    ran = door("lint", "README.md", "a.py", "notes.rst")
    assert (ran.code, ran.lines) == (1, [("a.py", 11, "host-read")])
    assert "README.md and 1 more: left out, neither Python nor a notebook nor OpenCL C" in ran.err
    alone = door("lint", "README.md")
    assert (alone.code, alone.out) == (2, "")
    assert "README.md is neither Python nor a notebook nor OpenCL C" in alone.err


@pytest.mark.parametrize("name", ["train", "train.pyi", "TRAIN.PY", "train.in"])
def test_a_program_that_is_named_is_linted_whatever_it_is_called(door, name):
    door.write(name, f"#!/usr/bin/env python3\n{READS}")
    assert door("lint", name).lines == [(name, 12, "host-read")]


def test_a_file_in_utf_16_is_no_python_and_is_said_so(door):
    for name, encoding in (("a.py", "utf-16"), ("b.py", "utf-16-le"), ("c.py", "utf-16-be")):
        door.write(name, READS.encode(encoding))
    door.write("d.py", "# nothing of the kind".encode("utf-16"))
    ran = door("lint")
    assert [(path, rule) for path, _, rule in ran.lines] == [(f"{name}.py", "syntax-error") for name in "abc"]
    assert ran.code == 1


def test_a_file_that_names_no_torch_is_read_where_it_does_what_tensors_do(door):
    step = "    def train_step(self, x, y):\n        sup_loss = self.ce_loss(self.model(x), y)\n"
    door.write(
        "algorithm.py", f"from base import Base\n\n\nclass Full(Base):\n{step}        self.log(sup_loss.item())\n"
    )
    door.write("other.py", "def mean(values):\n    return values.mean().item()\n")
    ran = door("lint")
    assert ran.lines == [("algorithm.py", 7, "host-read")]
    assert "not read: 1 file that names neither torch nor OpenCL" in ran.err
