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


def heat_of(name: str, files: dict[str, str], folder: Path) -> bool:
    """Whether one of these files is hot and cold as it is marked."""
    (folder / "pyproject.toml").touch()
    for each, text in files.items():
        (folder / f"{each}.py").write_text(textwrap.dedent(text))
    file = folder / f"{name}.py"
    found = sites(file.read_bytes(), str(file), Project())
    lines = enumerate(textwrap.dedent(files[name]).splitlines(), 1)
    marked = {number: line.rpartition("# ")[2] for number, line in lines if "# " in line}
    assert {each.place.line: "hot" if each.hot else "cold" for each in found if each.op == "item"} == marked
    return bool(marked)


@pytest.mark.parametrize("name", FILES)
def test_what_no_training_loop_builds_or_calls_runs_in_no_step(name: str, tmp_path: Path) -> None:
    assert heat_of(name, FILES, tmp_path)


TABLES = {
    "train": """
    import torch
    from tables import LOSSES, METRICS
    from building import made

    def train(loader, name):
        model, criterion, other = torch.nn.Linear(3, 3).cuda(), LOSSES[name], made(name)
        for step, (x, y) in enumerate(loader):
            loss = criterion(model(x), y) + other(x)
            loss.backward()
            model.optimizer.step()
        evaluate(model, loader)

    def evaluate(model, loader):
        return [METRICS[name](model(x), y) for x, y in loader for name in METRICS]

    if __name__ == "__main__":
        train([], "first")
    """,
    "tables": """
    from functions import first, second, measured, unused

    LOSSES = {"first": first}
    LOSSES["second"] = second
    METRICS: dict[str, object] = {"measured": measured}
    """,
    "building": """
    from registry import OTHERS

    def made(name):
        return OTHERS.get(name)
    """,
    "registry": """
    OTHERS = dict()
    """,
    "functions": """
    import torch
    from registry import OTHERS

    def first(x: torch.Tensor, y):
        return x / x.sum().item()  # hot

    def second(x: torch.Tensor, y):
        return x / x.sum().item()  # hot

    def third(x: torch.Tensor):
        return x / x.sum().item()  # hot

    def measured(x: torch.Tensor, y):
        return x / x.sum().item()  # cold

    def unused(x: torch.Tensor, y):
        return x / x.sum().item()  # cold

    OTHERS.update(third=third)
    """,
}


def test_a_closure_that_a_loop_at_the_top_level_hands_to_its_optimizer_is_part_of_the_step(tmp_path: Path) -> None:
    """It was taken for the inside of the method above it, which had ended long before."""
    code = """
    import torch
    from torch import nn
    from data import loader

    class Sequence(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(8, 8)

        def forward(self, x):
            return self.fc(x)

    if __name__ == "__main__":
        net = Sequence().cuda()
        opt = torch.optim.LBFGS(net.parameters())
        for x in loader:
            def closure():
                opt.zero_grad()
                loss = net(x.cuda()).sum()
                print("loss", loss.item())  # hot
                loss.backward()
                return loss

            opt.step(closure)
    """
    assert heat_of("sequence", {"sequence": code}, tmp_path)


def test_what_a_table_holds_is_used_where_the_table_is(tmp_path: Path) -> None:
    assert heat_of("functions", TABLES, tmp_path)


@pytest.mark.parametrize(
    ("outer", "inner", "hot"),
    [
        ("from .nn.layers import Pooled, Scaled\n", "", True),
        ("", "from .layers import Pooled, Scaled\n", True),
        ("", "", False),
    ],
    ids=["by itself", "by a package in it", "nowhere"],
)
def test_a_package_in_no_project_is_for_others_where_it_offers_something(
    tmp_path: Path, outer: str, inner: str, hot: bool
) -> None:
    files = {
        "__init__": outer,
        "nn/__init__": inner,
        "nn/layers": """
            import torch

            class Pooled(torch.nn.Module):
                def forward(self, x: torch.Tensor):
                    return x / x.sum().item()

            class Scaled(torch.nn.Module):
                def forward(self, x: torch.Tensor):
                    return x * 2
        """,
        "fit": """
            from .nn.layers import Scaled

            def fit(loader, optimizer):
                model = Scaled()
                for x in loader:
                    model(x).mean().backward()
                    optimizer.step()
        """,
    }
    folder = tmp_path / "pooling"
    (folder / "nn").mkdir(parents=True)
    for name, text in files.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text))
    layers = folder / "nn" / "layers.py"
    assert [site.hot for site in sites(layers.read_bytes(), str(layers), Project())] == [hot]


@pytest.mark.parametrize("renamed", [False, True])
def test_what_is_imported_under_another_name_is_trained_and_called_all_the_same(tmp_path: Path, renamed: bool) -> None:
    files = {
        "nets": """
            import torch

            class Base(torch.nn.Module):
                def forward(self, x: torch.Tensor):
                    return self.scaled(x)

                def scaled(self, x: torch.Tensor):
                    return x / x.sum().item()  # hot

            class Other(torch.nn.Module):
                def forward(self, x: torch.Tensor):
                    return x / x.sum().item()  # cold
        """,
        "measures": """
            import torch

            def shares(x: torch.Tensor):
                return x / x.sum().item()  # hot

            @torch.no_grad()
            def accuracy(x: torch.Tensor):
                return x / x.sum().item()  # hot

            def unused(x: torch.Tensor):
                return x / x.sum().item()  # cold
        """,
        "model": """
            import torch
            from nets import Base as Above, Other
            from measures import accuracy as acc, shares as shared

            class Network(Above):
                def forward(self, x):
                    return shared(super().forward(x)) * acc(x)
        """,
        "train": """
            from model import Network as Net

            def main(loader, optimizer):
                model = Net()
                for x in loader:
                    model(x).mean().backward()
                    optimizer.step()

            if __name__ == "__main__":
                main()
        """,
    }
    for name, text in files.items():
        for alias, named in (("Above", "Base"), ("acc", "accuracy"), ("shared", "shares"), ("Net", "Network")):
            if not renamed:
                text = (
                    text.replace(f"{named} as {alias}", named)
                    .replace(f"{alias}(", f"{named}(")
                    .replace(f"({alias})", f"({named})")
                )
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
    for name in ("nets", "measures"):
        path = tmp_path / f"{name}.py"
        lines = enumerate(path.read_text().splitlines(), 1)
        marked = {n: line.endswith("# hot") for n, line in lines if line.endswith(("# hot", "# cold"))}
        assert {site.place.line: site.hot for site in sites(path.read_bytes(), str(path), Project())} == marked
