"""What runs in a step is looked up in the whole project: who is spoken of by a step, itself or through others."""

from pathlib import Path

import pytest

from syncscope.heat.reach import reach
from syncscope.heat.steps import files, roots
from syncscope.model.heat import Role
from syncscope.project.folders import root_of
from syncscope.tensors.interpret import Project, sites

MODEL = """
from functools import partial

import torch

from .ops import called, kept
from .mixins import Sized

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.prepare = partial(kept, 3)

    def forward(self, x):
        return called(x) / self.size_of(x)

    def evaluate(self, x):
        from .ops import only_evaluated
        return only_evaluated(x)
"""
OPS = """
import torch

def called(x: torch.Tensor):
    return through_another(x)

def through_another(x: torch.Tensor):
    return x.sum().item()  # hot

def kept(n, x: torch.Tensor):
    return x.sum().item()  # hot

def only_evaluated(x: torch.Tensor):
    return x.sum().item()  # cold

def spoken_of_by_nobody(x: torch.Tensor):
    \"\"\"As `through_another`.\"\"\"
    def inside():
        return x.sum().item()  # cold
    return inside()

class Pool:
    def __iter__(self):
        yield torch.ones(3, device="cuda").sum().item()  # hot
"""
MIXINS = """
import torch

class Sized:
    def size_of(self, x: torch.Tensor):
        return x.sum().item()  # hot

    def norm_of(self, x: torch.Tensor):
        return x.sum().item()  # cold
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / "net"
    folder.mkdir(parents=True)
    for name, text in {"__init__": "", "model": MODEL, "ops": OPS, "mixins": MIXINS}.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def heat(path: Path) -> dict[int, str]:
    """Hot or cold, for each line with a wait."""
    found = sites(path.read_bytes(), str(path), Project())
    return {site.place.line: "hot" if site.whole else "cold" for site in found}


def marked(text: str) -> dict[int, str]:
    lines = enumerate(text.splitlines(), 1)
    return {number: line.rpartition("# ")[2] for number, line in lines if line.endswith(("# hot", "# cold"))}


@pytest.mark.parametrize("name", ["ops", "mixins"])
def test_hot_is_what_a_step_in_another_file_reaches(package: Path, name: str) -> None:
    path = package / f"{name}.py"
    assert heat(path) == marked(path.read_text())


def test_where_no_step_is_known_nothing_is_said_to_be_unreached(package: Path) -> None:
    (package / "model.py").unlink()
    assert set(heat(package / "ops.py").values()) == {"hot"}


def test_a_function_with_a_backward_pass_is_a_step_wherever_programs_stand(package: Path) -> None:
    (package / "model.py").unlink()
    (package.parent / "pyproject.toml").touch()
    tools = package.parent / "tools"
    tools.mkdir()
    program = "import torch\nfrom net.ops import only_evaluated\n\ndef run(batches):\n    for x in batches:\n"
    (tools / "run.py").write_text(program + "        only_evaluated(x).backward()\n")
    hot = [line for line, told in heat(package / "ops.py").items() if told == "hot"]
    lines = OPS.splitlines()
    assert [lines[line - 2] for line in hot] == ["def only_evaluated(x: torch.Tensor):", "    def __iter__(self):"]


def test_tests_make_nothing_hot(package: Path) -> None:
    tests = package / "tests"
    tests.mkdir()
    (tests / "__init__.py").touch()
    (tests / "test_ops.py").write_text(
        "import torch\nfrom net.ops import *\n\ndef forward(x):\n    spoken_of_by_nobody(x)\n"
    )
    assert heat(package / "ops.py") == marked(OPS)


def test_the_root_is_the_folder_that_is_marked_or_the_outermost_package(package: Path) -> None:
    inner = package / "inner"
    inner.mkdir()
    (inner / "__init__.py").touch()
    assert [*roots(inner)] == [package]
    (package.parent / "setup.py").touch()
    assert [*roots(inner)] == [package.parent, package]
    assert [*roots(package.parent)] == [package.parent]


def test_scripts_in_no_project_are_one_where_one_of_them_trains(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("import torch\n")
    assert [*roots(tmp_path)] == []
    (tmp_path / "train.py").write_text("import torch\n\nfor x in loader:\n    net(x).backward()\n")
    assert [*roots(tmp_path)] == [tmp_path]


def test_what_a_step_only_prints_the_name_of_is_not_reached(tmp_path: Path) -> None:
    kept = "import torch\n\ndef kept(x: torch.Tensor):\n    return x / x.sum().item()\n\n"
    shown = kept.replace("kept", "shown")
    path = tmp_path / "train.py"
    (tmp_path / "setup.py").touch()
    path.write_text(
        f"{kept}{shown}def train(loader, net):\n    for x in loader:\n        loss = kept(net(x))  # shown later\n"
        "        loss.backward()\n        print(f'{net.name}, shown in {time():.3f} s')\n"
    )
    found = {site.place.line: site.hot for site in sites(path.read_bytes(), str(path), Project()) if site.op == "item"}
    assert found == {4: True, 9: False}


def test_what_is_installed_beside_the_project_and_hidden_folders_are_not_gone_through(package: Path) -> None:
    for folder in (".venv/lib", "venv/site-packages/other", "build/lib/other"):
        (package / folder).mkdir(parents=True)
        (package / folder / "x.py").touch()
    assert sorted(Path(path).name for path in files(package)) == ["__init__.py", "mixins.py", "model.py", "ops.py"]


def test_packages_that_were_installed_into_one_folder_are_projects_of_their_own(package: Path) -> None:
    (package.parent / "net-1.0.dist-info").mkdir()
    (package.parent / "pyproject.toml").touch()  # which a wheel has left there
    assert [*roots(package)] == [package]
    assert not root_of(str(package))


def test_a_package_in_a_folder_of_what_was_built_is_none_of_the_project_around_it(package: Path) -> None:
    (package.parent / "setup.py").touch()
    copied = package.parent / "build" / "lib" / "other"
    copied.mkdir(parents=True)
    (copied / "__init__.py").touch()
    assert [*roots(copied)] == [copied]
    own = package / "build"
    own.mkdir()
    (own / "__init__.py").touch()
    assert [*roots(own)] == [package.parent, package]
    assert str(own / "__init__.py") in files(package)


def test_what_was_installed_and_is_no_package_is_a_project_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "tab" / "networks"
    folder.mkdir(parents=True)
    (tmp_path / "tab-1.0.dist-info").mkdir()
    assert [*roots(folder)] == [tmp_path / "tab"]
    assert [*roots(tmp_path)] == []
    model = "import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n\n"
    path = folder / "net.py"
    path.write_text(f"{model}    def masks_of(self, x: torch.Tensor):\n        return x / x.sum().item()\n")
    (tmp_path / "tab" / "run.py").write_text("def explain(net, x):\n    return net.masks_of(x)\n")
    assert [site.hot for site in sites(path.read_bytes(), str(path), Project())] == [False]
    (tmp_path / "tab" / "run.py").write_text("def train_step(net, x):\n    net.masks_of(x).backward()\n")
    assert [site.hot for site in sites(path.read_bytes(), str(path), Project())] == [True]


def test_text_that_is_no_python_is_gone_through_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_bytes(b"import torch\r\ndef forward(x:\r\n\tf(x\r\n\xff\xfe '''\r\n def f(x)\r\n")
    known = reach(tmp_path, [str(path), str(tmp_path / "gone.py")])
    assert known is not None
    assert known.role(str(path), "forward", "") is Role.STEP


def test_an_import_from_above_all_folders_is_none(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text(f"import torch\nfrom {'.' * len(tmp_path.parts)}. import x\n\ndef forward(x):\n    return x\n")
    assert reach(tmp_path, [str(path)]) is not None
