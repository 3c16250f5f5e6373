"""What one file of a project says of the values in another."""

from pathlib import Path

from syncscope.model.fact import Dtype
from syncscope.tensors.interpret import Project, sites

MASKS = """
import torch

def keep(target):
    return target.detach() != -1

class Head(torch.nn.Module):
    def forward(self, x):
        return x.softmax(1).argmax(1)
"""
TRAIN = """
import torch
from seg import keep
from .masks import Head
head = Head()
def loss(logits: torch.Tensor, target):
    chosen = keep(target)
    return logits[chosen].mean(), logits[head(logits)]
"""


def test_facts_cross_imports_of_the_same_project(tmp_path: Path) -> None:
    package = tmp_path / "seg"
    package.mkdir()
    (package / "__init__.py").write_text("from .masks import keep\n")
    (package / "masks.py").write_text(MASKS)
    train = package / "train.py"
    train.write_text(TRAIN)
    project = Project()
    (site,) = [s for s in sites(train.read_bytes(), str(train), project) if s.confidence >= 2]
    assert (site.op, site.fact.dtype) == ("mask_read", Dtype.BOOL)
    assert {Path(p).name for p in project.read} == {"__init__.py", "masks.py"}
    assert not [
        s for s in sites(train.read_bytes(), str(train)) if s.confidence >= 2
    ]  # without the project nothing is known


def test_what_is_said_of_a_file_does_not_depend_on_the_files_before(tmp_path: Path) -> None:
    one = "import torch\nfrom .b import g\ndef f(x, n):\n    return g(x, n - 1) if n else x.detach()\n"
    other = "import torch\nfrom .a import f\ndef g(x, n):\n    y = f(x, n)\n    return y if y.item() else y.detach()\n"
    for name, text in (("__init__.py", ""), ("a.py", one), ("b.py", other)):
        (tmp_path / name).write_text(text)

    def said(name: str, project: Project) -> list[object]:
        path = tmp_path / name
        return [(s.op, s.span, s.confidence) for s in sites(path.read_bytes(), str(path), project)]

    alone = {name: said(name, Project()) for name in ("a.py", "b.py")}
    for order in (("a.py", "b.py", "a.py"), ("b.py", "a.py", "b.py")):
        project = Project()
        for name in order:
            assert said(name, project) == alone[name]


def test_facts_can_be_asked_for_when_modules_have_become_too_many(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").touch()
    (tmp_path / "heads.py").write_text("import torch\nclass Head:\n    def chosen(self, x):\n        return x > 0\n")
    train = tmp_path / "train.py"
    train.write_text(
        "import torch\nfrom .heads import Head\n"
        "def loss(logits: torch.Tensor, head: Head):\n    return logits[head.chosen(logits)]\n"
    )
    for limit in (0, 1_000_000):
        (site,) = sites(train.read_bytes(), str(train), Project(limit=limit))
        assert site.operand is not None
        assert (site.fact.dtype, site.fact_of(site.operand).dtype) == (Dtype.BOOL, Dtype.BOOL), limit


def test_names_that_a_star_brings(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text(
        "import torch\nfrom blocks import *\n\ndef total(x: torch.Tensor):\n    return x.sum()\n"
    )
    (tmp_path / "blocks.py").write_text(
        "import torch\n\nclass Net(torch.nn.Linear):\n    pass\n\ndef size(x):\n    return 3\n"
    )
    source = b"import torch\nfrom models import *\n\ndef f(x):\n    if total(x) > size(x):\n        return Net(3, 4).cuda()\n"
    path = tmp_path / "train.py"
    path.write_bytes(source)
    assert [s.op for s in sites(source, str(path), Project())] == ["condition", "to_device"]


def test_a_module_of_torch_that_a_call_imports_is_that_module() -> None:
    code = 'from .platform import try_import\nth = try_import("torch")\nown = try_import("own")\n'
    code += "def whitened(x):\n    values, vectors = own.linalg.eigh(x)\n    return th.linalg.eigh(x), values\n"
    assert {site.place.line for site in sites(code.encode(), "use.py")} == {6}


def test_what_a_lambda_stands_in_for_where_torch_is_old_is_called_where_it_is_not() -> None:
    code = "import torch\neigh = torch.linalg.eigh if hasattr(torch, 'linalg') else lambda x: torch.symeig(x)\n"
    code += "def whitened(x: torch.Tensor):\n    return eigh(x)\n"
    assert {site.place.line for site in sites(code.encode(), "use.py")} == {4}


def test_a_call_that_imports_may_say_whether_it_could_or_do_so_later() -> None:
    code = """
from monai.utils import optional_import

torch, has_torch = optional_import("torch", "2.0")
F, _ = optional_import("torch.nn", name="functional")
nn = LazyLoader("nn", globals(), "torch.nn")
th = lazy.load("torch")
eigh, found = torch.load("torch.pt")


class Whitened(nn.Module):
    def forward(self, x):
        return (
            torch.linalg.eigh(x),
            F.relu(x).item(),
            th.linalg.eigh(x),
            eigh.linalg.eigh(x),
        )
"""
    told = [line for line, text in enumerate(code.split("\n"), 1) if text.startswith(" " * 12)]
    assert sorted({site.place.line for site in sites(code.encode(), "use.py")}) == told[:3]
