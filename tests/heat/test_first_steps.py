"""What an optimizer makes once, by its own books: `state` of each parameter and `group` of some together."""

import pytest
from heat.hot_lines import heat

SOURCE = """
import torch

class Adapts(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self, closure=None):
        sums = {}
        for group in self.param_groups:
            if TEST:
                group["norm"] = torch.linalg.norm(group["params"][0]).item()
            group["d"] = torch.linalg.norm(group["params"][0]).item()
"""


@pytest.mark.parametrize(
    "test",
    ["'norm' not in group", "'norm' not in state", "group['step'] == 0", "'norm' not in param_group"],
)
def test_what_an_optimizer_makes_the_first_time_is_cold(test: str) -> None:
    made, read = heat(SOURCE.replace("TEST", test).encode(), "adapts.py").values()
    assert (made, read) == ("cold", "hot")


@pytest.mark.parametrize("test", ["'norm' not in sums", "group['step'] > 0", "group['lr'] == 0"])
def test_what_it_makes_anew_is_hot(test: str) -> None:
    assert set(heat(SOURCE.replace("TEST", test).encode(), "adapts.py").values()) == {"hot"}
