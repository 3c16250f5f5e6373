"""What a name means is found however it is imported: a function of another file is known to read its tensor."""

from pathlib import Path

import pytest

from syncscope.linter.config import Config
from syncscope.linter.engine import check_file

OPS = """import torch


def count(x: torch.Tensor):
    return x.sum()


def size(x: torch.Tensor):
    return x.shape[0]
"""
FILES = {
    "pyproject.toml": "",
    "package/__init__.py": "from .stars import *\n",
    "package/stars.py": "from package.ops import count, size\n",
    "package/ops.py": OPS,
    "package/inner/__init__.py": "from . import more\n",
    "package/inner/more.py": "from ..ops import *\n",
}
SAID = {
    "a name": "from package.ops import {name}\n\n\ndef f(x):\n    return {name}(x) > 0 and x",
    "another name": "from package.ops import {name} as g\n\n\ndef f(x):\n    return g(x) > 0 and x",
    "a star of a package": "from package import {name}\n\n\ndef f(x):\n    return {name}(x) > 0 and x",
    "an attribute that a star brings": "import package\n\n\ndef f(x):\n    return package.{name}(x) > 0 and x",
    "a module of a package": "import package.ops\n\n\ndef f(x):\n    return package.ops.{name}(x) > 0 and x",
    "a module as another name": "import package.ops as o\n\n\ndef f(x):\n    return o.{name}(x) > 0 and x",
    "a star of a module of a package in it": (
        "import package.inner\n\n\ndef f(x):\n    return package.inner.more.{name}(x) > 0 and x"
    ),
    "inside of a function": "def f(x):\n    import package.ops as o\n\n    return o.{name}(x) > 0 and x",
    "a name, inside of a function": "def f(x):\n    from package.ops import {name}\n\n    return {name}(x) > 0 and x",
}


@pytest.mark.parametrize("code", SAID.values(), ids=SAID)
def test_what_a_function_of_another_file_gives_is_known_by_any_name(code: str, tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for name, found in (("count", ["tensor-in-condition"]), ("size", [])):
        file = tmp_path / f"uses_{name}.py"
        file.write_text(f"import torch\n{code.format(name=name)}\n")
        assert [f.rule for f in check_file(str(file), Config(root=str(tmp_path), all=True)).findings] == found


def test_scripts_know_a_package_that_lies_in_src(tmp_path: Path) -> None:
    for name, text in FILES.items():
        path = tmp_path / ("src" if name.startswith("package/") else "") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    script = tmp_path / "examples" / "train.py"
    script.parent.mkdir()
    script.write_text("import torch\nfrom package import count\n\n\ndef f(x):\n    return count(x) > 0 and x\n")
    found = check_file(str(script), Config(root=str(tmp_path), all=True)).findings
    assert [f.rule for f in found] == ["tensor-in-condition"]
