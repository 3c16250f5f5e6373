"""What a name means: what it stands for at the top level of a file, and in any scope which functions and classes it may be."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import NamedTuple

from syncscope.model.fact import UNKNOWN, Device, Fact, Value
from syncscope.project import conventions
from syncscope.project.bindings import EXTERNAL, Definition, imported_by_call, joined
from syncscope.project.modules import Class, Module, ProjectFunction

_FARTHEST = 200  # names that are asked for on the way to what one means
_BUILTINS = frozenset(dir(builtins))


NAMED: dict[str, Fact] = {}
"""What dotted names from outside the project stand for, made once. Those that are more than names are put here beforehand."""


def named(dotted: str) -> Fact:
    """A name from outside the project, as it would be imported: `torch.nn.functional.pad`."""
    fact = NAMED.get(dotted)
    if fact is None:
        fact = NAMED[dotted] = Fact(Value.OTHER, ref=dotted, confidence=3)
    return fact


def lookup(module: Module, name: str) -> Fact:
    """What a name at the top level of a module stands for."""
    fact = module.facts.get(name)
    if fact is None:
        if name in module.asked:
            module.project.circles += 1
            return UNKNOWN
        module.asked.add(name)
        try:
            fact = _resolve(module, name)
        finally:
            module.asked.discard(name)
        module.facts[name] = fact
    return fact


def _resolve(module: Module, name: str) -> Fact:
    bound = module.bound.get(name)
    symbol = bound[0] if bound is not None else None
    if symbol is None:
        if "*" in module.bound:
            found = _by_star(module, name)
            if found is not None:
                return found
        return named(f"builtins.{name}") if name in _BUILTINS else UNKNOWN
    if isinstance(symbol, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return Fact(Value.OTHER, confidence=3, ref=ProjectFunction(symbol, module))
    if isinstance(symbol, ast.ClassDef):
        return Fact(Value.OTHER, confidence=3, ref=Class(symbol, module))
    if isinstance(symbol, (ast.Import, ast.ImportFrom)):
        return imported(module, symbol, name)
    if isinstance(symbol, (ast.Assign, ast.AnnAssign)) and symbol.value is not None:
        if brought := imported_by_call(symbol.value):
            return named(brought)
        fact = module.project.interpreter.value(module, symbol.value)
        if bound is not None and len(bound) > 1 and fact.ref in _PLACES and fact.device is not Device.DEVICE:
            fact = _elsewhere(module, bound[1:]) or fact
        return fact.but(device=Device.UNKNOWN) if fact.kind is Value.MODULE else fact  # moved since, most likely
    return UNKNOWN


_PLACES = ("torch.device", "str")  # what a device is made of, and a text that may name one


def _elsewhere(module: Module, again: list[ast.AST]) -> Fact | None:
    """A device of which a name is told behind the CPU: `device = "cpu"`, `if torch.cuda.is_available(): device = "cuda"`."""
    values = (each.value for each in again if isinstance(each, ast.Assign))
    facts = (module.project.interpreter.value(module, each) for each in values)
    return next((each for each in facts if each.device is Device.DEVICE and each.ref == "torch.device"), None)


def _by_star(module: Module, name: str) -> Fact | None:
    """What `from somewhere import *` brings under a name: files of the project are looked into, others by convention."""
    for statement in reversed(module.tree.body):
        if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
            source = statement.module or ""
            found = module.project.module(module, source, statement.level) if source not in EXTERNAL else None
            if found is not None and (name in found.bound or "*" in found.bound):
                fact = lookup(found, name)
                if fact.kind is not UNKNOWN.kind and not (
                    isinstance(fact.ref, str) and fact.ref.startswith("builtins.")
                ):
                    return fact
    return named(conventions.BY_STAR[name]) if name in conventions.BY_STAR else None


def imported(module: Module, symbol: ast.Import | ast.ImportFrom, name: str) -> Fact:
    """What a name stands for that is imported from somewhere."""
    whole, places = _behind(symbol, name)
    known = False
    for source, level, inner in places:
        found = module.project.module(module, source, level)
        if found is None or (found is module and inner):  # `from . import ops` in the package itself: the file below it
            continue
        if not inner:
            return Fact(Value.OTHER, confidence=3, ref=found)
        if inner in found.bound:
            return lookup(found, inner)
        brought = _by_star(found, inner) if "*" in found.bound else None
        if brought is not None:
            return brought
        known = True
    if whole.endswith(".torch"):  # brought by a file that says so at run time: `from .backend import torch`
        return named("torch")
    return UNKNOWN if known or not whole else named(whole)


def _behind(symbol: ast.Import | ast.ImportFrom, name: str) -> tuple[str, list[tuple[str, int, str]]]:
    """What is behind a name that an import binds, or an attribute of it, `package.ops.f`: its dotted name outside of the
    project, and where in the project to look for it: modules, how many folders up, and its name in each, "" for all of it.
    """
    head, _, rest = name.partition(".")
    whole, places = "", []
    if isinstance(symbol, ast.ImportFrom):
        source, level = symbol.module or "", symbol.level
        ours = source.partition(".")[0] not in EXTERNAL
        for alias in symbol.names:
            if ours and alias.name == "*":
                places.append((source, level, name))
            elif head == (alias.asname or alias.name):
                whole = f"{'.' * level}{source}.{alias.name}"
                if ours:
                    places.append((source, level, f"{alias.name}.{rest}" if rest else alias.name))
                    places.append((f"{source}.{alias.name}" if source else alias.name, level, rest))
        return whole, places
    for alias in symbol.names:
        if head == (alias.asname or alias.name.partition(".")[0]):
            whole = alias.name if alias.asname else head
            if whole.partition(".")[0] not in EXTERNAL:
                if rest and f"{name}.".startswith(f"{alias.name}."):
                    places.append((alias.name, 0, name[len(alias.name) + 1 :]))
                places.append((whole, 0, rest))
    return whole, places


def member(of: Fact, name: str) -> Fact:
    """An attribute of a module or a dotted name."""
    ref = of.ref
    if isinstance(ref, str):
        return named(f"{ref}.{name}")
    if isinstance(ref, Module):
        if name in ref.bound:
            return lookup(ref, name)
        brought = _by_star(ref, name) if "*" in ref.bound else None
        below = ref.project.module(ref, name, 1) if brought is None and ref.is_package() else None
        return brought or (Fact(Value.OTHER, confidence=3, ref=below) if below is not None else UNKNOWN)
    if isinstance(ref, Class):
        method = find_method(ref, name)
        return Fact(Value.OTHER, confidence=3, ref=method) if method is not None else UNKNOWN
    return UNKNOWN


def bases(cls: Class) -> list[Fact]:
    """What a class derives from, as far as it can be resolved."""
    if cls.bases is None:
        cls.bases = []
        found = []
        for node in cls.node.bases:
            target = node.value if isinstance(node, ast.Subscript) else node
            path: list[str] = []
            while isinstance(target, ast.Attribute):
                path.append(target.attr)
                target = target.value
            fact = lookup(cls.module, target.id) if isinstance(target, ast.Name) else UNKNOWN
            for word in reversed(path):
                fact = member(fact, word)
            if fact is UNKNOWN:
                fact = named("?." + (path[0] if path else getattr(target, "id", "")))
            if fact.ref is not cls:
                found.append(fact)
        cls.bases = found
    return cls.bases


def ancestry(cls: Class) -> list[Class]:
    """A class and its bases within the project, nearest first."""
    if cls.ancestry is not None:
        return cls.ancestry
    found: list[Class] = [cls]
    for each in found:
        for base in bases(each):
            if isinstance(base.ref, Class) and base.ref not in found and len(found) < 20:
                found.append(base.ref)
    cls.ancestry = found
    return found


def outside(cls: Class) -> list[str]:
    """Dotted names of the bases that lie outside the project."""
    return [base.ref for each in ancestry(cls) for base in bases(each) if isinstance(base.ref, str)]


def find_method(cls: Class, name: str) -> ProjectFunction | None:
    """A method of a class or of its bases within the project."""
    for each in ancestry(cls):
        method = each.methods.get(name)
        if method is not None:
            return method
    return None


class Symbol(NamedTuple):
    """A function or a class: its file, and its name there as `__qualname__` has it but for `<locals>`."""

    module: Module
    name: str

    def nodes(self) -> list[Definition]:
        """Its definitions, of which a file may have several of one name."""
        return self.module.scopes.definitions.get(self.name, [])

    def is_class(self) -> bool:
        """Whether it is a class, not a function."""
        return self.name in self.module.scopes.classes


Seen = set[tuple[object, ...]]  # what was asked on the way, so that no circle is run


def definitions(module: Module, scope: str, name: str, seen: Seen) -> Iterator[Symbol]:
    """What a dotted name means in a scope of a file, by all that binds it: through assignments, imports and bases.

    What only a value could tell is not known.
    """
    if (module, scope, name) in seen or len(seen) > _FARTHEST:
        return
    seen.add((module, scope, name))
    scopes = module.scopes
    head, _, rest = name.partition(".")
    if head == "self":
        if cls := scopes.class_around(scope):
            yield from attributes(Symbol(module, cls), rest, seen)
        return
    while scope and head not in scopes.bound[scope]:
        scope = scope.rpartition(".")[0]
        while scope in scopes.classes:  # a method does not see the names of its class
            scope = scope.rpartition(".")[0]
    bound = scopes.bound[scope]
    if head in bound:
        for statement in bound[head]:
            yield from _bound(module, scope, head, statement, rest, seen)
    else:
        for star in bound.get("*", ()):
            yield from _bound(module, scope, head, star, rest, seen)


def _bound(module: Module, scope: str, name: str, statement: ast.AST, rest: str, seen: Seen) -> Iterator[Symbol]:
    """What a name, and the attribute `rest` of it, means that a statement of a scope binds."""
    if (statement, name) in seen:  # `x = x.exp()`
        return
    seen.add((statement, name))
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        for source, level, inner in _behind(statement, joined(name, rest))[1]:
            found = module.project.module(module, source, level)
            if found is not None and (meant := list(definitions(found, "", inner, seen)) if inner else []):
                yield from meant
                return
    elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
        if of := root(statement.value):
            yield from definitions(module, scope, joined(of, rest), seen)
    else:
        symbol = Symbol(module, joined(scope, name))
        inside = list(attributes(symbol, rest, seen)) if rest else []
        yield from inside or [symbol]


def attributes(cls: Symbol, name: str, seen: Seen) -> Iterator[Symbol]:
    """What an attribute of a class, or of one of its bases, means."""
    head, _, rest = name.partition(".")
    scopes = cls.module.scopes
    if own := scopes.attribute(cls.name, head):
        for statement, scope in own:
            yield from _bound(cls.module, scope, head, statement, rest, seen)
        return
    for base in (base for node in scopes.classes.get(cls.name, ()) for base in node.bases):
        for above in definitions(cls.module, cls.name.rpartition(".")[0], root(base), seen):
            if above.is_class():
                yield from attributes(above, name, seen)


def root(node: ast.expr | None) -> str:
    """`a.b.c` as text, also for what a call of it makes, `m.to` for `m(...).to(...)`; "" for anything else."""
    parts: list[str] = []
    while isinstance(node, (ast.Attribute, ast.Call)):
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        else:
            node = node.func
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""
