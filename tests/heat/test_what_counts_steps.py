"""A remainder says how seldom something runs where it is one of steps, epochs or batches; of a size it says nothing."""

import pytest
from heat.hot_lines import heat

from syncscope.tensors.interpret import sites

SIZES = b"""
import torch

class Net(torch.nn.Module):
    def __init__(self, kernel, layer_idx):
        self.kernel, self.layer_idx, self.seen = kernel, layer_idx, 0
        if self.kernel % 2 == 0:
            self.kernel += 1

    def forward(self, x: torch.Tensor, width, k_size):
        n = x.shape[-1]
        _, t = x.shape
        if n % 2 == 0:
            x.sum().item()  # hot
        if x.shape[0] % 8 == 0:
            x.sum().item()  # hot
        if t % 2 == 0:
            x.sum().item()  # hot
        if len(x) % 4 == 0 or width % 2 == 0:
            x.sum().item()  # hot
        if self.kernel % 2 == 0:
            x.sum().item()  # hot
        if self.layer_idx % 2 == 0:
            x.sum().item()  # hot
        for i, layer in enumerate(self.layers):
            if i % 2 == 0:
                x.sum().item()  # hot
        if width % k_size:
            return x
        x = x * x.prod().item()  # hot
        return x

class Counting(torch.nn.Module):
    def forward(self, x: torch.Tensor, batch_idx, i):
        self.seen += 1
        seen = self.seen
        if self.seen % 20 == 0:
            x.sum().item()  # cold
        if seen % 20 == 0:
            x.sum().item()  # cold
        if batch_idx % 20 == 0 and x.requires_grad:
            x.sum().item()  # cold
        if (self.trainer.global_step + 1) % 20 == 0:
            x.sum().item()  # cold
        if i % 20 == 0:
            x.sum().item()  # cold
        if self.seen % 20:
            return x
        return x * x.prod().item()  # cold

def train(model, loader, optimizer):
    done = 0
    for j, x in enumerate(loader):
        loss = model(x).mean()
        loss.backward()
        done += 1
        if j % 50 == 0:
            loss.item()  # cold
        if done % 50 == 0:
            loss.item()  # cold
        if divisible_by(done, 50):
            print(x.std().item())  # cold
        if divisible_by(x.shape[0], 50):
            print(x.min().item())  # hot
        if not divisible_by(done, 50):
            print(x.max().item())  # hot
        if x.shape[0] % 50 == 0:
            loss.item()  # hot
"""


def test_the_parity_of_a_size_is_no_schedule_and_the_remainder_of_a_counter_is_one() -> None:
    marked = {
        number: line.rpartition("# ")[2]
        for number, line in enumerate(SIZES.decode().splitlines(), 1)
        if line.endswith(("# hot", "# cold"))
    }
    assert heat(SIZES, "x.py") == marked


REMAINDERS = """
import torch

class Sparse(torch.optim.Optimizer):
    def step(self, x: torch.Tensor):
        if self.steps % self.every == 0:
            self.grow(x.sum().item())  # cold
        if self.steps % self.every != 0:
            self.shrink(x.sum().item())  # hot
        if self.every == 0 or self.steps % self.every >= self.warm:
            self.shrink(x.sum().item())  # hot
        if self.steps % self.every:
            self.shrink(x.sum().item())  # hot
        if self.steps % self.every < self.warm:
            self.grow(x.sum().item())  # cold
"""


def test_what_runs_in_all_steps_but_one_of_many_is_hot() -> None:
    marked = {n: line.rpartition("# ")[2] for n, line in enumerate(REMAINDERS.splitlines(), 1) if "# " in line}
    assert heat(REMAINDERS.encode(), "sparse.py") == marked


DELAYED = """
import torch

def _update_with_batch(self, x: torch.Tensor):
    if self.count % self.cfg.{delay} == 0:
        self.last = x.sum().item()
"""


@pytest.mark.parametrize(
    ("delay", "told"), [("policy_delay", True), ("update_actor_freq", True), ("log_freq", False), ("save_delay", False)]
)
def test_an_actor_is_trained_every_few_steps(delay: str, told: bool) -> None:
    found = sites(DELAYED.format(delay=delay).encode(), "td3.py")
    assert [(site.hot, site.whole) for site in found if site.op == "item"] == [(told, False)]
