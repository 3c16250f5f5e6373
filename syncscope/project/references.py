"""What a dotted name means where it stands, in the files of a project: found through assignments and imports.

What only a value could tell is not known. `names` answers for what stands at the top level of files that an interpreter runs.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from syncscope.files import regular
from syncscope.project import folders
from syncscope.project.syntax import held

MOST, LARGEST = 4000, 500_000  # files of a project, bytes of one: what is larger is not looked through
FARTHEST = 200  # names that are asked for on the way to what one means

Function = (ast.FunctionDef, ast.AsyncFunctionDef)


class Symbol(NamedTuple):
    """A function or a class: its file, and its name in it as `__qualname__` has it but for `<locals>`."""

    path: str
    name: str


class Import(NamedTuple):
    """What an import binds: the end of the module's path, "/package/ops", and the name in it ("" for the module)."""

    module: str
    name: str


class Alias(NamedTuple):
    """Another name for `of`, or for what `of(...)` makes, said in `scope`."""

    scope: str
    of: str


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass
class Names:
    """What the names of one file mean, with the functions and classes around them: `f`, `Class.method`, `test_f.op`."""

    meant: dict[str, list[Definition | Import | Alias]] = field(default_factory=dict)
    stars: list[Import] = field(default_factory=list)
    scopes: list[tuple[ast.AST, str]] = field(default_factory=list)  # each statement, and what it stands in

    def classes(self, name: str) -> list[ast.ClassDef]:
        """The classes of this name."""
        return [m for m in self.meant.get(name, ()) if isinstance(m, ast.ClassDef)]

    def around(self, name: str) -> str:
        """The innermost class around a function; "" where there is none."""
        while name and not self.classes(name):
            name = name.rpartition(".")[0]
        return name


@dataclass(frozen=True)
class Sources:
    """The files of a project: those that are asked for are parsed."""

    modules: dict[str, list[tuple[str, str]]]  # by the last part of its name: path without its ending, file
    names: dict[str, Names] = field(default_factory=dict)

    @classmethod
    def of(cls, paths: Iterable[str]) -> Sources:
        """Of these files."""
        modules: dict[str, list[tuple[str, str]]] = {}
        for path in paths:
            module = path.replace(os.sep, "/").removesuffix(".py").removesuffix("/__init__")
            modules.setdefault(module.rpartition("/")[2], []).append((module, path))
        return cls(modules)

    def named(self, path: str) -> Names:
        """What the names of a file mean; none where it cannot be read."""
        if path not in self.names:
            try:
                self.names[path] = names_of(path, regular(path, LARGEST))
            except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
                self.names[path] = Names()
        return self.names[path]

    def resolve(self, path: str, scope: str, name: str, seen: set[tuple[str, ...]]) -> Iterator[Symbol]:
        """What a dotted name means in a scope of a file; `seen` is what was asked on the way, so that no circle is run."""
        if (path, scope, name) in seen or len(seen) > FARTHEST:
            return
        seen.add((path, scope, name))
        names = self.named(path)
        head, _, rest = name.partition(".")
        if head == "self":
            yield from self.member(Symbol(path, names.around(scope)), rest, seen)
            return
        while scope and f"{scope}.{head}" not in names.meant:
            scope = scope.rpartition(".")[0]
            while names.classes(scope):  # a method does not see the names of its class
                scope = scope.rpartition(".")[0]
        own = f"{scope}.{head}" if scope else head
        if own in names.meant:
            yield from self.follow(Symbol(path, own), rest, seen)
        else:
            for star in names.stars:
                yield from self.exported(path, Import(star.module, name), seen)

    def follow(self, symbol: Symbol, rest: str, seen: set[tuple[str, ...]]) -> Iterator[Symbol]:
        """What the name of a file, and the attribute `rest` of it, means in the end."""
        if symbol in seen:  # `x = x.exp()`
            return
        seen.add(symbol)
        for meant in self.named(symbol.path).meant.get(symbol.name, ()):
            if isinstance(meant, Alias):
                yield from self.resolve(symbol.path, meant.scope, joined(meant.of, rest), seen)
            elif isinstance(meant, Import):
                yield from self.exported(symbol.path, Import(meant.module, joined(meant.name, rest)), seen)
            else:
                inside = list(self.member(symbol, rest, seen)) if rest else []
                yield from inside or [symbol]

    def member(self, cls: Symbol, name: str, seen: set[tuple[str, ...]]) -> Iterator[Symbol]:
        """What an attribute of a class, or of one of its bases, means."""
        head, _, rest = name.partition(".")
        names = self.named(cls.path)
        if f"{cls.name}.{head}" in names.meant:
            yield from self.follow(Symbol(cls.path, f"{cls.name}.{head}"), rest, seen)
            return
        for base in (b for one in names.classes(cls.name) for b in one.bases):
            for above in self.resolve(cls.path, cls.name.rpartition(".")[0], root(base), seen):
                if self.is_class(above):
                    yield from self.member(above, name, seen)

    def exported(self, importer: str, wanted: Import, seen: set[tuple[str, ...]]) -> Iterator[Symbol]:
        """What a name of a module means: said in it, or a module below it. Of modules of one name, the nearest that has it."""
        module, name = wanted
        files = [p for known, p in self.modules.get(module.rpartition("/")[2], ()) if known.endswith(module)]
        for path in sorted(files, key=lambda p: -len(os.path.commonpath((p, importer)))):
            if found := list(self.resolve(path, "", name, seen)):
                yield from found
                return
        head, _, rest = name.partition(".")
        if rest:
            yield from self.exported(importer, Import(f"{module}/{head}", rest), seen)

    def is_class(self, symbol: Symbol) -> bool:
        """Whether it is a class, not a function."""
        return bool(self.named(symbol.path).classes(symbol.name))


