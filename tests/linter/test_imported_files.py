"""Who lints one file is told of what waits in the files that it imports, and gates are not."""

import pytest
from linter.conftest import READS

LOSSES = """import torch


class Dice(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return x / x.sum().item()
"""
USES = "import torch\nfrom losses import Dice\n\n\ndef forward(x: torch.Tensor):\n    return Dice()(x)\n"


def test_what_waits_in_an_imported_file_is_counted_and_the_command_named(door):
    door.write("losses.py", LOSSES)
    door.write("train.py", USES)
    ran = door("lint", "train.py")
    assert (ran.code, ran.lines) == (0, [])
    assert "losses.py has 1 finding, and train.py imports it: `syncscope lint train.py losses.py`" in ran.err
    assert "imports" in door("lint", "train.py").err, "an answer from the cache says it, too"
    assert "imports" not in door("lint", "train.py", "losses.py").err
    assert "imports" not in door("lint", ".").err


def test_several_files_are_named_together(door):
    door.write("losses.py", LOSSES)
    door.write("more.py", LOSSES.replace("Dice", "Focal"))
    door.write("quiet.py", "import torch\n\n\ndef scaled(x: torch.Tensor):\n    return x * 2\n")
    door.write(
        "train.py",
        USES.replace("import Dice\n", "import Dice\nfrom more import Focal\nfrom quiet import scaled\n").replace(
            "Dice()(x)", "Dice()(x) + Focal()(scaled(x))"
        ),
    )
    said = "2 files have 2 findings, and train.py imports them: `syncscope lint train.py losses.py more.py`"
    assert said in door("lint", "train.py").err


def test_many_imported_files_are_not_gone_through(door):
    for number in range(21):
        door.write(f"part{number}.py", LOSSES)
    imports = "".join(f"from part{n} import Dice as D{n}\n" for n in range(21))
    calls = " + ".join(f"D{n}()(x)" for n in range(21))
    door.write("train.py", f"import torch\n{imports}\ndef forward(x: torch.Tensor):\n    return {calls}\n")
    said = "train.py imports 21 files of its project: `syncscope lint .` looks at them, too"
    assert said in door("lint", "train.py").err


@pytest.mark.parametrize("how", [["-q"], ["--format", "github"], ["--baseline", "known.json"], ["--fix"]])
def test_a_gate_asks_for_what_was_named_alone(door, how):
    door.write("losses.py", LOSSES)
    door.write("train.py", USES)
    door.write("known.json", '{"version": 1, "findings": {}}')
    ran = door("lint", *how, "train.py")
    assert "imports" not in ran.out + ran.err


def test_what_the_configuration_leaves_out_or_a_comment_allows_is_no_finding(door):
    door.write("losses.py", LOSSES)
    door.write("train.py", USES)
    door.write("pyproject.toml", '[tool.syncscope.lint]\nexclude = ["losses.py"]\n')
    assert "imports" not in door("lint", "train.py").err
    door.write("pyproject.toml", "")
    assert "imports" in door("lint", "train.py").err
    door.write("losses.py", LOSSES.replace(".item()", ".item()  # noqa"))
    assert "imports" not in door("lint", "train.py").err


def test_reads_of_a_file_are_told_beside_those_of_what_it_imports(door):
    door.write("losses.py", LOSSES)
    door.write(
        "train.py",
        READS.replace("import torch\n", "import torch\nfrom losses import Dice\n")
        + "\n\ndef loss(x):\n    return Dice()(x)\n",
    )
    ran = door("lint", "train.py")
    assert [rule for _, _, rule in ran.lines] == ["host-read"]
    assert "losses.py has 1 finding" in ran.err
