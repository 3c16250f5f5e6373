"""A number that a function is asked for, in no known step, is cold where there is nothing to write instead."""

from syncscope.linter.config import Config
from syncscope.linter.engine import check

ASKED = """
import torch

def temperature(steps: torch.Tensor) -> float:
    return 0.5 ** int(steps)  # cold

def worst(x: torch.Tensor) -> dict[str, int]:
    place = int(x.argmax())  # cold
    return {"worst": place}

def biggest(x: torch.Tensor):
    return 2 + x.max().item()  # cold

def scaled(x: torch.Tensor):
    return x * int(x.argmin())  # hot

def accept(x: torch.Tensor):
    if x.sum().item() > 3:  # hot
        return x
    return x * 2

def _sample(x: torch.Tensor):
    return x * 2 if x.min().item() > 1 else x  # cold

def weights(x: torch.Tensor) -> tuple[torch.Tensor, int]:
    count = int(x.max())  # hot
    return x * count, count

def training_step(x: torch.Tensor) -> float:
    return 2 + x.max().item()  # hot

def first_of(x: torch.Tensor, keep: torch.Tensor):
    width = max(int(keep.sum(dim=-1).max().item()), 1)  # cold
    return x[:, :width] + torch.zeros(width)

def first_and_more(x: torch.Tensor, keep: torch.Tensor):
    width = int(keep.sum(dim=-1).max().item())  # hot
    return x[:, :width] / width

def each(x: torch.Tensor, keep: torch.Tensor):
    for i in range(3):
        x[i, : keep[i].item()] = 0  # hot
    return x

def each_and_all(x: torch.Tensor, keep: torch.Tensor):
    for i in range(3):
        x[i, : keep[i].item()] = 0  # hot
    return [one[: int(size)] for one, size in zip(x, keep)]  # cold

def all_at_once(x: torch.Tensor, keep: torch.Tensor):
    shorter = [one[: int(size)] for one, size in zip(x, keep)]  # hot
    return shorter

def rows(x: torch.Tensor, keep: torch.Tensor):
    return x.new_zeros(int(keep.max()) + 1, 3)  # cold

def forward(graph, batch: torch.Tensor):
    graphs = getattr(graph, "num_graphs", None)
    if graphs is None:
        graphs = 1 if batch is None else int(batch.max().item()) + 1  # cold
    return batch.new_zeros(graphs)

def compute_loss(graph, batch: torch.Tensor, graphs=None):
    if graphs is None:
        graphs = int(batch.max().item()) + 1  # hot
    return batch.new_zeros(graphs)

class ViterbiDecoder:
    def best(self, x: torch.Tensor):
        return x[x > 0] + x[x < 0]  # cold

class ViterbiLoss:
    def forward(self, x: torch.Tensor):
        return x[x > 0]  # hot
"""


def test_what_is_asked_for_is_cold_outside_of_a_known_step() -> None:
    marked = {n: "# hot" in row for n, row in enumerate(ASKED.splitlines(), 1) if "# hot" in row or "# cold" in row}
    found = check("x.py", ASKED.encode(), Config(all=True)).findings
    assert {f.place.line: f.heat.whole for f in found} == marked
