"""What is known stays known while code says the same: formatted, annotated, moved to another file."""

import json

import pytest
from linter.conftest import MASKS, READS
from linter.test_baseline import BROKEN_UP, CONFIGURED, held

AS_WRITTEN = """\
import torch


def step(x, loader):
    for batch in loader:
        a = {'loss': (batch * x).sum().item()}
        b = torch.tensor(1., device = x.device)
        c = torch.tensor(1E5, device = x.device)
        d = x[x > 0XF]
        e = x[x > 1_0J.imag]
        print(R'norm %s' u'of x' % x.norm().item(), )
        print(f'{x.norm().item()!r:>{10}} {{}}' ' and more')
        f = float(x.max()) + \\
            float(x.min())
        if (x.sum() > 0): x = x * 2
        assert (x.sum() > .5), 'negative'
        with (torch.no_grad()): g = (x.mean().item())
        for i in (range(x.long().max().item())): x = x + i
"""
AS_FORMATTED = """\
import torch


def step(x, loader):
    for batch in loader:
        a = {"loss": (batch * x).sum().item()}
        b = torch.tensor(1.0, device=x.device)
        c = torch.tensor(1e5, device=x.device)
        d = x[x > 0xF]
        e = x[x > 1_0j.imag]
        print(
            r"norm %s"
            "of x" % x.norm().item(),
        )
        print(f"{x.norm().item()!r:>{10}} {{}} and more")
        f = float(x.max()) + float(x.min())
        if x.sum() > 0:
            x = x * 2
        assert x.sum() > 0.5, "negative"
        with torch.no_grad():
            g = x.mean().item()
        for i in range(x.long().max().item()):
            x = x + i
"""


def test_a_formatter_makes_nothing_new(door):
    door.write("train.py", AS_WRITTEN)
    every = len(door("lint", "--all", "--min-confidence", "low").lines)
    assert every > 10
    door("lint", "--all", "--min-confidence", "low", "--write-baseline", "known.json")
    door.write("train.py", AS_FORMATTED)
    assert len(door("lint", "--all", "--min-confidence", "low").lines) == every, "it is found as before"
    ran = door("lint", "--all", "--min-confidence", "low", "--baseline", "known.json")
    assert (ran.code, ran.lines) == (0, [])
    assert "gone" not in ran.err


@pytest.mark.parametrize(
    ("before", "after"),
    [("1E5", "1E6"), ("0XF", "0XE"), ("1.,", "1,"), ("x.max()", "x[0].max()")],
)
def test_another_value_is_another_wait(door, before, after):
    asked = ("lint", "--all", "--min-confidence", "low")
    door.write("train.py", AS_WRITTEN)
    door(*asked, "--write-baseline", "known.json")
    door.write("train.py", AS_WRITTEN.replace(before, after))
    assert door(*asked, "--baseline", "known.json").lines


def test_an_annotation_makes_nothing_new(door):
    kept = READS.replace("print(loss.item())", "told = loss.item()")
    door.write("train.py", kept)
    door("lint", "--write-baseline", "known.json")
    door.write("train.py", kept.replace("told =", "told: float ="))
    assert len(door("lint").lines) == 1
    assert door("lint", "--baseline", "known.json").lines == []


THIRD_FORM = {
    "version": 3,
    "findings": {
        "loss.py": [{"rule": "nonzero", "fingerprint": "4c2e10df744b74ad", "code": "background = ..."}],
        "train.py": [{"rule": "host-read", "fingerprint": "cee8ff9e6d26f28a", "code": "print(loss.item())"}],
    },
}


def test_a_baseline_of_the_third_form_knows_statements_by_their_tokens(door):
    door.write("train.py", READS)
    door.write("loss.py", MASKS)
    door.write("known.json", json.dumps(THIRD_FORM))
    ran = door("lint", "--baseline", "known.json")
    assert (ran.code, ran.lines) == (0, [])
    door.write("train.py", BROKEN_UP_READS)
    assert door("lint", "--baseline", "known.json").lines == [], "as the version that wrote it had it"


FOURTH_FORM = {
    "version": 4,
    "findings": {
        "loss.py": [{"rule": "nonzero", "fingerprint": "499afbda26565d49", "code": "...", "function": "loss"}],
        "train.py": [{"rule": "host-read", "fingerprint": "8302d86e43056f98", "code": "...", "function": "train"}],
    },
}


def test_a_baseline_of_the_fourth_form_knows_what_statements_say(door):
    door.write("train.py", READS)
    door.write("loss.py", MASKS)
    door.write("known.json", json.dumps(FOURTH_FORM))
    ran = door("lint", "--baseline", "known.json")
    assert (ran.code, ran.lines) == (0, [])
    door.write("train.py", READS.replace("print(loss", "log(loss"))
    assert door("lint", "--baseline", "known.json").lines == [("train.py", 11, "host-read")]
    door.write("train.py", "import torch\n")
    door.write("fit.py", READS)
    assert "1 moved, from train.py to fit.py" in door("lint", "--baseline", "known.json").err
    door("lint", "--baseline", "known.json", "--prune-baseline")
    moved = {"loss.py": FOURTH_FORM["findings"]["loss.py"], "fit.py": FOURTH_FORM["findings"]["train.py"]}
    assert json.loads((door.folder / "known.json").read_text()) == {"version": 4, "findings": moved}


BROKEN_UP_READS = READS.replace("        print(loss.item())\n", BROKEN_UP)
HELPER = """\
import torch


def seed_of(x):
    seed = torch.randint(0, 10, (), device=x.device)
    return seed.item()


def step(x, loader):
    for batch in loader:
        y = batch.cuda(non_blocking=True) + seed_of(x)
        print(y.sum().item())
"""
FUNCTION = HELPER[HELPER.index("def seed_of") : HELPER.index("def step")]
WITHOUT = HELPER.replace(FUNCTION, "from seeds import seed_of\n\n\n")


