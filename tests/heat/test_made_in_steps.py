"""Objects that a step makes of classes that it looks up, and the method by which one sends a batch of a class of one's own."""

from pathlib import Path

from syncscope.tensors.interpret import Project, sites

SOLVERS = """
import torch

class Solver:
    def __init__(self, y, tol):
        self.tol = torch.tensor(tol, device=y.device)  # hot

class Euler(Solver):
    def solve(self, y):
        return y + self.tol

class Other:
    def __init__(self, y, tol):
        self.tol = torch.tensor(tol, device=y.device)  # cold

SOLVERS = {"euler": Euler}
"""
MODEL = """
import torch
from .solvers import SOLVERS

class Model(torch.nn.Module):
    def forward(self, y: torch.Tensor, method):
        solver = SOLVERS[method](y, tol=1e-3)
        return solver.solve(y)
"""
ROWS = """
import torch

class RowsDataset:
    def __init__(self, rows: torch.Tensor):
        self.rows = rows

    def to(self, device):
        return RowsDataset(self.rows.to(device))  # hot

    def cuda(self):
        return RowsDataset(self.rows.cuda())  # cold
"""


def marks(text: str) -> dict[int, bool]:
    """The lines that are marked, and whether they are hot."""
    marked = ((at, line.rpartition("# ")[2]) for at, line in enumerate(text.splitlines(), 1) if "# " in line)
    return {at: said == "hot" for at, said in marked}


def hot(path: Path) -> dict[int, bool]:
    return {site.place.line: site.heat.hot for site in sites(path.read_bytes(), str(path), Project())}


def test_what_makes_an_object_of_a_class_that_a_step_looks_up_runs_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "ode"
    folder.mkdir()
    for name, text in (("__init__", ""), ("solvers", SOLVERS), ("model", MODEL)):
        (folder / f"{name}.py").write_text(text)
    assert hot(folder / "solvers.py") == marks(SOLVERS)


def test_a_batch_of_a_class_of_ones_own_is_sent_in_a_step_wherever_its_class_stands(tmp_path: Path) -> None:
    folder = tmp_path / "kit" / "data"
    folder.mkdir(parents=True)
    for path, text in ((folder.parent / "__init__.py", ""), (folder / "__init__.py", ""), (folder / "rows.py", ROWS)):
        path.write_text(text)
    (folder.parent / "train.py").write_text(
        "import torch\n\ndef train(net, batches, device):\n    for rows in batches:\n"
        "        net(rows.to(device)).backward()\n"
    )
    assert hot(folder / "rows.py") == marks(ROWS)
