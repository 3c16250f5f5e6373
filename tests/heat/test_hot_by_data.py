"""Data before a step, and constants: uploads of batches, tokenizers and transforms, hot or cold by who prepares what."""

from pathlib import Path

import pytest
from heat.hot_lines import heat

from syncscope.tensors.interpret import Project, sites


@pytest.mark.parametrize(
    ("given", "hot"),
    [("pin_memory=True", True), ("workers=4", False), ("**settings.LOADER", True)],
)
def test_an_upload_of_a_batch_is_hot_where_a_loader_pins_or_can_be_told_to(
    tmp_path: Path, given: str, hot: bool
) -> None:
    (tmp_path / "setup.py").touch()
    if "settings" in given:  # which speaks of no torch
        (tmp_path / "settings.py").write_text('LOADER = {"pin_memory": True}\n')
    (tmp_path / "data.py").write_text(
        f"import settings\nfrom torch.utils.data import DataLoader\n\ndef made(rows):\n    return DataLoader(rows, {given})\n"
    )
    train = tmp_path / "train.py"
    train.write_text(
        "import torch\nfrom data import made\n\ndef train(model, rows):\n    for x in made(rows):\n"
        "        model(x.to('cuda')).mean().backward()\n"
    )

    def found() -> list[bool]:
        return [site.whole for site in sites(train.read_bytes(), str(train), Project()) if site.op == "to_device"]

    assert found() == [hot]
    train.write_text(train.read_text() + "\ntrain(model, DataLoader(rows))\n")
    assert found() == [True]


def test_an_upload_of_what_a_tokenizer_made_is_cold_and_so_is_what_collates_and_explains() -> None:
    source = b"""
import torch
from transformers import BertTokenizer

class Collater:
    def __call__(self, x: torch.Tensor):
        return x.sum().item()

class NodeExplainer(torch.nn.Module):
    def forward(self, x: torch.Tensor):
        return x.sum().item()

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokenizer = BertTokenizer.from_pretrained("bert")

    def forward(self, x: torch.Tensor, text):
        words = self.tokenizer(text, return_tensors="pt").to(x.device)
        return x.sum().item()
"""
    assert [site.whole for site in sites(source, "x.py")] == [False, False, True], (
        "what a collater has lives on the host"
    )


def test_a_constant_that_is_moved_to_where_it_is_needed_and_kept_is_moved_once() -> None:
    source = b"""
import torch

class Net(torch.nn.Module):
    def __init__(self):
        self.mean = torch.Tensor([0.5, 0.4, 0.4]).view(1, 3, 1, 1)

    def forward(self, x):
        self.mean = self.mean.type_as(x)
        return x - self.mean
"""
    assert [s.whole for s in sites(source, "x.py")] == [False]
    assert [s.whole for s in sites(source.replace(b"self.mean = self", b"mean = self"), "x.py")] == [True]


DISTRIBUTIONS = b"""
import torch
from torch.distributions import Normal
from torch.distributions.transforms import Transform

class Shuffled(Transform):
    def __init__(self, order: torch.Tensor):
        self.first = order.sum().item()  # hot

    def _call(self, x: torch.Tensor):
        return x * x.sum().item()  # hot

class Crop:
    def __init__(self, order: torch.Tensor):
        self.first = order.sum().item()  # cold

class CropTransform:
    def apply(self, x: torch.Tensor):
        return x * x.sum().item()  # cold

class ShuffledTransform(Shuffled):
    def apply(self, x: torch.Tensor):
        return x * x.sum().item()  # hot
"""


def test_what_distributions_are_transformed_by_is_made_in_each_step_and_is_no_transform_of_data() -> None:
    lines = enumerate(DISTRIBUTIONS.splitlines(), 1)
    marks = {n: line.rpartition(b"# ")[2].decode() for n, line in lines if line.endswith((b"# hot", b"# cold"))}
    assert heat(DISTRIBUTIONS, "transforms.py") == marks


@pytest.mark.parametrize(("gives", "hot"), [("logabsdet", True), ("resized", False)])
def test_transforms_of_flows_prepare_no_data(tmp_path: Path, gives: str, hot: bool) -> None:
    code = (
        "import torch\n\nclass Spline(torch.nn.Module):\n    def forward(self, inputs):\n        return spline(inputs)\n\n"
        f"def spline(inputs: torch.Tensor):\n    {gives} = inputs.sum().item()\n    return inputs, {gives}\n"
    )
    folder = tmp_path / "flows" / "transforms"
    folder.mkdir(parents=True)
    for each in (folder.parent, folder):
        (each / "__init__.py").write_text("")
    (folder / "splines.py").write_text(code)
    found = sites(code.encode(), str(folder / "splines.py"), Project())
    assert [site.hot for site in found] == [hot]


@pytest.mark.parametrize(("base", "hot"), [("BaseDataset", False), ("Rows", False), ("Base", True)])
def test_a_class_that_derives_from_a_data_set_is_one_whatever_it_is_called(
    tmp_path: Path, base: str, hot: bool
) -> None:
    (tmp_path / "setup.py").touch()
    (tmp_path / "base.py").write_text(
        "from torch.utils.data import Dataset\n\nclass BaseDataset(Dataset):\n    pass\n\nclass Base:\n    pass\n\n"
        "class Rows(BaseDataset):\n    pass\n"
    )
    noise = tmp_path / "noise.py"
    noise.write_text(
        f"import torch\nfrom base import {base}\n\nclass ForNoise({base}):\n    def get_mask(self, seen):\n"
        "        return torch.rand_like(seen) * seen.sum().item()\n"
    )
    (tmp_path / "train.py").write_text(
        "from noise import ForNoise\n\ndef train(model, optimizer, loader, noise: ForNoise):\n    for x in loader:\n"
        "        loss = model(x * noise.get_mask(x)).mean()\n        loss.backward()\n        optimizer.step()\n"
    )
    found = sites(noise.read_bytes(), str(noise), Project())
    assert [site.hot for site in found if site.op == "item"] == ([True] if hot else [])


@pytest.mark.parametrize(("kept", "hot"), [("rows.to(device)", True), ("rows", False)])
def test_a_data_set_that_keeps_its_rows_on_the_device_picks_each_batch_there(kept: str, hot: bool) -> None:
    code = f"""
import torch

class OfflineDataset:
    def __init__(self, rows: torch.Tensor, device):
        self.rows = {kept}

    def sample(self, seen: torch.Tensor):
        return self.rows[torch.randint(0, 9, (4,))] * seen.sum().item()
"""
    for path in ("offline.py", "dataset.py"):
        found = sites(code.encode(), path, Project())
        assert [site.hot for site in found if site.op == "index_host"] == ([True] if hot else [])


@pytest.mark.parametrize(
    ("brought", "given", "hot"),
    [("math", "x", True), ("torchvision", "x", False), ("math", "data", False)],
)
def test_transforms_that_are_layers_prepare_no_data(tmp_path: Path, brought: str, given: str, hot: bool) -> None:
    folder = tmp_path / "cvs" / "transform"
    folder.mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    for package in (folder.parent, folder):
        (package / "__init__.py").touch()
    path = folder / "distances.py"
    path.write_text(f"""
import torch
import {brought}

class Distances(torch.nn.Module):
    def forward(self, {given}):
        return self.pairs({given})

    def pairs(self, positions: torch.Tensor):
        apart = torch.cdist(positions, positions) * torch.eye(3, device=positions.device)
        return apart[apart.triu().nonzero(as_tuple=True)]
""")
    assert [s.hot for s in sites(path.read_bytes(), str(path), Project()) if s.op == "nonzero"] == [hot]
