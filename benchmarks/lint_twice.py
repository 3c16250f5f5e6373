"""Whether the linter takes twice the time for twice the code: `python benchmarks/lint_twice.py [files]`.

Without files, those of the fifteen packages of `lint_speed.py --many` whose linting takes longest. Each is linted as it is, but
for its layout, and with all that it defines once more under other names; what is counted is the calls of Python's functions,
which are the same on a busy machine. Both versions stand beside the file for that time, so that they import what it imports.
"""

from __future__ import annotations

import argparse
import ast
import cProfile
import time
from pathlib import Path

from lint_speed import MANY, corpus, with_torch

from syncscope.linter.config import Config
from syncscope.linter.engine import check_file
from syncscope.linter.pool import frugal

HOTTEST = 5  # files
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Renamed(ast.NodeTransformer):
    """Gives what a module defines at its top level another name, wherever it speaks of it."""

    def __init__(self, module: ast.Module) -> None:
        self.own = {each.name for each in module.body if isinstance(each, DEFINITIONS)}
        for each in module.body:
            if isinstance(each, DEFINITIONS):
                each.name = f"{each.name}_again"

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id in self.own:
            node.id = f"{node.id}_again"
        return node


def twice(code: str) -> tuple[str, str]:
    """A module as `ast` writes it, and with everything in it once more."""
    once, again = ast.parse(code), ast.parse(code)
    again.body = [s for s in again.body if not (isinstance(s, ast.ImportFrom) and s.module == "__future__")]
    Renamed(again).visit(again)
    return ast.unparse(once), f"{ast.unparse(once)}\n\n{ast.unparse(again)}\n"


def hottest(files: list[Path]) -> list[Path]:
    """The files whose linting takes longest, without what is found out once for a project."""
    took = {}
    for path in files:
        check_file(str(path), Config())
    for path in sorted(files, key=lambda each: -each.stat().st_size)[: 20 * HOTTEST]:
        start = time.process_time()
        check_file(str(path), Config())
        took[path] = time.process_time() - start
    return sorted(took, key=lambda path: -took[path])[:HOTTEST]


def counted(path: Path, code: str) -> tuple[int, int]:
    """The calls that linting a module beside this file takes, and the findings."""
    beside = path.with_name(f"_lint_twice_{path.name}")
    beside.write_text(code, encoding="utf-8")
    try:
        check_file(str(beside), Config())  # what is imported is known then
        profile = cProfile.Profile()
        checked = profile.runcall(check_file, str(beside), Config())
    finally:
        beside.unlink()
    return sum(entry.callcount for entry in profile.getstats()), len(checked.findings) + len(checked.also)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    said = parser.parse_args()
    with frugal():
        for path in said.files or hottest(with_torch(corpus("many", MANY))):
            once, both = twice(path.read_text(encoding="utf-8"))
            (few, found), (many, more) = counted(path, once), counted(path, both)
            lines = once.count("\n") + 1
            print(
                f"{many / few:5.2f} times the calls   {lines:5d} lines, {found:3d} and {more:3d} findings   {path.name}"
            )


if __name__ == "__main__":
    main()
