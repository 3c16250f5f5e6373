"""A metric that a training loop calls as one of many runs in every step, however the many are kept."""

from pathlib import Path

import pytest

from syncscope.tensors.interpret import Project, sites

METRIC = """
import torch

def compute_accuracy(y: torch.Tensor, target: torch.Tensor):
    return (y.argmax(1) == target).float().mean().item()
"""
TRAINER = """
import torch

class Trainer:
    def __init__(self, model, optimizer, metrics):
        self.model, self.optimizer, self.metric_fns = model, optimizer, metrics

    def train_epoch(self, loader):
        for x, target in loader:
            y = self.model(x)
            loss = torch.nn.functional.cross_entropy(y, target)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            {called}
"""
TRAIN = """
import torch
{imports}
from trainer import Trainer

def main(config):
    model = torch.nn.Linear(4, 4).cuda()
    {filled}
    Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), metrics).train_epoch(config["loader"])

main({{}})
"""
LISTED = "metrics = [compute_accuracy]"
IMPORTED = "from metric import compute_accuracy"
ONE_BY_ONE = "for met in self.metric_fns:\n                met(y, target)"


@pytest.mark.parametrize(
    ("imports", "filled", "called", "is_hot"),
    [
        (IMPORTED, LISTED, ONE_BY_ONE, True),
        (IMPORTED, LISTED, "[each(y, target) for each in self.metric_fns]", True),
        (
            IMPORTED,
            "metrics = {'acc': compute_accuracy}",
            "{k: f(y, target) for k, f in self.metric_fns.items()}",
            True,
        ),
        ("import metric as of_metrics", "metrics = [getattr(of_metrics, n) for n in config['m']]", ONE_BY_ONE, True),
        ("import metric", "metrics = [getattr(metric, name) for name in config['metrics']]", ONE_BY_ONE, True),
        (
            "import model.metric as module_metric",
            "metrics = [getattr(module_metric, n) for n in config]",
            ONE_BY_ONE,
            True,
        ),
        (IMPORTED, LISTED, "for met in self.others:\n                met(y, target)", False),
        (
            IMPORTED,
            LISTED,
            f"if self.steps % 100 == 0:\n                {ONE_BY_ONE}".replace("met(y", "    met(y"),
            False,
        ),
        (IMPORTED, LISTED, "for met in self.metric_fns:\n                met.update(y, target)", False),
        (IMPORTED, "metrics = []", ONE_BY_ONE, False),
    ],
)
def test_a_metric_among_others_that_the_loop_calls_is_hot(imports, filled, called, is_hot, tmp_path: Path) -> None:
    files = {
        "pyproject.toml": "",
        "metric.py": METRIC,
        "trainer.py": TRAINER.format(called=called),
        "train.py": TRAIN.format(imports=imports, filled=filled),
    }
    for name, code in files.items():
        (tmp_path / name).write_text(code)
    found = sites(METRIC.encode(), str(tmp_path / "metric.py"), Project())
    assert [site.hot for site in found] == [is_hot]
