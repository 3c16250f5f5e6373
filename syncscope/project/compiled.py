"""What a compiler takes whole, TorchScript, `torch.export` or `torch.compile(fullgraph=True)`: there a fix must compile, too.

What is handed to `torch.jit.script` anywhere in the project counts, its tests included, and what that calls.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from syncscope.files import regular
from syncscope.model.source import line_starts
from syncscope.project.folders import located, root_of
from syncscope.project.references import (
    LARGEST,
    Alias,
    Function,
    Import,
    Names,
    Sources,
    Symbol,
    names_of,
    root,
    sources_of,
)
from syncscope.project.syntax import expressions, walk

MENTIONS = (  # each begins with a word that is searched for by itself, in a tenth of the time that a pattern takes
    (b"jit", re.compile(rb"jit\s*\.\s*(?:script|export)")),
    (b"export", re.compile(rb"export\s*\.\s*(?:draft_)?export")),
    (b"script_", re.compile(rb"script_(?<!\wscript_)(?:method|if_tracing)\b")),
    (b"fullgraph", re.compile(rb"fullgraph(?<!\wfullgraph)\s*=\s*True")),
)


def is_scripted(name: str, path: str, code: bytes) -> bool:
    """Whether a compiler takes the function of this dotted name, in a file of this content, whole."""
    path = located(path)
    known = compiled_in(path, code)
    while name and known:
        if Symbol(path, name) in known:
            return True
        name = name.rpartition(".")[0]
    return False


_SAID = re.compile(rb"#[^\n]*\b(?:jit|torchscript|scriptable)\b", re.IGNORECASE)


def says_it_is_scripted(function: ast.AST | None, code: bytes) -> bool:
    """Whether a comment in a function says that TorchScript takes it, which others may ask of it: `# jit cannot do this`."""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) or b"#" not in code:
        return False
    starts, end = line_starts(code), function.end_lineno or 0
    return _SAID.search(code, starts[function.lineno - 1], starts[end] if end < len(starts) else len(code)) is not None


@lru_cache(maxsize=4)
def compiled_in(path: str, code: bytes) -> frozenset[Symbol]:
    """What is compiled whole in the project of a file, and in the file as it is now."""
    root = root_of(os.path.dirname(path)) if os.path.exists(path) else ""
    known = of_project(root)
    if not speaks_of_compiler(code):
        return known
    sources = sources_of(root)
    return known | compiled(replace(sources, names={**sources.names, path: names_of(path, code)}), [path])


@lru_cache(maxsize=8)
def of_project(root: str) -> frozenset[Symbol]:
    """The functions and methods of a project that are compiled whole."""
    sources = sources_of(root)
    return compiled(sources, (path for known in sources.modules.values() for _, path in known if mentions(path)))


def compiled(sources: Sources, paths: Iterable[str]) -> frozenset[Symbol]:
    """What these files hand to such a compiler, and what that calls: functions and methods."""
    todo: list[tuple[Symbol, Symbol | None]] = []  # and the class that `self` is of
    for path in paths:
        names = sources.named(path)
        for scope, name in handed(names):
            todo += [(symbol, None) for symbol in sources.resolve(path, scope, name, set())]
        for name in decorated(names):
            todo.append((Symbol(path, name), None))
            methods = [s.name for c in names.classes(name) for s in c.body if isinstance(s, Function)]
            todo += [(Symbol(path, f"{name}.{method}"), None) for method in methods]
    done: set[tuple[Symbol, Symbol | None]] = set()
    while todo:
        each = todo.pop()
        if each not in done:
            done.add(each)
            todo += called(sources, *each)
    return frozenset(symbol for symbol, _ in done if not sources.is_class(symbol))


def handed(names: Names) -> Iterator[Alias]:
    """What is handed to a compiler that takes it whole."""
    for node, scope in names.scopes:
        calls = (each for each in expressions(node) if isinstance(each, ast.Call))
        yield from (Alias(scope, of) for call in calls if (of := given(call)))


def decorated(names: Names) -> Iterator[str]:
    """What a decorator hands to one: functions and classes."""
    for node, name in names.scopes:
        if isinstance(node, (*Function, ast.ClassDef)) and any(map(is_compiler, node.decorator_list)):
            yield name


def called(sources: Sources, symbol: Symbol, owner: Symbol | None) -> Iterator[tuple[Symbol, Symbol | None]]:
    """What is compiled with a function, or with a module of a class: its `forward`, and the layers that it makes."""
    path, scope = symbol
    names = sources.named(path)
    for meant in names.meant.get(scope, ()):
        if isinstance(meant, ast.ClassDef):
            yield from ((method, symbol) for method in sources.member(symbol, "forward", set()))
            for made in sources.member(symbol, "__init__", set()):
                if not sources.is_class(made):
                    yield from ((layer, None) for layer, _ in called(sources, made, symbol) if sources.is_class(layer))
        elif not isinstance(meant, (Import, Alias)):
            owner = owner or Symbol(path, names.around(scope))
            for name in {root(n.func) for n in walk(meant) if isinstance(n, ast.Call)}:
                if name.startswith("self."):
                    yield from ((method, owner) for method in sources.member(owner, name[5:], set()))
                else:
                    yield from ((other, None) for other in sources.resolve(path, scope, name, set()))


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
