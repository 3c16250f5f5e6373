"""What waits in a step, too: told in a line each, counted, in JSON with its worth, no failure unless new to a baseline."""

import json
import re

import pytest

import syncscope

CODE = """import torch


class Net(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        if x.isnan().any():
            return self.told(x)
        return x

    def told(self, x: torch.Tensor):
        if (x > 1).any():
            self.large(x)
        return x * 2

    def large(self, x):
        self.many.append(x)
"""
BESIDE = """import torch


def loss(x: torch.Tensor, keep: torch.Tensor):
    keep = keep > 0
    kept = x[keep]
    torch.unique(kept)
    return kept.sum()
"""


def test_what_waits_with_nothing_to_write_instead_is_a_line_and_no_failure(door):
    door.write("net.py", CODE.replace("if x.isnan().any():", "if self.flag:"))
    ran = door("lint", "net.py")
    assert ran.code == 0
    (line,) = ran.out.splitlines()
    assert line.startswith("net.py:11:12: also waits in a step: ")
    assert line.endswith("and no fix can be made here) [tensor-in-condition]")
    assert "1 more waits in a step, told in a line; --all tells it whole" in ran.err


def test_what_waits_in_one_function_for_one_reason_is_one_line(door):
    """In the text that people read; a list for programs has a line each."""
    code = CODE.replace("if x.isnan().any():", "if self.flag:").rstrip("\n")
    body = "        if (x < 0).any():\n            self.large(x)\n" * 2
    door.write("net.py", code.replace("        return x * 2", f"{body}        return x * 2") + "\n")
    told = [line for line in door("lint", "net.py").out.splitlines() if "also waits in a step" in line]
    each = [line for line in door("lint", "--format", "concise", "net.py").out.splitlines() if "also waits" in line]
    assert len(told) < len(each)
    assert any(re.search(r"\(and \d like it: lines? [\d, ]+\)$", line) for line in told)


def test_who_asks_for_less_is_not_told_of_them(door):
    door.write("net.py", CODE.replace("if x.isnan().any():", "if self.flag:"))
    assert door("lint", "-q", "net.py").out == ""
    assert door("lint", "-q", "--format", "concise", "net.py").out == ""


def test_a_new_one_fails_where_a_baseline_is_asked_and_an_old_one_does_not(door):
    code = CODE.replace("if x.isnan().any():", "if self.flag:")
    door.write("net.py", code)
    ran = door("lint", "--write-baseline", "known.json", "net.py")
    assert "0 findings and 1 more that waits in a step written to known.json" in ran.err
    ran = door("lint", "--baseline", "known.json", "net.py")
    assert (ran.code, ran.out) == (0, "")
    assert "not shown: 1 known to the baseline" in ran.err
    door.write(
        "net.py",
        code.replace(
            "        return x * 2\n", "        if (x < 0).any():\n            self.large(x)\n        return x * 2\n"
        ),
    )
    assert door("lint", "net.py").code == 0, "nobody asked what is new"
    for form in ("text", "concise", "github", "gitlab", "sarif", "junit", "json"):
        ran = door("lint", "--baseline", "known.json", "--format", form, "net.py")
        assert ran.code == 1, form
        assert "also waits" not in ran.out, "it fails as any other does"
        assert "tensor-in-condition" in ran.out, form
    ran = door("lint", "-q", "--baseline", "known.json", "net.py")
    assert (ran.code, ran.lines) == (1, [("net.py", 13, "tensor-in-condition")])


def test_one_that_becomes_a_finding_stays_known(door):
    """What follows another wait is told in a line; when the first is mended it is the first itself, and no new wait."""
    door.write("loss.py", BESIDE)
    door("lint", "--write-baseline", "known.json", "loss.py")
    alone = BESIDE.replace("    kept = x[keep]\n", "    kept = x * keep\n")
    door.write("loss.py", alone)
    assert [line for _, line, _ in door("lint", "loss.py").lines] == [7], "it is a finding now"
    assert door("lint", "--baseline", "known.json", "loss.py").code == 0


