"""Parameters that live on the host, since they are given to what takes no tensor from elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from syncscope.model.source import line_starts
from syncscope.project.modules import ProjectFunction
from syncscope.project.of_file import MANY, kept
from syncscope.project.syntax import name_of, walk

_PACKS, _CONVERTS = b"pack_padded_sequence(", b".numpy()"
_DEFINES = b"def " + _PACKS
_SAME_PLACE = frozenset(("detach", "contiguous", "squeeze", "flatten"))


@kept(MANY)
def host_only(function: ProjectFunction) -> frozenset[str]:
    """The lengths of what a function packs, and what it has numpy see, where these are its parameters as they were given."""
    source, node = function.module.source, function.node
    if not _speaks_of_either(source):
        return frozenset()
    starts = line_starts(source)
    end = node.end_lineno or node.lineno
    text = source[starts[node.lineno - 1] : starts[end] if end < len(starts) else len(source)]
    if _PACKS not in text and _CONVERTS not in text:
        return frozenset()
    given = {each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    own = _DEFINES in source
    found = [each for each in (*_lengths(node, own), *_converted(node)) if each.id in given]
    if not found:
        return frozenset()
    bound = [each for each in walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
    first = {each.id: each.lineno for each in sorted(bound, key=lambda each: each.lineno, reverse=True)}
    return frozenset(each.id for each in found if each.lineno <= first.get(each.id, each.lineno))


@lru_cache(maxsize=8)  # each holds a text
def _speaks_of_either(source: bytes) -> bool:
    """Whether a file packs or converts anything: most do not, and their functions need no look."""
    return _PACKS in source or _CONVERTS in source


def _lengths(node: ast.AST, own: bool) -> Iterator[ast.Name]:
    """What is packed with, wherever: lengths that are on the device are an error, but for a function of the file's `own`."""
    for each in walk(node):
        if (
            isinstance(each, ast.Call)
            and name_of(each.func) == "pack_padded_sequence"
            and not (own and isinstance(each.func, ast.Name))
        ):
            named = (keyword.value for keyword in each.keywords if keyword.arg == "lengths")
            at = each.args[1] if len(each.args) > 1 else next(named, None)
            if isinstance(at, ast.Name):
                yield at


def _converted(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.Name]:
    """`x.numpy()` and `x.detach().numpy()` where every run comes by: in an arm it may have been asked where `x` lives."""
    todo: list[ast.AST] = [*node.body]
    for each in todo:  # grows while it is gone through
        if isinstance(
            each, (ast.If, ast.IfExp, ast.BoolOp, ast.Try, ast.FunctionDef, ast.Lambda, ast.ClassDef, ast.Match)
        ):
            continue
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr == "numpy":
            inner = each.func.value
            while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
                if inner.func.attr not in _SAME_PLACE:
                    break
                inner = inner.func.value
            if isinstance(inner, ast.Name):
                yield inner
        todo += ast.iter_child_nodes(each)
