"""The floor plan of docs/development.md: a room imports only what its row names, libraries stay where they belong, and no two
files import each other, however far around.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import sources
from sources import ROOT

pytestmark = sources.IN_ONE_WORKER
PAGE = Path(__file__).parent.parent / "docs" / "development.md"
TOP = {"cli", "api", "__init__", "__main__"}  # they may import all


def table(heading: str) -> dict[str, set[str]]:
    """A table of the page, by the head of its first column: the names in the first cell of a row, and those in its last."""
    rows = PAGE.read_text(encoding="utf-8").partition(f"| {heading} |")[2].partition("\n\n")[0].splitlines()[2:]
    cells = [(re.findall(r"`([\w]+)", first), last) for _, first, *_, last, _ in (row.split("|") for row in rows)]
    return {name: set(re.findall(r"`(\w+)", last)) for names, last in cells for name in names}


MAY_IMPORT = table("room")
LIBRARIES = table("library")
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in sources.FILES
}


def imports(path: Path) -> Iterator[str]:
    """The dotted names that a file imports, at any depth: of ours `model.finding`, of others `numpy.typing`."""
    for node in sources.nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name.removeprefix("syncscope.") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno} imports relatively"
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            ours = node.module == "syncscope" or (node.module or "").startswith("syncscope.")
            yield from (name.removeprefix("syncscope.") if ours else name for name in names)


def file_of(name: str) -> str | None:
    """The file that holds a name, if it is ours."""
    if name == "syncscope":
        return "__init__"
    return next((known for known in (name, name.rpartition(".")[0]) if known in FILES), None)


def circles(edges: dict[str, set[str]]) -> set[frozenset[str]]:
    """The sets of files that reach each other (Tarjan's strongly connected components, of two files and more)."""
    found: set[frozenset[str]] = set()
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(file: str) -> None:
        number[file] = low[file] = len(number)
        stack.append(file)
        for other in edges[file]:
            if other not in number:
                visit(other)
                low[file] = min(low[file], low[other])
            elif other in stack:
                low[file] = min(low[file], number[other])
        if low[file] == number[file]:
            at = stack.index(file)
            found.add(frozenset(stack[at:]))
            del stack[at:]

    for file in edges:
        if file not in number:
            visit(file)
    return {circle for circle in found if len(circle) > 1}


def test_no_circle_of_imports() -> None:
    edges = {
        name: {other for imported in imports(path) if (other := file_of(imported)) and other != name}
        for name, path in FILES.items()
    }
    assert circles(edges) == set()


def test_the_page_knows_every_room() -> None:
    rooms = {name.partition(".")[0] for name in FILES} - TOP - {""}
    assert rooms - MAY_IMPORT.keys() == set()
    named = set().union(*MAY_IMPORT.values(), *LIBRARIES.values())
    assert named - MAY_IMPORT.keys() - TOP == set()


@pytest.mark.parametrize("here", sorted({name.partition(".")[0] for name in FILES}))
def test_a_room_imports_only_from_below(here: str) -> None:
    for name in (name for name in FILES if name.partition(".")[0] == here):
        for imported in imports(FILES[name]):
            there = imported.partition(".")[0]
            if there in LIBRARIES:
                assert here in LIBRARIES[there], f"{name} may not import {imported}"
            elif here not in TOP and file_of(imported) is not None:
                assert there in MAY_IMPORT[here] | {here}, f"{name} may not import {imported}"


def test_the_name_of_a_public_class_means_one_thing() -> None:
    homes: dict[str, list[str]] = {}
    for name, path in FILES.items():
        if not name.startswith("kernels"):  # which stand alone
            whole = sources.nodes(path)[0]
            assert isinstance(whole, ast.Module)
            for node in whole.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    homes.setdefault(node.name, []).append(name)
    twice = {name: sorted(files) for name, files in homes.items() if len(files) > 1}
    assert not twice, twice


def test_no_two_files_of_tests_share_a_name() -> None:
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names)), "pytest imports them all into one folder: only one of them would run"
