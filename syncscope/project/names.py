"""Names of a module and members of what they stand for."""

from __future__ import annotations

import ast
import builtins

from syncscope.model.fact import UNKNOWN, Device, Fact, Value
from syncscope.project import conventions
from syncscope.project.modules import Class, Module, ProjectFunction

_BUILTINS = frozenset(dir(builtins))
_EXTERNAL = frozenset("torch numpy math time logging typing collections functools itertools os sys re".split())


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
    symbol = module.symbols.get(name)
    if symbol is None:
        if "*" in module.symbols:
            found = _by_star(module, name)
            if found is not None:
                return found
        return named(f"builtins.{name}") if name in _BUILTINS else UNKNOWN
    if isinstance(symbol, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return Fact(Value.OTHER, confidence=3, ref=ProjectFunction(symbol, module))
    if isinstance(symbol, ast.ClassDef):
        return Fact(Value.OTHER, confidence=3, ref=Class(symbol, module))
    if isinstance(symbol, ast.Import):
        for alias in symbol.names:
            if alias.asname == name or (alias.asname is None and alias.name.partition(".")[0] == name):
                dotted = alias.name if alias.asname else name
                return _project_module(module, dotted, 0) or named(dotted)
        return UNKNOWN
    if isinstance(symbol, ast.ImportFrom):
        return imported(module, symbol, name)
    if isinstance(symbol, (ast.Assign, ast.AnnAssign)) and symbol.value is not None:
        fact = module.project.interpreter.value(module, symbol.value)
        return fact.but(device=Device.UNKNOWN) if fact.kind is Value.MODULE else fact  # moved since, most likely
    return UNKNOWN


def _by_star(module: Module, name: str) -> Fact | None:
    """What `from somewhere import *` brings under a name: files of the project are looked into, others by convention."""
    for statement in reversed(module.tree.body):
        if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
            source = statement.module or ""
            found = module.project.module(module, source, statement.level) if source not in _EXTERNAL else None
            if found is not None and (name in found.symbols or "*" in found.symbols):
                fact = lookup(found, name)
                if fact.kind is not UNKNOWN.kind and not (
                    isinstance(fact.ref, str) and fact.ref.startswith("builtins.")
                ):
                    return fact
    return named(conventions.BY_STAR[name]) if name in conventions.BY_STAR else None


def imported(module: Module, symbol: ast.ImportFrom, name: str) -> Fact:
    """What a name stands for that is imported from somewhere."""
    for alias in symbol.names:
        if (alias.asname or alias.name) == name:
            source = symbol.module or ""
            if source.partition(".")[0] not in _EXTERNAL:
                found = module.project.module(module, source, symbol.level)
                if found is not None:
                    if alias.name in found.symbols:
                        return lookup(found, alias.name)
                    brought = _by_star(found, alias.name) if "*" in found.symbols else None
                    if brought is not None:
                        return brought
                    inner = module.project.module(
                        module, f"{source}.{alias.name}" if source else alias.name, symbol.level
                    )
                    return Fact(Value.OTHER, confidence=3, ref=inner) if inner is not None else UNKNOWN
                inner = module.project.module(module, f"{source}.{alias.name}" if source else alias.name, symbol.level)
                if inner is not None:
                    return Fact(Value.OTHER, confidence=3, ref=inner)
            return named(f"{'.' * symbol.level}{source}.{alias.name}")
    return UNKNOWN


def _project_module(module: Module, dotted: str, level: int) -> Fact | None:
    if dotted.partition(".")[0] in _EXTERNAL:
        return None
    found = module.project.module(module, dotted, level)
    return Fact(Value.OTHER, confidence=3, ref=found) if found is not None else None


def member(of: Fact, name: str) -> Fact:
    """An attribute of a module or a dotted name."""
    ref = of.ref
    if isinstance(ref, str):
        return named(f"{ref}.{name}")
    if isinstance(ref, Module):
        if name in ref.symbols:
            return lookup(ref, name)
        return UNKNOWN
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
