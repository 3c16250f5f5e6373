"""More than twenty findings: the first with their code, the others in a line each, those with the same to say together."""

MASKED = """import torch


def kept(x: torch.Tensor, keep: torch.BoolTensor):
    keep = keep > 0
    found = x * 2
{lines}
    return found
"""
STEP = """import torch


def training_step(self, x: torch.Tensor):
    for each in self.parts:
        self.log(each(x.exp()).sum().item())
    return x
"""


def test_what_one_fix_mends_is_said_once_with_the_lines_of_the_others(door):
    lines = "\n".join(f"    found = found + x[keep].sum() * {n}" for n in range(24))
    door.write("a.py", MASKED.format(lines=lines))
    door.write("z.py", STEP)
    ran = door("lint", "--all")
    assert ran.out.startswith("z.py:6:"), "many times in a step: first, with its code"
    assert " 6 |         self.log(each(x.exp()).sum().item())" in ran.out
    whole = door("lint", "--all", "--format", "concise").out
    assert whole.count("a.py:") > 20
    assert ran.out.count("a.py:") < 5
    assert "like it: lines " in ran.out


def test_the_first_ten_have_their_code_and_a_format_that_is_asked_for_is_as_it_was(door):
    for n in range(24):
        door.write(f"f{n:02}.py", STEP.replace("training_step", f"training_step_{n}"))
    out = door("lint").out
    assert out.count(" 6 |") == 10
    assert len([line for line in out.splitlines() if line.startswith("f")]) == 24
    assert door("lint", "--format", "text").out.count(" 6 |") == 24
    assert door("lint", "--format", "concise").out.count(" 6 |") == 0
