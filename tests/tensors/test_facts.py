"""`reveal(x)  # tensor bool 3` in small files: what is known of x, where it stands."""

import ast
from pathlib import Path

import pytest

from syncscope.model.fact import Fact
from syncscope.tensors.interpret import facts

FILES = sorted((Path(__file__).parent / "facts").glob("*.py"))


def revealed(path: Path) -> list[tuple[int, str, str]]:
    """Line, what the comment says, what was found; of every `reveal` in a file."""
    source = path.read_bytes()
    tree = ast.parse(source)
    known = facts(source, str(path), tree=tree)
    lines = source.decode().split("\n")
    rows = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "reveal":
            said = lines[node.end_lineno - 1].partition("# ")[2]
            rows.append((node.lineno, said, known.get(node.args[0], Fact())))
    return sorted(rows, key=lambda row: row[0])


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_facts_are_as_the_comments_say(path: Path) -> None:
    rows = revealed(path)
    assert len(rows) > 10
    wrong = [
        f"{path.name}:{line}: said {said!r}, found {fact}"
        for line, said, fact in rows
        if said != str(fact).removesuffix(" 0")
    ]
    assert not wrong, "\n" + "\n".join(wrong)
