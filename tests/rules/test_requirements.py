"""No fix writes what the oldest torch that a project asks for does not have, or needs what a package does not ask for."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from syncscope.cli import commands
from syncscope.codemod.since import SINCE
from syncscope.linter.config import Config
from syncscope.linter.engine import check_file
from syncscope.project.requirements import Requirements, requirements

CODE = """
import torch
from torch import nn


class Blur(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.kernel = torch.ones(1, 1, size, size) / size**2

    def forward(self, x: torch.Tensor):
        return nn.functional.conv2d(x, self.kernel.to(x.device))
"""
SETUP = 'import sys\nsys.exit("run")\nNEEDS = ["numpy", "torch>=1.4.0,<3"]\nsetup(install_requires=NEEDS)\n'


@pytest.mark.parametrize(
    ("name", "text", "oldest"),
    [
        ("setup.py", SETUP, (1, 4, 0)),
        ("setup.py", 'setup(install_requires=["torchvision>=0.1", "torch-geometric>=2", "torch"])', ()),
        ("setup.py", "setup(", ()),
        ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch ~= 1.7\n", (1, 7)),
        ("setup.cfg", "[options.extras_require]\ngpu =\n    torch[opt] (>=2.1)\n", (2, 1)),
        ("pyproject.toml", "[project]\ndependencies = [\"torch>=1.10; python_version>'3.6'\"]\n", (1, 10)),
        ("pyproject.toml", '[project.optional-dependencies]\nml = ["torch==2.0.1"]\n', (2, 0, 1)),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = {version = "^1.8", optional = true}\n', (1, 8)),
        ("pyproject.toml", "[project\n", ()),
        ("requirements.txt", "torch>=1.13  # or later\n", (1, 13)),
    ],
)
def test_the_oldest_torch_is_what_a_file_of_the_project_says(
    tmp_path: Path, name: str, text: str, oldest: tuple[int, ...]
) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / name).write_text(text)
    (tmp_path / "net.py").touch()
    assert requirements(str(tmp_path / "net.py")).torch == oldest


def test_an_installed_package_says_so_in_its_metadata(tmp_path: Path) -> None:
    for name, needs in (("blurred-1.0", "torch (>=1.5)"), ("other-2.0", "torch>=2.5")):
        info = tmp_path / f"{name}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {name}\nRequires-Dist: numpy\nRequires-Dist: {needs}\n")
    package = tmp_path / "blurred"
    package.mkdir()
    (package / "net.py").touch()
    assert requirements(str(package / "net.py")) == Requirements((1, 5), listed=True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[project]\nrequires-python = ">=3.10,<4"\ndependencies = ["torch>=1.0"]\n'),
        ("setup.cfg", "[options]\npython_requires = >= 3.10\ninstall_requires =\n    torch >= 1.0\n"),
        ("setup.py", 'setup(install_requires=["torch>=1.0"],\n    python_requires=">=3.10.2")\n'),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "^3.10"\ntorch = "^1.0"\n'),
    ],
)
def test_a_torch_that_the_oldest_python_cannot_have_is_asked_for_in_vain(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / name).write_text(text)
    (tmp_path / "net.py").touch()
    assert requirements(str(tmp_path / "net.py")).torch == (1, 11)


@pytest.mark.parametrize(("version", "offered"), [("1.4", False), ("1.6", True), ("2.1", True)])
def test_a_buffer_that_is_not_persistent_needs_torch_1_6(tmp_path: Path, version: str, offered: bool) -> None:
    (tmp_path / "setup.py").write_text(f'setup(install_requires=["torch>={version}"])')
    (tmp_path / "net.py").write_text(CODE)
    found = check_file(str(tmp_path / "net.py"), Config(root=str(tmp_path))).findings
    assert any(f.fix is not None and "persistent=False" in f.fix.edits[-1].text for f in found) is offered


def test_it_is_said_what_the_oldest_torch_has_not(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text('setup(install_requires=["torch>=1.4"])')
    (tmp_path / "net.py").write_text("import torch\ndef forward(x: torch.Tensor):\n    assert (x.exp() > 0).all()\n")
    told = CliRunner().invoke(commands, ["lint", "--isolated", "--no-cache", str(tmp_path / "net.py")]).stdout
    assert "it writes `_assert_async`, which torch has since 1.8, and the project takes torch 1.4, too" in told


MASKED = """
import torch


def forward(guess: torch.Tensor, depth: torch.Tensor):
    valid = depth > 0
    error = (guess[valid] - depth[valid]) ** 2
    return torch.sqrt(error.mean() + 0.85 * error.sum() / valid.sum())
"""


@pytest.mark.parametrize(("name", "suggested"), [("setup.py", False), ("requirements.txt", True), ("", True)])
def test_no_package_is_to_depend_on_us_for_one_loss(tmp_path: Path, name: str, suggested: bool) -> None:
    if name:
        (tmp_path / name).write_text('setup(install_requires=["torch"])' if name == "setup.py" else "torch\n")
    (tmp_path / "net.py").write_text(MASKED)
    found = check_file(str(tmp_path / "net.py"), Config(root=str(tmp_path))).findings
    fixes = [each for f in found if f.fix for each in (f.fix, f.fix.also) if each]
    assert any("comprehension" in each.title for each in fixes) is suggested


def test_versions_are_in_order() -> None:
    assert list(SINCE.values()) == sorted(SINCE.values())