def test_what_follows_a_wait_that_a_comment_lets_stand_is_told_and_fails_where_it_is_new(door):
    door.write("loss.py", BESIDE.replace("    torch.unique(kept)\n", ""))
    door("lint", "--write-baseline", "known.json", "loss.py")
    allowed = "x[keep]  # syncscope: allow[boolean-mask-read]"
    door.write("loss.py", BESIDE.replace("x[keep]", allowed))
    assert "loss.py:7:5: also waits in a step" in door("lint", "loss.py").out
    ran = door("lint", "--baseline", "known.json", "loss.py")
    assert (ran.code, [line for _, line, _ in ran.lines]) == (1, [7])


def test_a_baseline_from_before_it_held_them_holds_no_build(door):
    door.write("net.py", CODE.replace("if x.isnan().any():", "if self.flag:"))
    door.write("known.json", '{"version": 1, "findings": {}}')
    ran = door("lint", "--baseline", "known.json", "net.py")
    assert (ran.code, ran.out) == (0, "")
    assert "1 more waits in a step, and the baseline is from before it held such" in ran.err
    assert json.loads(door("lint", "--baseline", "known.json", "--format", "json", "net.py").out) == []


def test_json_has_what_a_wait_is_worth_and_the_line_that_it_follows(door):
    door.write("loss.py", BESIDE)
    found = json.loads(door("lint", "--format", "json", "loss.py").out)
    assert [(f["line"], f["hot"], f["worth"]["kind"]) for f in found] == [(6, True, "first"), (7, True, "follows")]
    assert found[1]["worth"]["line"] == 6
    assert found[1]["fix"] is None
    everything = json.loads(door("lint", "--all", "--format", "json", "loss.py").out)
    assert [(f["line"], f["worth"]["kind"]) for f in everything] == [(6, "first"), (7, "follows")]


def test_json_has_how_often_a_wait_is_gone_through(door):
    code = "import torch\n\nEVERY = 4\n\n\ndef training_step(x: torch.Tensor, step):\n    if step % EVERY == 0:\n"
    door.write("step.py", code + "        print(x.sum().item())\n")
    (found,) = json.loads(door("lint", "--format", "json", "step.py").out)
    assert (found["hot"], found["worth"]) == (True, {"kind": "once_in", "steps": 4})
    door.write("step.py", code.replace("4", "100") + "        print(x.sum().item())\n")
    (found,) = json.loads(door("lint", "--all", "--format", "json", "step.py").out)
    assert (found["hot"], found["heat"]) == (False, "only when `step % EVERY == 0`: once in 100 steps")


def test_json_has_that_a_wait_of_a_delayed_actor_is_gone_through_every_few_steps(door):
    code = "import torch\n\n\ndef training_step(self, x: torch.Tensor, step):\n    if step % self.policy_delay == 0:\n"
    door.write("td3.py", code + "        print(x.sum().item())\n")
    (found,) = json.loads(door("lint", "--format", "json", "td3.py").out)
    assert (found["hot"], found["worth"]) == (True, {"kind": "once_in"})


def test_cold_code_is_worth_nothing(door):
    door.write("set_up.py", "import torch\n\n\ndef build(x: torch.Tensor):\n    return x.sum().item()\n")
    (found,) = json.loads(door("lint", "--all", "--format", "json", "set_up.py").out)
    assert (found["hot"], found["worth"]) == (False, None)


def test_statistics_count_it_and_fixable_leaves_it_out(door):
    door.write("loss.py", BESIDE)
    head, *rows = door("lint", "--statistics", "loss.py").out.split("\n\n")[0].splitlines()
    at = head.replace("by hand", "by-hand").split().index("also")
    assert sum(int(row.split()[at]) for row in rows) == 1
    fixable = door("lint", "--fixable", "loss.py")
    assert "also waits" not in fixable.out
    assert all("fix (" in text for text in fixable.out.split("\n\n") if text.strip())
    assert "without a fix" in fixable.err


@pytest.mark.parametrize("form", ["github", "junit", "gitlab", "sarif"])
def test_what_fails_a_build_does_not_hold_it(door, form):
    door.write("net.py", CODE.replace("if x.isnan().any():", "if self.flag:"))
    assert "tensor-in-condition" not in door("lint", "--format", form, "net.py").out


def test_an_allow_silences_it_and_is_used(door):
    code = CODE.replace("if x.isnan().any():", "if self.flag:")
    door.write(
        "net.py", code.replace("if (x > 1).any():", "if (x > 1).any():  # syncscope: allow[tensor-in-condition]")
    )
    assert door("lint", "net.py").out == ""


