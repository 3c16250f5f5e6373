"""What a lambda at the top level of a file computes is computed where it is called, as what `def` makes there."""

import pytest
from heat.hot_lines import heat

CODE = """
import torch

device = torch.device("cuda")
psnr = lambda x: -10.0 * torch.log(x).sum().item()  # hot
validate = lambda x: x.sum().item()  # cold
total = torch.ones(3, device=device).sum().item()  # cold
"""
MARKS = {number: line.rpartition("# ")[2] for number, line in enumerate(CODE.splitlines(), 1) if "# " in line}


@pytest.mark.parametrize("line", MARKS)
def test_a_lambda_is_as_hot_as_its_name(line: int) -> None:
    assert heat(CODE.encode(), "train.py")[line] == MARKS[line]
