"""What a program trains and what it only evaluates, exports or shows: marked files, in a project that starts its training."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from syncscope.tensors.interpret import Project, sites

FILES = {
    "train": """
    import torch
    import val as validate
    import losses
    from models import Net
    from helpers import solved

    def train(loader, testing_iterations):
        model = Net()
        size = solved(torch.ones(3).cuda())
        for epoch in range(10):
            for step, x in enumerate(loader):
                loss = losses.total(model(x))
                loss.backward()
                model.optimizer.step()
                if step in testing_iterations:
                    print(loss.item())  # cold
                print(loss.item())  # hot
            validate.run(model)

    if __name__ == "__main__":
        train([], [100])
    """,
    "val": """
    import torch
    from models import Exported

    def run(model):
        counted(torch.ones(3).cuda())

    def counted(x: torch.Tensor):
        print(x.sum().item())  # cold

    def served():
        return Exported()
    """,
    "models": """
    import torch

    class Net(torch.nn.Module):
        def forward(self, x: torch.Tensor, reverse=False):
            if reverse:
                print(x.sum().item())  # cold
            return x / x.sum().item()  # hot

    class Exported(torch.nn.Module):
        def forward(self, x: torch.Tensor):
            return x / x.sum().item()  # cold
    """,
    "losses": """
    import torch

    def total(x: torch.Tensor):
        return x / x.sum().item()  # hot
    """,
    "helpers": """
    import torch

    def solved(x: torch.Tensor):
        return x.sum().item()  # cold
    """,
}


@pytest.mark.parametrize("name", FILES)
def test_what_no_training_loop_builds_or_calls_runs_in_no_step(name: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    for each, text in FILES.items():
        (tmp_path / f"{each}.py").write_text(textwrap.dedent(text))
    file = tmp_path / f"{name}.py"
    found = sites(file.read_bytes(), str(file), Project())
    lines = enumerate(textwrap.dedent(FILES[name]).splitlines(), 1)
    marked = {number: line.rpartition("# ")[2] for number, line in lines if "# " in line}
    assert {each.place.line: "hot" if each.hot else "cold" for each in found if each.op == "item"} == marked
