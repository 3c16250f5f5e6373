"""A loop that calls the step of an object, whose file holds the backward pass: what it calls beside that runs in the step."""

from pathlib import Path

import pytest

from syncscope.tensors.interpret import Project, sites

RESTORER = """
import torch

class Restorer(torch.nn.Module):
    def take(self, x: torch.Tensor):
        self.x = x / x.max().item()  # {step}

    def reviewed(self, x: torch.Tensor):
        return x.max().item()  # cold

    def shown(self, x: torch.Tensor):
        return x.max().item()  # cold

    def optimize_parameters(self):
        loss = self.net(self.x).mean()
        loss.backward()
"""
TRAIN = """
import torch

from restorer import Restorer

def main():
    restorer = Restorer()
    restorer.shown(torch.rand(3))
    for i, x in enumerate(batches()):
        restorer.take(x)
        restorer.{called}()
        if i % 100 == 0:
            restorer.reviewed(x)

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(("called", "step"), [("optimize_parameters", "hot"), ("review", "cold")])
def test_what_is_called_beside_a_step_runs_in_it(called: str, step: str, tmp_path: Path) -> None:
    code = RESTORER.format(step=step)
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "restorer.py").write_text(code)
    (tmp_path / "train.py").write_text(TRAIN.format(called=called))
    found = {each.place.line: each.hot for each in sites(code.encode(), str(tmp_path / "restorer.py"), Project())}
    marked = {line: text[-3:] == "hot" for line, text in enumerate(code.splitlines(), 1) if "  # " in text}
    assert found == marked


FEED = "def feed_data(self, x: torch.Tensor):\n        self.x = x / x.max().item()"


@pytest.mark.parametrize(
    ("methods", "hot"),
    [
        (f"@torch.no_grad()\n    {FEED}", [True]),
        (f"def feed_train_data(self, x): ...\n    {FEED}", [False]),
    ],
)
def test_what_a_loop_of_basicsr_has_its_model_take_runs_in_every_step(
    methods: str, hot: list[bool], tmp_path: Path
) -> None:
    code = f"import torch\nfrom basicsr.models.sr_model import SRModel\nclass Net(SRModel):\n    {methods}\n"
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "net.py").write_text(code)
    assert [each.hot for each in sites(code.encode(), str(tmp_path / "net.py"), Project())] == hot


MAKER = b"""
import torch

def training_function(G, D, config):
    def train(x, y):
        x = torch.split(x, config["batch_size"])
        for part in range(config["num_D_accumulations"]):
            D_loss = D(x[part]).mean()
            D_loss.backward()
        D.optim.step()
        return {"D_loss": D_loss.item()}  # hot
    return train

def run(config, loaders, G, D):
    train = training_function(G, D, config)
    for epoch in range(config["num_epochs"]):
        pbar = progress(loaders[0])
        for i, (x, y) in enumerate(pbar):
            x, y = x.to("cuda"), y.to("cuda")
            losses = train(x, y)
            print(x.sum().item())  # hot
        print(x.sum().item())  # cold
    for x in test_loader:
        train(x, x)
        print(x.sum().item())  # cold
"""


def test_a_loop_that_hands_each_batch_to_what_was_made_to_train_on_it_is_a_training_loop(tmp_path: Path) -> None:
    (tmp_path / "setup.py").touch()
    path = tmp_path / "run.py"
    path.write_bytes(MAKER)
    found = {site.place.line: site.hot for site in sites(MAKER, str(path), Project()) if site.op == "item"}
    lines = enumerate(MAKER.decode().splitlines(), 1)
    assert found == {n: line.endswith("# hot") for n, line in lines if line.endswith(("# hot", "# cold"))}