@pytest.mark.parametrize(
    "there", ["", "def other(x):\n    return x + 1\n\n\n"], ids=["new file", "file that was there"]
)
def test_a_function_that_was_moved_to_another_file_brings_its_own_along(door, there):
    door.write("pyproject.toml", f'{CONFIGURED}all = true\nmin-confidence = "low"\n')
    door.write("vq.py", HELPER)
    if there:
        door.write("seeds.py", f"import torch\n\n\n{there}")
    door("lint", "--write-baseline", "known.json")
    door.write("vq.py", WITHOUT)
    door.write("seeds.py", f"import torch\n\n\n{there}{FUNCTION}")
    ran = door("lint")
    assert (ran.code, ran.lines) == (0, [])
    assert "known to the baseline (1 moved, from vq.py to seeds.py)" in ran.err
    assert "gone" not in ran.err
    assert door("lint", "seeds.py").code == 0, "vq.py has no such function any more, whether it is linted or not"
    door("lint", "--prune-baseline")
    assert "moved" not in door("lint").err, "it is known there from now on"
    door.write("vq.py", f"{WITHOUT}\n\n{FUNCTION}")
    assert door("lint").lines == [("vq.py", 15, "host-read")], "and here no more"


def test_a_function_that_was_copied_is_new_until_one_of_both_goes(door):
    asked = ("lint", "--all", "--min-confidence", "low", "--baseline", "known.json")
    door.write("vq.py", HELPER)
    door("lint", "--all", "--min-confidence", "low", "--write-baseline", "known.json")
    door.write("seeds.py", f"import torch\n\n\n{FUNCTION}")
    assert door(*asked).lines == [("seeds.py", 6, "host-read")]
    door.write("vq.py", WITHOUT)
    assert door(*asked).lines == []


def test_files_that_swap_their_names_keep_what_is_known(door):
    door.write("a.py", READS)
    door.write("b.py", HELPER)
    asked = ("lint", "--all", "--min-confidence", "low")
    door(*asked, "--write-baseline", "known.json")
    door.write("a.py", HELPER)
    door.write("b.py", READS)
    ran = door(*asked, "--baseline", "known.json")
    assert (ran.code, ran.lines) == (0, [])


def test_a_baseline_that_is_written_of_one_file_keeps_what_it_holds_of_the_others(door):
    door.write("a.py", READS)
    door.write("b.py", READS)
    door("lint", "--write-baseline", "known.json")
    door.write("a.py", "import torch\n")
    ran = door("lint", "--write-baseline", "known.json", "a.py")
    assert "0 findings written to known.json, beside 1 that it holds of 1 file not linted now" in ran.err
    assert door("lint", "--baseline", "known.json").lines == []
    (door.folder / "b.py").unlink()
    assert "beside" not in door("lint", "--write-baseline", "known.json").err, "what is gone is not kept"
    assert held(door) == []
    door.write("known.json", json.dumps(THIRD_FORM))
    ran = door("lint", "--write-baseline", "known.json", "a.py")
    assert ran.code == 2
    assert "known.json is of version 3, and holds findings of 2 files that this run does not lint" in ran.err


def test_a_merge_conflict_in_a_baseline_is_named(door):
    door.write("train.py", READS)
    door("lint", "--write-baseline", "known.json")
    text = (door.folder / "known.json").read_text()
    door.write("known.json", text.replace('\n"findings"', '\n<<<<<<< HEAD\n"findings"', 1))
    ran = door("lint", "--baseline", "known.json")
    assert ran.code == 2
    assert "known.json:2: a merge conflict" in ran.err


def test_a_baseline_of_another_checkout_says_why_all_is_new(door, monkeypatch):
    for name in ("first", "second"):
        door.write(f"{name}/train.py", READS)
    for name in ("first", "second"):
        monkeypatch.chdir(door.folder / name)
        if name == "first":
            door("lint", "--write-baseline", "../known.json")
        ran = door("lint", "--baseline", "../known.json")
        assert ran.code == (name == "second")
        assert ("/second, so all is new: it is of another folder, or was moved" in ran.err) == (name == "second")


def test_a_wait_that_a_file_not_linted_still_holds_has_not_moved(door):
    door.write("pyproject.toml", CONFIGURED)
    door.write("base.py", WITH_KERNEL)
    door.write("other.py", "import torch\n\n\ndef add(a, b):\n    return a + b\n")
    door("lint", "--all", "--write-baseline", "known.json")
    other = door.write("other.py", WITH_KERNEL.replace("Base", "Other").replace("x1.sum()", "x1.mean()"))
    assert door("lint", "--all", "other.py").lines == [("other.py", 6, "tensor-in-condition")]
    assert door("lint", "--all").lines == [("other.py", 6, "tensor-in-condition")], "as all files together say"
    assert door("lint", "--all", "--fix", "other.py").code == 1
    door.write("base.py", WITH_KERNEL.replace("torch.eq(x1, x2).all()", "self.same(x1, x2)"))
    other.write_text(WITH_SAME)
    assert door("lint", "--all", "other.py").lines == [], "it was taken out into a method that is called"


WITH_KERNEL = """\
import torch

class Base(torch.nn.Module):
    def forward(self, x1: torch.Tensor, x2: torch.Tensor):
        x1 = x1.cuda()
        if torch.eq(x1, x2).all():
            return super().forward(x1, x2)
        return x1.sum()
"""
WITH_SAME = """\
import torch

class Other:
    def same(self, x: torch.Tensor, y: torch.Tensor):
        x = x.cuda()
        if torch.eq(x, y).all():
            return True
"""
