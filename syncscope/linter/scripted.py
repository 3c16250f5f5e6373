"""What a compiler takes whole, TorchScript, `torch.export` or `torch.compile(fullgraph=True)`: there a fix must compile, too.

What is handed to `torch.jit.script` anywhere in the project counts, its tests included, and what that calls. A name is what it
means where it stands, found through assignments and imports; what only a value could tell is not known.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from syncscope.files import regular
from syncscope.linter.files import NEVER
from syncscope.tensors.syntax import expressions, held, walk

MENTIONS = (  # each begins with a word that is searched for by itself, in a tenth of the time that a pattern takes
    (b"jit", re.compile(rb"jit\s*\.\s*(?:script|export)")),
    (b"export", re.compile(rb"export\s*\.\s*(?:draft_)?export")),
    (b"script_", re.compile(rb"script_(?<!\wscript_)(?:method|if_tracing)\b")),
    (b"fullgraph", re.compile(rb"fullgraph(?<!\wfullgraph)\s*=\s*True")),
)
MOST, LARGEST = 4000, 500_000  # files of a project, bytes of one: what is larger is not looked through
ROOTED = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
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
    handed: list[Alias] = field(default_factory=list)  # to a compiler that takes it whole
    decorated: list[str] = field(default_factory=list)

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

    def compiled(self, paths: Iterable[str]) -> frozenset[Symbol]:
        """What these files hand to such a compiler, and what that calls: functions and methods."""
        todo: list[tuple[Symbol, Symbol | None]] = []  # and the class that `self` is of
        for path in paths:
            names = self.named(path)
            for scope, name in names.handed:
                todo += [(symbol, None) for symbol in self.resolve(path, scope, name, set())]
            for name in names.decorated:
                todo.append((Symbol(path, name), None))
                methods = [s.name for c in names.classes(name) for s in c.body if isinstance(s, Function)]
                todo += [(Symbol(path, f"{name}.{method}"), None) for method in methods]
        done: set[tuple[Symbol, Symbol | None]] = set()
        while todo:
            each = todo.pop()
            if each not in done:
                done.add(each)
                todo += self.called(*each)
        return frozenset(symbol for symbol, _ in done if not self.is_class(symbol))

    def is_class(self, symbol: Symbol) -> bool:
        """Whether it is a class, not a function."""
        return bool(self.named(symbol.path).classes(symbol.name))

    def called(self, symbol: Symbol, owner: Symbol | None) -> Iterator[tuple[Symbol, Symbol | None]]:
        """What is compiled with a function, or with a module of a class: its `forward`, and the layers that it makes."""
        path, scope = symbol
        names = self.named(path)
        for meant in names.meant.get(scope, ()):
            if isinstance(meant, ast.ClassDef):
                yield from ((method, symbol) for method in self.member(symbol, "forward", set()))
                for made in self.member(symbol, "__init__", set()):
                    if not self.is_class(made):
                        yield from ((layer, None) for layer, _ in self.called(made, symbol) if self.is_class(layer))
            elif not isinstance(meant, (Import, Alias)):
                owner = owner or Symbol(path, names.around(scope))
                for name in {root(n.func) for n in walk(meant) if isinstance(n, ast.Call)}:
                    if name.startswith("self."):
                        yield from ((method, owner) for method in self.member(owner, name[5:], set()))
                    else:
                        yield from ((other, None) for other in self.resolve(path, scope, name, set()))


def is_scripted(name: str, path: str, code: bytes) -> bool:
    """Whether a compiler takes the function of this dotted name, in a file of this content, whole."""
    path = os.path.abspath(path)
    known = compiled_in(path, code)
    while name and known:
        if Symbol(path, name) in known:
            return True
        name = name.rpartition(".")[0]
    return False


@lru_cache(maxsize=4)
def compiled_in(path: str, code: bytes) -> frozenset[Symbol]:
    """What is compiled whole in the project of a file, and in the file as it is now."""
    root = project_of(os.path.dirname(path)) if os.path.exists(path) else ""
    known = of_project(root)
    if not speaks_of_compiler(code):
        return known
    sources = sources_of(root)
    return known | replace(sources, names={**sources.names, path: names_of(path, code)}).compiled([path])


@cache
def project_of(folder: str) -> str:
    """The nearest folder around that a project begins in; "" where there is none."""
    return next((str(f) for f in (Path(folder), *Path(folder).parents) if any((f / r).exists() for r in ROOTED)), "")


@lru_cache(maxsize=8)
def of_project(root: str) -> frozenset[Symbol]:
    """The functions and methods of a project that are compiled whole."""
    sources = sources_of(root)
    return sources.compiled(path for known in sources.modules.values() for _, path in known if mentions(path))


@lru_cache(maxsize=8)
def sources_of(root: str) -> Sources:
    """The files of a project, but for one that is installed."""
    if not root or "site-packages" in Path(root).parts:
        return Sources({})
    return Sources.of(path for _, path in zip(range(MOST), _files(root), strict=False))


def mentions(path: str) -> bool:
    """Whether a file speaks of such a compiler."""
    try:
        code = regular(path, LARGEST)
    except OSError:
        return False
    return speaks_of_compiler(code)


def speaks_of_compiler(code: bytes) -> bool:
    """Whether such a compiler is named."""
    return any(word in code and pattern.search(code) is not None for word, pattern in MENTIONS)


def _files(root: str) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in NEVER and not f.startswith("."))
        yield from (os.path.join(folder, name) for name in sorted(names) if name.endswith(".py"))


def names_of(path: str, code: bytes) -> Names:
    """What the names of a file with this content mean.

    Raises:
        SyntaxError: as `ast.parse` does.
    """
    names, mentioned = Names(), speaks_of_compiler(code)
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
            if mentioned and any(map(is_compiler, node.decorator_list)):
                names.decorated.append(joined(scope, node.name))
            scope = joined(scope, node.name)
            names.meant.setdefault(scope, []).append(node)
        if mentioned:
            calls = (each for each in expressions(node) if isinstance(each, ast.Call))
            names.handed += (Alias(scope, of) for call in calls if (of := given(call)))
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


def given(call: ast.Call) -> str:
    """What a call hands to a compiler that takes it whole; "" where it hands over nothing."""
    if isinstance(call.func, ast.Call):
        return root(call.args[0]) if call.args and is_compiler(call.func) else ""
    if not is_compiler(call):
        return ""
    if call.args:
        return root(call.args[0])
    return root(call.func.value) if isinstance(call.func, ast.Attribute) else ""  # `model.compile(fullgraph=True)`


def is_compiler(node: ast.expr) -> bool:
    """Whether a decorator, or what is called, is such a compiler."""
    if isinstance(node, ast.Call):
        if any(
            k.arg == "fullgraph" and isinstance(k.value, ast.Constant) and k.value.value is True for k in node.keywords
        ):
            return True
        node = node.func
    *above, last = f".{root(node)}".split(".")
    exported = last in ("export", "draft_export", "export_for_training") and above[-1] == "export"
    of_jit = last in ("script", "export") and above[-1] == "jit"
    return last in ("script_if_tracing", "script_method") or of_jit or exported


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
