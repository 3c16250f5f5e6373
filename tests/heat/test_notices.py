"""An arm of a test of values that only says so is cold; one that notes a value by its name runs whenever there is one."""

import pytest
from heat.hot_lines import heat

STEP = """
import torch

class Net:
    def training_step(self, x: torch.Tensor, y: torch.Tensor):
        for kind in range(3):
            if (y == kind).any():
                {says}
        return x
"""


@pytest.mark.parametrize(
    ("says", "said"),
    [
        ('self.log(f"of_{kind}", x.mean().item())', "hot"),
        ("print(x.mean().item())", "cold"),
        ('logger.info("odd: %s", x.mean().item())', "cold"),
        ("self.log(x.mean().item())", "cold"),
    ],
)
def test_a_value_that_is_noted_by_its_name_is_no_notice(says: str, said: str) -> None:
    assert heat(STEP.format(says=says).encode(), "net.py") == {8: said}
