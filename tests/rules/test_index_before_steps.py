"""One look for the elements of a mask before all steps: only where the mask surely has its last value there."""

import pytest

pytest.importorskip("libcst")

from rules.driver import fixed

from syncscope.model.finding import Safety

SCRIPT = """import torch
import torch.nn.functional as F

model = torch.nn.Linear(3, 4).to("cuda")
n = 10
{made}


def train(x, y):
    out = model(x)
    return F.mse_loss(out[keep_mask], y[keep_mask])


{after}
for _ in range(10):
    train(x, y).backward()
"""


def after(made: str, more: str = "") -> str:
    """The script after the unsafe fixes."""
    code = SCRIPT.format(made=made, after=more)
    return fixed(code, allowed={Safety.UNSAFE})


@pytest.mark.parametrize(
    "last",
    [
        'keep_mask = torch.zeros(n, dtype=torch.bool, device="cuda")',
        "keep_mask[:5] = True",
        "keep_mask |= other",
        "keep_mask.fill_(True)",
        "spread(keep_mask)",
    ],
)
def test_it_is_looked_for_after_the_last_statement_that_may_change_it(last):
    first = 'keep_mask = torch.zeros(n, dtype=torch.bool, device="cuda")\n'
    code = after(first + last)
    assert f"{last}\nkeep_index = keep_mask.nonzero(as_tuple=True)\n" in code
    assert "F.mse_loss(out[keep_index], y[keep_index])" in code


@pytest.mark.parametrize(
    "more",
    [
        "def grow():\n    keep_mask[3] = True\n",
        "def grow():\n    global keep_mask\n    keep_mask = keep_mask | other\n",
        "for batch in loader:\n    keep_mask = batch.mask\n",
        "if other:\n    train(x, y)\nkeep_mask = ~keep_mask\n",
    ],
)
def test_what_changes_later_keeps_its_mask(more):
    assert (
        "nonzero" not in after('keep_mask = torch.zeros(n, dtype=torch.bool, device="cuda")', more).partition("def")[0]
    )


LOOP = """import torch


def fit(x: torch.Tensor, y: torch.Tensor, train_mask: torch.Tensor, steps: int):
    for step in range(steps):
        {line}
        x = x - (x[train_mask] - y[train_mask]).cumsum(0).mean()
    return x
"""


def test_a_write_of_what_is_selected_takes_the_index_too():
    code = fixed(LOOP.format(line="x[train_mask] = y[train_mask]"), allowed={Safety.UNSAFE})
    assert "x[train_index] = y[train_index]" in code
    assert "(x[train_index] - y[train_index])" in code


@pytest.mark.parametrize("line", ["train_mask = y > step", "train_mask[step] = True", "train_mask.logical_not_()"])
def test_a_mask_that_a_step_changes_is_looked_for_in_the_step(line):
    code = fixed(LOOP.format(line=line), allowed={Safety.UNSAFE})
    assert "    train_index = train_mask.nonzero(as_tuple=True)\n    for" not in code


def test_a_mask_that_only_some_paths_make_is_not_looked_for_before_the_loop():
    code = (
        "import torch\n\n\n"
        "def f(x: torch.Tensor, y: torch.Tensor, ignore, mask: torch.Tensor = None):\n"
        "    if ignore is not None:\n"
        "        kept = y != ignore\n"
        "    for i in range(3):\n"
        "        if ignore is not None:\n"
        "            x = x + (x[kept] - y[kept]).cumsum(0).mean()\n"
        "        if mask is not None:\n"
        "            x = x + (x[mask] - y[mask]).cumsum(0).mean()\n"
        "    return x\n"
    )
    assert "nonzero(as_tuple=True)\n    for" not in fixed(code, allowed={Safety.UNSAFE})


def test_an_if_that_may_change_it_is_not_left_out():
    made = 'keep_mask = torch.zeros(n, dtype=torch.bool, device="cuda")\nif n > 3:\n    keep_mask[:5] = True'
    assert f"{made}\nkeep_index = keep_mask.nonzero(as_tuple=True)\n" in after(made)


def test_in_a_main_block_it_stands_before_the_steps():
    code = SCRIPT.format(made="", after="").replace("for _ in range(10):\n    train(x, y).backward()\n", "")
    code += (
        'if __name__ == "__main__":\n'
        '    keep_mask = torch.ones(n, dtype=torch.bool, device="cuda")\n'
        "    for _ in range(10):\n        train(x, y).backward()\n"
    )
    wanted = 'device="cuda")\n    keep_index = keep_mask.nonzero(as_tuple=True)\n    for'
    assert wanted in fixed(code, allowed={Safety.UNSAFE})
