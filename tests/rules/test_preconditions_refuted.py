"""Fixes whose ground the project itself takes away, or that leave the step waiting, are not offered, or not as fixes."""

from pathlib import Path

import pytest
from rules.driver import HEAD, findings

from syncscope.linter.config import Config
from syncscope.linter.engine import check_file, project
from syncscope.model.finding import Safety

POOLS = """import torch
from torch_geometric.nn import global_add_pool

class Net(torch.nn.Module):
    def forward(self, data):
        return self.head(global_add_pool(data.x, data.batch))
"""


@pytest.mark.parametrize(
    ("other", "offered"),
    [
        ("from torch_geometric.loader import DataLoader\n", True),
        ("from deepsnap.batch import Batch\n", False),
        ("class Batch:\n    def num_graphs(self):\n        return self.batch[-1].item() + 1\n", False),
    ],
)
def test_graphs_are_not_counted_by_a_batch_that_reads_for_it(tmp_path: Path, other: str, offered: bool) -> None:
    package = tmp_path / "net"
    package.mkdir()
    for name, text in {"__init__.py": "", "model.py": POOLS, "loader.py": other}.items():
        (package / name).write_text(text)
    project.cache_clear()
    told = check_file(str(package / "model.py"), Config(all=True)).findings
    assert [each.fix is not None for each in told if each.rule == "hidden-read"] == [offered]


LOSS = """
class {name}(torch.nn.Module):
    def __init__(self, quantiles):
        super().__init__()
        {kept}

    def forward(self, x: torch.Tensor):
        return x - {sent}
"""


@pytest.mark.parametrize(
    ("kept", "sent"),
    [
        ("self.quantiles = quantiles", "torch.tensor(self.quantiles, device=x.device)"),
        ("self.quantiles = torch.ones(3)", "self.quantiles.to(x.device)"),
    ],
)
def test_a_buffer_of_a_loss_is_only_suggested(kept: str, sent: str) -> None:
    """Most are moved nowhere: what `.to(x.device)` sends is sent as before."""
    for name, safety in {"PinballLoss": Safety.SUGGEST, "Scaler": Safety.UNSAFE}.items():
        told = findings(HEAD + LOSS.format(name=name, kept=kept, sent=sent))
        fixes = [each.fix for each in told if each.fix is not None and "buffer" in each.fix.title]
        assert [fix.safety for fix in fixes] == [safety], name
        assert ("must be moved to the device itself" in fixes[0].changes) == (safety is Safety.SUGGEST)


ANY = """
def stats(x: torch.Tensor, n: int):
    share = 0.0
    read = (x.float().mean() * 2).item()
    if {test}:
        share = read
    return share
"""


@pytest.mark.parametrize(
    ("test", "offered"), [("n > 0", False), ("n >= 1", False), ("n != 0", False), ("n % 3 != 0", True), ("n > 9", True)]
)
def test_a_read_that_is_made_all_the_same_is_not_put_off(test: str, offered: bool) -> None:
    (told,) = findings(HEAD + ANY.format(test=test), "host-read")
    assert (told.fix is not None) == offered
