"""What stands behind `and` or `or` runs only where the operands before it say so: as hot as in an `if` that asks for them."""

from heat.hot_lines import heat

SOURCE = b"""import torch
from torch import nn

class Loss(nn.Module):
    def forward(self, x: torch.Tensor, step: int):
        every = step % 50 == 0
        if self.debug and x.max().item() > 1:  # cold
            raise ValueError
        if self.cfg.debug and self.strict and not x.max().item() > 1:  # cold
            raise ValueError
        if not self.training and x.max().item() > 1:  # cold
            raise ValueError
        if every and x.max().item() > 2:  # cold
            x = x + 1
        if self.training or x.max().item() > 3:  # cold
            x = x + 2
        largest = self.debug and x.max().item()  # cold
        if x.min().item() > 1 and self.debug:  # hot
            x = x + 3
        if self.training and x.max().item() > 1:  # hot
            x = x + 4
        if self.debug or x.max().item() > 4:  # hot
            x = x + 5
        return x, largest, x.sum().item()  # hot
"""


def test_operands_are_as_hot_as_what_stands_in_an_if_that_asks_for_those_before_them() -> None:
    rows = enumerate(SOURCE.decode().splitlines(), 1)
    assert heat(SOURCE, "losses.py") == {n: row.rpartition("# ")[2] for n, row in rows if "# " in row}