@pytest.mark.parametrize("around", ["{}", "np.degrees({})"])
def test_what_numpy_makes_of_a_number_lies_between_two_waits_like_nothing(door, around):
    read = "        self.{0} = " + around.format("torch.{0}(x).item()") + "\n"
    code = (
        "import numpy as np\nimport torch\n\n\nclass Miner(torch.nn.Module):\n    def forward(self, x: torch.Tensor):\n"
    )
    door.write("x.py", code + "".join(read.format(name) for name in ("mean", "min", "max")) + "        return x\n")
    ran = door("lint", "--format", "json", "x.py")
    kinds = [(f["line"], f["worth"]["kind"]) for f in json.loads(ran.out)]
    assert kinds == [(7, "first"), (8, "follows"), (9, "follows")]


def test_a_rewrite_within_what_is_read_all_the_same_wins_nothing(door):
    code = """
        import torch

        class Stats(torch.nn.Module):
            def forward(self, x: torch.Tensor):
                keep = x > 0
                self.mean = torch.mean(x[keep]).item()
                return x
    """
    door.write("x.py", code)
    ran = door("lint", "x.py")
    assert [(line, rule) for _, line, rule in ran.lines] == [(7, "host-read")]
    assert "(the same statement waits for something else, too, and that stays) [boolean-mask-read]" in ran.out
    assert "comprehension" not in door("lint", "--diff", "x.py").out
    door.write("x.py", code.replace("def forward(", "def save(").replace("class Stats", "class Kept"))
    assert {f["hot"] for f in json.loads(door("lint", "--all", "--format", "json", "x.py").out)} == {False}


def test_the_function_has_what_json_has_in_the_same_order(door):
    door.write("a.py", CODE.replace("if x.isnan().any():", "if self.flag:"))
    door.write("loss.py", BESIDE)
    told = [(f["path"], f["line"], f["also"]) for f in json.loads(door("lint", "--format", "json").out)]
    assert told == [("loss.py", 6, False), ("loss.py", 7, True), ("a.py", 11, True)]
    assert [(f.place.path, f.place.line, f.short) for f in syncscope.lint()] == told


def test_a_diff_says_how_many_fixes_all_shows_and_which_command_shows_them(door):
    door.write(
        "notes.py",
        """
        import torch

        def training_step(self, loss: torch.Tensor, size: torch.Tensor):
            if loss.isnan():
                self.odd(size)
            self.log["loss"].append(loss.item())
            self.log["size"].append(size.item())
        """,
    )
    ran = door("lint", "--diff", "notes.py")
    assert "fixes that --diff --all shows: 1 to be made by hand" in ran.err
    assert "next: `syncscope lint --diff --all notes.py` shows each of them" in ran.err
    assert "read 2 numbers at once" not in ran.out
    assert "read 2 numbers at once" in door("lint", "--diff", "--all", "notes.py").out
    assert "--diff --all" not in door("lint", "--diff", "--all", "notes.py").err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--fix",), "made 0 fixes; 1 more in steps with --all"),
        (("--fix", "--diff"), "would make 0 fixes; 1 more in steps with --all"),
        (("--fix", "--unsafe-fixes"), "made 0 fixes; 2 more in steps with --all"),
        (("--all", "--fix", "--unsafe-fixes"), "made 2 fixes"),
    ],
)
def test_fixes_made_say_how_many_all_would_make(door, asked, said):
    door.write(
        "notes.py",
        """
        import torch


        def training_step(self, x: torch.Tensor, device):
            if x.shape[0] == 1:
                x = x + torch.zeros(3).to(device)
            if len(x) == 1:
                x = x * torch.tensor(0.5, device=x.device)
            return x
        """,
    )
    assert said in door("lint", *asked, "notes.py").err.splitlines()


def test_of_two_waits_of_one_call_one_is_told_whole(door):
    door.write(
        "model.py",
        """
        import torch


        def training_step(x: torch.Tensor, sizes):
            at, sizes = 0, torch.tensor(sizes, device=x.device)
            for size in sizes:
                part = x.narrow(0, at, size)
                at += size
            return part
        """,
    )
    found = json.loads(door("lint", "--format", "json", "model.py").out)
    assert [(f["rule"], f["also"]) for f in found if f["line"] == 8] == [
        ("tensor-as-scalar-argument", False),
        ("tensor-as-size", True),
    ]
