"""Which functions a file has, and which of them speak of a name."""

from __future__ import annotations

import ast
import contextlib
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from syncscope.linter.engine import dotted
from syncscope.linter.identity import how_often
from syncscope.linter.notebooks import source_of
from syncscope.linter.source import CFile
from syncscope.project.syntax import held, statements, walk

WORD = re.compile(rb"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Defined:
    """The functions and classes of a file by their dotted names, and what stands in none as ""; of what is no Python its
    words."""

    nodes: Mapping[str, ast.AST]
    words: Collection[str] = ()

    def has(self, function: str) -> bool:
        """Whether a function is there."""
        return function in self.nodes or own_name(function) in self.words

    def speaks_of(self, function: str, name: str) -> bool:
        """Whether a name stands in a function, or in the module where it is none."""
        return any(
            name == getattr(each, "id", None) or name == getattr(each, "attr", None) for each in self._parts(function)
        )

    def holds(self, wait: str, function: str) -> int:
        """How often a function, or the module where it is none, says what a finding of this `Identity.wait` waited at."""
        tree, names = self.nodes.get(""), function.split(".")
        if tree is None:
            return 0
        within = (self.nodes.get(".".join(names[:count])) for count in range(1, len(names) + 1))
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        around = next((node for node in within if isinstance(node, functions)), tree)
        return how_often(wait, tree, around, self._parts(function))

    def _parts(self, function: str) -> list[ast.AST]:
        node = self.nodes.get(function)
        return walk(node) if node is not None and function else _in_no_function(node)

    def is_like(self, function: str, others: Defined, other: str) -> bool:
        """Whether at least half of the lines of a function, or of another if that has more, are in both, as git has it of
        files."""
        lines = [_lines(nodes.get(name)) for nodes, name in ((self.nodes, function), (others.nodes, other))]
        return 2 * (lines[0] & lines[1]).total() >= max(lines[0].total(), lines[1].total(), 1)


def _lines(function: ast.AST | None) -> Counter[str]:
    """The lines of what a function does, however they are laid out."""
    body = function.body if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
    return Counter(line.strip() for each in body for line in ast.unparse(each).splitlines())


def own_name(function: str) -> str:
    """A dotted name without the classes and functions around it."""
    return function.rpartition(".")[2]


def defined(path: str, raw: bytes) -> Defined:
    """What a file with this content defines."""
    code = raw
    with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        source = source_of(path, raw)
        code = source.code
        if not isinstance(source, CFile):
            tree = ast.parse(code)
            return Defined({"": tree, **{name: node for node, name in dotted(statements(tree)).items()}})
    return Defined({}, frozenset(word.decode() for word in WORD.findall(code)))


def _in_no_function(tree: ast.AST | None) -> list[ast.AST]:
    """What a module does itself, without the functions and classes in it."""
    todo = held(tree) if tree is not None else []
    apart = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [node for each in todo if not isinstance(each, apart) for node in walk(each)]
