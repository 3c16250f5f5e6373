"""What a compiler takes whole, TorchScript, `torch.export` or `torch.compile(fullgraph=True)`: there a fix must compile, too.

What is handed to `torch.jit.script` anywhere in the project counts, its tests included, what asks whether it is scripted, and
what either calls.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from syncscope.model.source import line_starts
from syncscope.project.bindings import Definition, FunctionNode, Scopes
from syncscope.project.folders import LARGEST, content, located, root_of, sources
from syncscope.project.modules import Module, ProjectFiles
from syncscope.project.names import Symbol, attributes, definitions, root
from syncscope.project.syntax import expressions, walk

MENTIONS = (  # each begins with a word that is searched for by itself, in a tenth of the time that a pattern takes
    (b"jit", re.compile(rb"jit\s*\.\s*(?:script|export)")),
    (b"export", re.compile(rb"export\s*\.\s*(?:draft_)?export")),
    (b"script_", re.compile(rb"script_(?<!\wscript_)(?:method|if_tracing)\b")),
    (b"fullgraph", re.compile(rb"fullgraph(?<!\wfullgraph)\s*=\s*True")),
    (b"is_scripting", re.compile(rb"is_scripting(?<!\wis_scripting)\s*\(")),
)


def is_scripted(name: str, path: str, code: bytes) -> bool:
    """Whether a compiler takes the function of this dotted name, in a file of this content, whole."""
    path = located(path)
    known = compiled_in(path, code)
    while name and known:
        if (path, name) in known:
            return True
        name = name.rpartition(".")[0]
    return False


_SAID = re.compile(rb"#[^\n]*\b(?:jit|torchscript|scriptable)\b")


def says_it_is_scripted(function: ast.AST | None, code: bytes) -> bool:
    """Whether a comment in a function says that TorchScript takes it, which others may ask of it: `# jit cannot do this`."""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or b"#" not in code:
        return False
    starts, end = line_starts(code), function.end_lineno or 0
    text = code[starts[function.lineno - 1] : starts[end] if end < len(starts) else len(code)].lower()
    return (b"jit" in text or b"script" in text) and _SAID.search(text) is not None


@lru_cache(maxsize=4)
def compiled_in(path: str, code: bytes) -> frozenset[tuple[str, str]]:
    """What is compiled whole in the project of a file, and in the file as it is now: files, and names in them."""
    root = root_of(os.path.dirname(path)) if os.path.exists(path) else ""
    known = of_project(root)
    if not speaks_of_compiler(code):
        return known
    project = files_of(root)
    try:
        return known | compiled([Module(project.parsed(path, code), path, project)])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return known


@lru_cache(maxsize=8)
def of_project(root: str) -> frozenset[tuple[str, str]]:
    """The functions and methods of a project that are compiled whole."""
    project = files_of(root)
    mentioning = (path for path in sources(root) if speaks_of_compiler(content(path)))
    return compiled(filter(None, map(project.at, mentioning)))


@lru_cache(maxsize=8)
def files_of(root: str) -> ProjectFiles:
    """The files of a project, of which any may import any package of it; by itself a file imports nothing."""
    packages = {os.path.dirname(path) for path in sources(root) if os.path.basename(path) == "__init__.py"}
    above = {os.path.dirname(folder) for folder in packages} - packages
    return ProjectFiles(tuple(map(Path, sorted(above))), alone=not root, largest=LARGEST)


def compiled(modules: Iterable[Module]) -> frozenset[tuple[str, str]]:
    """What these files hand to such a compiler, and what that calls: functions and methods."""
    todo: list[tuple[Symbol, Symbol | None]] = []  # and the class that `self` is of
    for module in modules:
        for scope, name in handed(module.scopes):
            todo += [(symbol, None) for symbol in definitions(module, scope, name, set())]
        todo += [(Symbol(module, scope), None) for scope in asking(module.scopes)]
        for node, name in decorated(module.scopes):
            todo.append((Symbol(module, name), None))
            methods = node.body if isinstance(node, ast.ClassDef) else []
            todo += [(Symbol(module, f"{name}.{m.name}"), None) for m in methods if isinstance(m, FunctionNode)]
    done: set[tuple[Symbol, Symbol | None]] = set()
    while todo:
        each = todo.pop()
        if each not in done:
            done.add(each)
            todo += called(*each)
    return frozenset((symbol.module.path, symbol.name) for symbol, _ in done if not symbol.is_class())


def handed(scopes: Scopes) -> Iterator[tuple[str, str]]:
    """What is handed to a compiler that takes it whole: where that is said, and a dotted name. One that stands for each of
    several in turn is all of them."""
    listed: dict[str, list[str]] | None = None
    for node, scope in scopes.statements:
        calls = (each for each in expressions(node) if isinstance(each, ast.Call))
        for of in filter(None, map(given, calls)):
            listed = turns(scopes) if listed is None else listed
            yield from ((scope, name) for name in (of, *listed.get(of, ())))


def turns(scopes: Scopes) -> dict[str, list[str]]:
    """What names stand for, one after another: `for f in (a, b)`, and what pytest gives a test,
    `@pytest.mark.parametrize("f", [a, b])`."""
    found: dict[str, list[str]] = {}
    for node, _ in scopes.statements:
        named: list[tuple[str, ast.expr]] = []
        if isinstance(node, (ast.For, ast.AsyncFor)) and isinstance(node.target, ast.Name):
            named.append((node.target.id, node.iter))
        for mark in node.decorator_list if isinstance(node, FunctionNode) else ():
            match mark:
                case ast.Call(func=ast.Attribute(attr="parametrize"), args=[ast.Constant(value=str(name)), given, *_]):
                    named.append((name, given))
        for name, values in named:
            if isinstance(values, (ast.List, ast.Tuple, ast.Set)):
                found.setdefault(name, []).extend(filter(None, map(root, values.elts)))
    return found


def decorated(scopes: Scopes) -> Iterator[tuple[Definition, str]]:
    """What a decorator hands to one: functions and classes, and their names."""
    for node, name in scopes.statements:
        if isinstance(node, Definition) and any(map(is_compiler, node.decorator_list)):
            yield node, name


def asking(scopes: Scopes) -> set[str]:
    """The functions that ask whether they are scripted, so that they can be: `if torch.jit.is_scripting()`."""
    return {
        scope
        for node, scope in scopes.statements
        if scope
        for each in expressions(node)
        if isinstance(each, ast.Call) and root(each.func).rpartition(".")[2] == "is_scripting"
    }


def called(symbol: Symbol, owner: Symbol | None) -> Iterator[tuple[Symbol, Symbol | None]]:
    """What is compiled with a function, or with a module of a class: its `forward`, and the layers that it makes."""
    module, scope = symbol
    for node in symbol.nodes():
        if isinstance(node, ast.ClassDef):
            yield from ((method, symbol) for method in attributes(symbol, "forward", set()))
            for made in attributes(symbol, "__init__", set()):
                if not made.is_class():
                    yield from ((layer, None) for layer, _ in called(made, symbol) if layer.is_class())
        else:
            owner = owner or Symbol(module, module.scopes.class_around(scope))
            for name in {root(each.func) for each in walk(node) if isinstance(each, ast.Call)}:
                if name.startswith("self."):
                    yield from ((method, owner) for method in attributes(owner, name[5:], set()))
                else:
                    yield from ((other, None) for other in definitions(module, scope, name, set()))


def speaks_of_compiler(code: bytes) -> bool:
    """Whether such a compiler is named."""
    return any(word in code and pattern.search(code) is not None for word, pattern in MENTIONS)


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