@lru_cache(maxsize=8)
def sources_of(root: str) -> Sources:
    """The files of a project that begins in this folder, but for one that is installed."""
    if not root or "site-packages" in Path(root).parts:
        return Sources({})
    return Sources.of(path for _, path in zip(range(MOST), folders.sources(root), strict=False))


def contents(root: str) -> Iterator[bytes]:
    """What the files of a project hold, but for those that cannot be read."""
    for path in (path for known in sources_of(root).modules.values() for _, path in known):
        try:
            yield regular(path, LARGEST)
        except OSError:
            continue


def names_of(path: str, code: bytes) -> Names:
    """What the names of a file with this content mean.

    Raises:
        SyntaxError: as `ast.parse` does.
    """
    names = Names()
    todo: list[tuple[ast.AST, str]] = [(ast.parse(code), "")]
    while todo:
        node, scope = todo.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for name, meant in imported(node, path):
                if name == "*":
                    names.stars.append(meant)
                else:
                    names.meant.setdefault(joined(scope, name), []).append(meant)
        elif isinstance(node, ast.Assign) and (of := root(node.value)):
            for target in map(root, node.targets):
                cls = names.around(scope) if target.startswith("self.") else scope
                names.meant.setdefault(joined(cls, target.removeprefix("self.")), []).append(Alias(scope, of))
        elif isinstance(node, (*Function, ast.ClassDef)):
            scope = joined(scope, node.name)
            names.meant.setdefault(scope, []).append(node)
        names.scopes.append((node, scope))
        todo += [(inner, scope) for inner in held(node)]
    return names


def imported(node: ast.Import | ast.ImportFrom, path: str) -> Iterator[tuple[str, Import]]:
    """The names that an import binds, "*" for all, and what they mean."""
    if isinstance(node, ast.Import):
        for each in node.names:
            module = each.name if each.asname else each.name.partition(".")[0]
            yield each.asname or module, Import("/" + module.replace(".", "/"), "")
        return
    folder = path.replace(os.sep, "/").rsplit("/", node.level)[0] if node.level else ""
    module = folder + ("/" + node.module.replace(".", "/") if node.module else "")
    for each in node.names:
        yield each.asname or each.name, Import(module, each.name)


def root(node: ast.expr) -> str:
    """`a.b.c` as text, also for what a call of it makes, `m.to` for `m(...).to(...)`; "" for anything else."""
    parts: list[str] = []
    while isinstance(node, (ast.Attribute, ast.Call)):
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        else:
            node = node.func
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def joined(above: str, name: str) -> str:
    """A name below another, either of which may be empty."""
    return f"{above}.{name}" if above and name else above or name
