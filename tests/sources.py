"""The package's own sources, parsed once for all tests that ask what they hold. These run in one worker: `IN_ONE_WORKER`."""

import ast
from functools import cache
from pathlib import Path

import pytest

import syncscope

ROOT = Path(syncscope.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
IN_ONE_WORKER = pytest.mark.xdist_group("sources")


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file."""
    return tuple(ast.walk(ast.parse(path.read_bytes())))
