"""`lint --explain-finding FILE:LINE`: whether what waits in a line is shown as things stand, and why."""

import pytest

CODE = """import torch


def training_step(self, batch: torch.Tensor, x):
    loss = self.model(batch).sum() * batch.mean()
    self.history.append(loss.detach().item())
    self.other.append(loss.max().item())  # syncscope: allow[host-read] wanted
    if x > 1:
        return None
    return loss


def validate(model, x: torch.Tensor):
    print(model(x).sum().item())
"""
SAID = {
    6: "= told in a line, and fails nothing: line 7 waits right after, and stays; --all tells it whole",
    7: "= hidden: a comment lets it stand",
    8: "--min-confidence low shows it",
    14: "= hidden: it is in no step (in `validate`: evaluation); --all shows it",
    2: "train.py:2: nothing in it is known to wait for a device; the nearest that may are in line 6, 7, 8",
}


@pytest.mark.parametrize("line", SAID)
def test_what_becomes_of_a_line(door, line):
    door.write("train.py", CODE)
    ran = door("lint", "--explain-finding", f"train.py:{line}")
    assert ran.code == 0
    assert SAID[line] in ran.out
    if line != 2:
        assert ran.out.startswith(f"train.py:{line}:")


def test_a_line_that_is_shown(door):
    door.write("train.py", CODE.replace("    self.other", "    # self.other"))
    said = door("lint", "--explain-finding", "train.py:6").out
    assert "= known because " in said
    assert "= shown: it runs in every step (in the training step)" in said


CALLED = """import torch


class Kept:
    def __init__(self, offset: torch.Tensor):
        self.offset = offset

    def as_dict(self):
        return {"offset": self.offset.item()}

    def __getattr__(self, name):
        return self.as_dict()[name]


class Model(torch.nn.Module):
    def forward(self, x, kept: Kept):
        return x * USE
"""


@pytest.mark.parametrize(
    ("use", "said"),
    [
        ('kept.as_dict()["offset"]', "a step calls `as_dict`, in `Model.forward`"),
        ("kept.offset", "= hidden: it is in no step (in `as_dict`: it is asked for what the host needs)"),
    ],
)
def test_what_calls_a_function_is_named_and_what_finds_an_attribute_is_no_step(door, use, said):
    door.write("pyproject.toml", "")
    door.write("model.py", CALLED.replace("USE", use))
    assert said in door("lint", "--explain-finding", "model.py:9").out


def test_of_what_may_run_in_every_step_a_line_of_another_file_that_calls_it_is_named(door):
    """Of its own file it is said wherever the reason is; of two that are called so only what imports it calls the one."""
    door.write("pyproject.toml", "")
    door.write("ops.py", "import torch\n\n\ndef amount(x: torch.Tensor):\n    return x.item()\n")
    door.write("look.py", "from ops import amount\n\n\ndef look(x):\n    # amount(x)\n    return amount(x)\n")
    loop = "from ops import amount\n\n\nfor x in loader:\n    net(x).sum().backward()\n    opt.step()\n    amount(x)\n"
    door.write("train.py", loop)
    said = door("lint", "--explain-finding", "ops.py:5").out
    assert "`amount` may run in every step: train.py:7 calls it" in said
    door.write("other.py", "def amount(x):\n    return 1\n")
    door.write(
        "train.py", loop.replace("from ops import amount", "import other").replace("amount(x)", "other.amount(x)")
    )
    assert "look.py:6 calls it" in door("lint", "--explain-finding", "ops.py:5").out
    for name in ("look.py", "other.py"):
        door.write(name, "import torch\n")
    door.write("train.py", loop.replace("from ops import amount", "").replace("amount(x)", "kinds[0](x)"))
    said = door("lint", "--explain-finding", "ops.py:5").out
    assert (
        "`amount` may run in every step: no line that calls it is known, nor anything by which it seldom runs" in said
    )


METHODS = """\
import torch


class One:
    def amount(self, x: torch.Tensor):
        return x.sum().item()


class Other:
    def amount(self, x: torch.Tensor):
        return x.mean().item()
"""


def test_where_several_are_called_so_a_line_that_calls_one_of_them_is_named(door):
    door.write("pyproject.toml", "")
    door.write("ops.py", METHODS)
    door.write(
        "train.py",
        "import ops\n\n\nfor x in loader:\n    net(x).sum().backward()\n    opt.step()\n    kinds[0].amount(x)\n",
    )
    said = door("lint", "--explain-finding", "ops.py:6").out
    assert "`amount` may run in every step: train.py:7 calls one of that name" in said


def test_a_rule_that_is_off_or_a_baseline_is_named(door):
    door.write("train.py", CODE)
    door.write("pyproject.toml", "[tool.syncscope.lint.per-file-ignores]\n'train.py' = ['host-read']\n")
    assert "= hidden: host-read is off here" in door("lint", "--explain-finding", "train.py:6").out
    assert (
        "= hidden: host-read is off here" in door("lint", "--explain-finding", "--select", "nonzero", "train.py:6").out
    )
    door.write("pyproject.toml", "")
    door("lint", "--write-baseline", "known.json", ".")
    assert "known.json knows it" in door("lint", "--explain-finding", "--baseline", "known.json", "train.py:6").out


def test_a_file_that_is_not_there_is_said(door):
    ran = door("lint", "--explain-finding", "nowhere.py:3")
    assert ran.code == 2
    assert "there is no 'nowhere.py'" in ran.err


def test_lines_are_asked_for_beside_what_is_linted(door):
    door.write("train.py", CODE)
    alone = door("lint", "--explain-finding", "train.py:6").out
    assert door("lint", ".", "--explain-finding", "train.py:6").out == alone
    assert door("lint", "--explain-finding", "train.py:6", "train.py:1").out.startswith(alone)
