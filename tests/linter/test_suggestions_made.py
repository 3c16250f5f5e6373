"""What is only suggested is made by who chooses it: asked by --interactive, or by a tool that takes what --diff prints."""

import shutil
import subprocess

import pytest

SUGGESTED = """\
import torch

device = torch.device("cuda")


def main(model, loader):
    scale = torch.tensor(0.5, device=device)
    bias = torch.tensor(0.25, device=device)
    for x, y in loader:
        x = x.to(device)
        y = y.to(device)
        loss = ((model(x) * scale + bias - y) ** 2).mean()
        loss.backward()
        print(loss.item())
"""


def test_interactive_asks_about_suggestions_and_makes_none_unless_told(door):
    path = door.write("train.py", SUGGESTED)
    ran = door("lint", "--interactive", "--all", stdin="\n" * 9)
    asked = ran.out.count("make this suggestion?")
    assert asked >= 2
    assert "make this fix?" not in ran.out
    assert path.read_text() == SUGGESTED
    door("lint", "--interactive", "--all", stdin="y\n" + "n\n" * 9)
    assert "torch.full((), 0.5, device=device)" in path.read_text()
    assert "torch.tensor(0.25, device=device)" in path.read_text()


def test_interactive_says_that_it_needs_a_terminal(door):
    path = door.write("train.py", SUGGESTED)
    ran = door("lint", "--interactive", "--all", stdin="")
    assert ran.code == 2
    assert "no terminal" in ran.err
    assert "syncscope lint --diff" in ran.err
    assert path.read_text() == SUGGESTED


@pytest.mark.parametrize("tool", [("git", "apply"), ("patch", "-p1")])
@pytest.mark.parametrize("named", ["train.py", "{folder}/train.py", "."])
def test_all_that_diff_shows_is_applied_by_git_and_by_patch(door, tool, named):
    if shutil.which(tool[0]) is None:
        pytest.skip(f"{tool[0]} is not installed")
    path = door.write("train.py", SUGGESTED)
    shown = door("lint", "--diff", "--all", named.format(folder=door.folder)).out
    subprocess.run(tool, input=shown.encode(), cwd=door.folder, check=True, capture_output=True)
    after = path.read_text()
    assert "torch.full((), 0.5, device=device)" in after
    assert "bias = 0.25\n" in after
    assert after.count("non_blocking=True") == 2


PICKED = """\
import torch


def training_step(a: torch.Tensor, b: torch.Tensor):
    a = a.exp()
    valid = b > 0
    picked = (a - b)[valid].abs()
    return picked.log().mean() + picked.square().mean()
"""


def test_another_way_to_the_same_is_passed_over_by_what_applies_a_patch(door):
    door.write("loss.py", PICKED)
    shown = door("lint", "--diff", "--all").out
    assert "or (suggest, --diff)" in shown
    assert sum(line.startswith("--- a/") for line in shown.splitlines()) == 1
    assert sum(line.startswith("  | --- a/") for line in shown.splitlines()) == 1


MET = """\
import torch


def train(net, loader, optimizer):
    for parts in loader:
        shares = []
        for part in parts:
            loss = net(part.cuda(non_blocking=True)).mean()
            loss.backward()
            optimizer.step()
            shares += [(loss > 0.2).float().mean().item()]
        print(loss.item(), sum(shares) / len(shares), loss.mean().item())
"""


def test_what_meets_a_diff_above_says_why_it_is_passed_over(door):
    door.write("train.py", MET)
    shown = door("lint", "--diff", "--all").out
    reason, bar = (
        "  it changes what a diff above changes, so that a bar keeps it out of the patch:\n",
        "  | --- a/train.py\n",
    )
    assert f"{reason}{bar}" in shown
