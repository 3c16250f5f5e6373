"""What a compiler takes whole it takes after its fixes, too, wherever in the project it is handed to one."""

from pathlib import Path
from runpy import run_path

import pytest
from rules.driver import HEAD, config, fixed

from syncscope.linter.engine import check_file

BODY = (
    "    y = x.clone()\n    y[0, 0] = 1.0\n    low, high = x.min().item(), x.max().item()\n"
    "    return y, low, high, torch.tensor(0.5, device=x.device)\n"
)
FUNCTION = f"def f(x: torch.Tensor):\n{BODY}"
COMPILED = {
    "script": f"@torch.jit.script\n{FUNCTION}",
    "script, later": f"{FUNCTION}\n\nf = torch.jit.script(f)\n",
    "called by what is": f"{FUNCTION}\n\n@torch.jit.script\ndef g(x: torch.Tensor):\n    return f(x)\n",
    "one of several": f"{FUNCTION}\n\nfor each in (f, torch.exp):\n    torch.jit.script(each)\n",
    "if tracing": f"@torch.jit.script_if_tracing\n{FUNCTION}",
    "exported": (
        f"class M(torch.nn.Module):\n    def forward(self, x: torch.Tensor):\n{BODY.replace('    ', '        ')}\n\n"
        "m = M()\nprogram = torch.export.export(m, (torch.ones(2, 3),), strict=True)\n"
    ),
    "asks whether it is": FUNCTION.replace(BODY, f"    if torch.jit.is_scripting():\n        x = x.float()\n{BODY}"),
    "called by what asks": (
        f"{FUNCTION}\n\ndef g(x: torch.Tensor):\n    return f(x) if torch.jit.is_scripting() else f(x.float())\n"
    ),
    "whole graph": f"@torch.compile(fullgraph=True)\n{FUNCTION}",
    "module": (
        "class M(torch.nn.Module):\n    def forward(self, x: torch.Tensor):\n        return self.f(x)\n\n"
        "    def f(self, x: torch.Tensor):\n"
        f"{BODY.replace('    ', '        ')}\n\nm = M()\nscripted = torch.jit.script(m)\n"
    ),
}


@pytest.mark.parametrize("code", COMPILED.values(), ids=COMPILED)
def test_what_a_compiler_takes_whole_it_takes_afterwards(code: str) -> None:
    assert fixed(HEAD + code) == HEAD + code
    assert fixed(HEAD + FUNCTION) != HEAD + FUNCTION


def test_what_the_project_scripts_elsewhere_is_left(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "ops.py").write_text(HEAD + FUNCTION)
    (tmp_path / "test_ops.py").write_text(
        "import torch\nfrom package import ops\n\n\ndef test_f():\n    op = ops.f\n    assert torch.jit.script(op)\n"
    )
    found = check_file(str(tmp_path / "package" / "ops.py"), config()).findings
    assert found
    assert all(f.fix is None for f in found)


FOREIGN = {
    "a string": 'import torch\n\nCODE = """\nf = torch.jit.script(f)\n"""\n',
    "another f": "import torch\n\n\n@torch.jit.script\ndef f(x: torch.Tensor):\n    return x\n",
    "another f, that one imports": "import torch\nfrom other.ops import f\n\ng = torch.jit.script(f)\n",
    "a name that is made of itself": "import torch\n\nx = x.exp()\ng = torch.jit.script(x.f)\n",
    "modules in a circle": "import torch\nfrom test_ops import *\n\ng = torch.jit.script(f)\n",
    "a method of that name": "import torch\n\n\ndef test(x):\n    return torch.jit.script(x.f)\n",
}
IMPORTED = {
    "the module": "import package.ops\n\ng = torch.jit.script(package.ops.f)\n",
    "another name": "from package.ops import f as g\n\ng = torch.jit.script(g)\n",
    "what a package gives on": "from package import f\n\ng = torch.jit.script(f)\n",
    "inside a test": "def test():\n    import package.ops as ops\n\n    torch.compile(ops.f, fullgraph=True)\n",
    "what a test is given": (
        "import pytest\nfrom package import f\n\n\n@pytest.mark.parametrize('op', [f, torch.exp])\n"
        "def test(op):\n    torch.jit.script(op)\n"
    ),
    "called": "from package.ops import f\n\n\n@torch.jit.script\ndef g(x):\n    return f(x)\n",
    "called by a base": (
        "from package.ops import f\n\n\nclass A(torch.nn.Module):\n    def forward(self, x):\n        return self.g(x)\n\n\n"
        "class B(A):\n    def g(self, x):\n        return f(x)\n\n\ntorch.jit.script(B().eval())\n"
    ),
    "called by a layer": (
        "from package.ops import f\n\n\nclass A(torch.nn.Module):\n    def forward(self, x):\n        return f(x)\n\n\n"
        "class B(torch.nn.Module):\n    def __init__(self):\n        self.layers = torch.nn.ModuleList([A()])\n\n\n"
        "def test():\n    b = B()\n    torch.jit.script(b)\n"
    ),
}


@pytest.mark.parametrize("said", ["True", "[False]"])
def test_a_tensor_of_a_bool_stays_one_where_something_out_of_sight_scripts_it(said: str, tmp_path: Path) -> None:
    """TorchScript's full makes a whole number of it where no dtype is said."""
    code = f"def f(x: torch.Tensor):\n    return torch.tensor({said}, device=x.device)\n"
    torch = pytest.importorskip("torch")
    for name, text in {"before": HEAD + code, "after": fixed(HEAD + code)}.items():
        (tmp_path / f"{name}.py").write_text(text)
    before, after = (run_path(str(tmp_path / f"{name}.py"))["f"] for name in ("before", "after"))
    assert after(torch.ones(2)).dtype is torch.jit.script(after)(torch.ones(2)).dtype is torch.bool
    assert (tmp_path / "after.py").read_text() != (tmp_path / "before.py").read_text()
    assert torch.equal(torch.jit.script(after)(torch.ones(2)), before(torch.ones(2)))


def mended(folder: Path, elsewhere: str) -> bool:
    """Whether `f` of a package is offered a fix where another file of the project says this."""
    for name, code in {
        "pyproject.toml": "",
        "package/__init__.py": "from .ops import *\n",
        "package/ops.py": HEAD + FUNCTION,
        "other/ops.py": HEAD + FUNCTION,
        "test_ops.py": elsewhere,
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(code)
    return any(f.fix for f in check_file(str(folder / "package" / "ops.py"), config()).findings)


@pytest.mark.parametrize("code", FOREIGN.values(), ids=FOREIGN)
def test_what_is_scripted_elsewhere_is_another_function(code: str, tmp_path: Path) -> None:
    assert mended(tmp_path, code)


@pytest.mark.parametrize("code", IMPORTED.values(), ids=IMPORTED)
def test_what_is_scripted_by_an_import_is_left(code: str, tmp_path: Path) -> None:
    assert not mended(tmp_path, f"import torch\n{code}")
