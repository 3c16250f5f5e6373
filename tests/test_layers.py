"""The floor plan: a room imports only from the rooms below it, and heavy libraries only where they belong."""

import ast
from pathlib import Path

import pytest

import syncscope

ROOT = Path(syncscope.__file__).parent
MAY_IMPORT = {
    "model": set(),
    "errors": set(),
    "discover": set(),
    "tensors": {"model"},
    "kineto": {"model"},
    "rules": {"model", "discover", "tensors"},
    "kernels": {"discover"},
    "linter": {"model", "discover", "tensors", "rules"},
    "tracers": {"model", "discover", "kineto", "kernels"},
    "analysis": {"model"},
    "exporters": {"model", "discover", "kineto"},
}  # all may import errors; cli, api and the door itself may import all; a room not listed here fails
TOP = {"cli", "api", "__init__", "__main__"}
HEAVY = {  # library: the rooms that may import it
    "torch": {"kernels", "tracers"},
    "pyopencl": {"kernels", "tracers"},
    "libcst": {"rules", "linter"},
    "rich": {"exporters", "cli"},
    "click": {"cli"},
}


def imports(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno} imports relatively"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_room_imports_only_from_below(path: Path) -> None:
    here = room(path)
    if here in TOP:
        return
    allowed = MAY_IMPORT[here] | {here, "errors"}
    for name in imports(path):
        top, _, rest = name.partition(".")
        if top == "syncscope":
            assert rest.partition(".")[0] in allowed, f"{here} may not import {name}"
        elif top in HEAVY:
            assert here in HEAVY[top], f"{here} may not import {name}"
