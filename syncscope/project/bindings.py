"""What binds the names of a file: definitions, imports and assignments, at its top level and in every scope of it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from syncscope.project.syntax import dotted, held, text_of

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Bound = dict[str, list[ast.AST]]
"""The statements that bind each name of a scope, the one that counts first; "*" is all of a module, "self.x" an attribute."""

EXTERNAL = frozenset("torch numpy math time logging typing collections functools itertools os sys re".split())
"""Modules that are looked for in no project."""
_IMPORTING = re.compile("import|lazy", re.IGNORECASE)

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINES = (*_FUNCTIONS, ast.ClassDef)
_HOLDS = frozenset({
    ast.If, ast.Try, ast.ExceptHandler, ast.With, ast.AsyncWith, ast.For, ast.AsyncFor, ast.While, ast.Match, ast.match_case,
    getattr(ast, "TryStar", ast.Try),
})  # fmt: skip


def collect(body: Sequence[Any], bound: Bound) -> Bound:
    """Names bound in a scope, also under `if` and `try`; of several bindings the first definition counts.

    Every file that is imported is gone through, so classes are compared, and each kind has its own loop.
    """
    for statement in body:
        kind = statement.__class__
        if kind is ast.Expr:
            continue
        if kind is ast.Assign:
            for target in statement.targets:
                if target.__class__ is ast.Tuple:
                    collect(_one_by_one(target, statement), bound)
                    continue
                name = target.id if target.__class__ is ast.Name else dotted(target)
                if name in bound:
                    bound[name].append(statement)
                else:
                    bound[name] = [statement]
        elif kind in _DEFINES:
            known = bound.setdefault(statement.name, [])
            # those were overloads
            known.insert(0 if known and known[0].__class__ in _FUNCTIONS else len(known), statement)
        elif kind is ast.ImportFrom:
            for alias in statement.names:
                bound.setdefault(alias.asname or alias.name, []).append(statement)
        elif kind is ast.Import:
            for alias in statement.names:
                bound.setdefault(alias.asname or alias.name.partition(".")[0], []).append(statement)
        elif kind is ast.AnnAssign:
            bound.setdefault(dotted(statement.target), []).append(statement)
        elif kind in _HOLDS:
            collect(held(statement), bound)
            if kind is ast.ExceptHandler:
                for name, instead in _from_torch(statement.body):  # what stands in for it: the same, and known
                    bound[name].insert(0, instead)
    return bound


def _one_by_one(target: ast.Tuple, statement: ast.Assign) -> list[ast.Assign]:
    """`a, b = x, y` as `a = x` and `b = y`; none where what each is given is not written there. Of a call that imports a module
    and says whether it is there, `torch, has_torch = optional_import("torch")`, the first is the module.
    """
    names, values = target.elts, statement.value.elts if isinstance(statement.value, ast.Tuple) else []
    if len(names) == 2 and imported_by_call(statement.value):
        names, values = names[:1], [statement.value]
    if len(names) != len(values) or any(isinstance(each, ast.Starred) for each in (*names, *values)):
        return []
    return [ast.copy_location(ast.Assign([name], value), statement) for name, value in zip(names, values, strict=True)]


def imported_by_call(value: ast.expr) -> str:
    """What of torch or the like a call imports, `torch = try_import("torch")`, `nn = LazyLoader("nn", globals(), "torch.nn")`;
    "" where it is none.
    """
    if not isinstance(value, ast.Call) or not _IMPORTING.search(dotted(value.func)):
        return ""
    texts = [text for each in value.args if (text := text_of(each)) is not None]
    modules = [each for each in texts if each.partition(".")[0] in EXTERNAL]
    inner = [
        str(each.value.value) for each in value.keywords if each.arg == "name" and isinstance(each.value, ast.Constant)
    ]
    return ".".join((modules[-1], *inner)) if modules else ""


def _from_torch(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Names that are imported from torch."""
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from ((a.asname, statement) for a in statement.names if a.asname and a.name.startswith("torch."))
        elif isinstance(statement, ast.ImportFrom) and (statement.module or "").partition(".")[0] == "torch":
            yield from ((a.asname or a.name, statement) for a in statement.names)


class Scopes:
    """The scopes of a file, each by the functions and classes around it: "" is its top level, then `f`, `Class.method`."""

    def __init__(self, tree: ast.Module, top: Bound) -> None:
        self.bound: dict[str, Bound] = {"": top}
        self.definitions: dict[str, list[Definition]] = {}
        self.statements: list[tuple[ast.AST, str]] = []  # handlers and cases, too; of a definition its own scope
        todo: list[tuple[ast.AST, str]] = [(tree, "")]
        while todo:
            node, scope = todo.pop()
            if isinstance(node, Definition):
                scope = joined(scope, node.name)
                self.definitions.setdefault(scope, []).append(node)
                collect(node.body, self.bound.setdefault(scope, {}))
            self.statements.append((node, scope))
            todo += [(inner, scope) for inner in held(node)]

    @cached_property
    def classes(self) -> dict[str, list[ast.ClassDef]]:
        """Those of the definitions that are classes."""
        found = {name: [n for n in nodes if isinstance(n, ast.ClassDef)] for name, nodes in self.definitions.items()}
        return {name: nodes for name, nodes in found.items() if nodes}

    def class_around(self, scope: str) -> str:
        """The innermost class around a function; "" where there is none."""
        while scope and scope not in self.classes:
            scope = scope.rpartition(".")[0]
        return scope

    def attribute(self, cls: str, name: str) -> list[tuple[ast.AST, str]]:
        """What binds an attribute of a class: its body, or what is set on `self`; each with the scope that it stands in."""
        own = [(each, cls) for each in self.bound[cls].get(name, ())]
        inside = (scope for scope in self.bound if scope.startswith(f"{cls}."))
        return own + [(each, scope) for scope in inside for each in self.bound[scope].get(f"self.{name}", ())]


def joined(above: str, name: str) -> str:
    """A name below another, either of which may be empty."""
    return f"{above}.{name}" if above and name else above or name
