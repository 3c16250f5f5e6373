"""Who calls a function in its own file."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, NamedTuple

from syncscope.heat import blocks, loops
from syncscope.model.heat import Heat
from syncscope.model.source import line_starts
from syncscope.project.modules import Module, ProjectFunction
from syncscope.project.of_file import MANY, kept
from syncscope.project.syntax import expressions, held, name_of

_IN_WORD = re.compile(rb"\w")


class Caller(NamedTuple):
    """A function that calls another, what the blocks around the call say (None where nothing speaks against it), its line."""

    function: ProjectFunction
    around: Heat | None
    line: int


@kept(MANY)
def callers(module: Module, name: str, anyhow: bool) -> list[Caller | None]:
    """The calls of a function in its file; None where it is handed on uncalled, named outside of all functions, or, not
    `anyhow`, is no method of the caller's own object.

    Its text says which of them speak of it: no other is gone through.
    """
    found: list[Caller | None] = []
    starts, functions = line_starts(module.source), _functions(module)
    spoken: dict[int, list[int]] = defaultdict(list)  # lines, by the number of the function that they are in
    outside: list[int] = []
    for line in (bisect_right(starts, at) for at in stands(name.encode(), module.source)):
        at = bisect_right(functions, line, key=itemgetter(0)) - 1
        within = at >= 0 and line <= functions[at][1]
        (spoken[functions[at][2]] if within else outside).append(line)
    for number in sorted(spoken):
        function = module.top[number]
        for node, called in _uses(function.node, name, spoken[number], anyhow):
            around = blocks.of_call(function.node, node, module.source) if called else None
            found.append(Caller(function, around, node.lineno) if called else None)
    if outside:
        found += [None for node in _named_outside(module).get(name, ()) if node.lineno in outside]
    return found


def nearest(function: ProjectFunction, runs: Callable[[ProjectFunction], bool]) -> tuple[int, str, bool]:
    """A line of its own file that calls a function, in a loop over steps if any does, the function that the line is in, and
    whether that trains; 0 where none is known. A method is called by its own class, or by its name where it is the only one of
    the file. Only callers count that may themselves run in steps.
    """
    module, name, cls = function.module, function.name, function.cls
    alone = sum(each.name == name for each in module.top) == 1
    found: list[tuple[bool, int, str]] = []
    for caller in callers(module, name, True):
        if caller is None or caller.function is function or not (alone or _is_kin(caller.function, function)):
            continue
        trains = caller.around is None and blocks.trains(caller.function.node, module.source)
        if not (trains or runs(caller.function)):
            continue
        owner = f"{caller.function.cls.name}." if caller.function.cls is not None else ""
        found.append((not trains, caller.line, f"{owner}{caller.function.name}"))
    named = _named_outside(module).get(name, ()) if alone and cls is None else ()
    if outside := [node for node in named if _is_called(module.source, node)]:
        top = loops.at_top(module.tree)
        found += [
            (top is None or blocks.of_call(top, node, module.source) is not None, node.lineno, "") for node in outside
        ]
    elsewhere, line, by = min(found, default=(True, 0, ""))
    return line, by, not elsewhere


def _is_kin(one: ProjectFunction, other: ProjectFunction) -> bool:
    """Whether both are of one class, or neither is of any, or the first is of one that the second's is derived from."""
    bases = map(name_of, other.cls.node.bases) if other.cls is not None and one.cls is not None else ()
    return one.cls is other.cls or (one.cls is not None and one.cls.name in bases)


def _is_called(source: bytes, node: ast.Name | ast.Attribute) -> bool:
    """Whether brackets stand right behind what is named."""
    at = line_starts(source)[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)
    return source[at : at + 1] == b"("


@kept(2)
def _named_outside(module: Module) -> dict[str, list[ast.Name | ast.Attribute]]:
    """The names and the attributes of a file that stand in none of its functions."""
    found: dict[str, list[ast.Name | ast.Attribute]] = defaultdict(list)
    functions = {each.node for each in module.top}
    todo: list[ast.AST] = [module.tree]
    for each in todo:  # grows while it is gone through
        for node in expressions(each):
            if isinstance(node, (ast.Name, ast.Attribute)):
                found[name_of(node)].append(node)
        todo += [inner for inner in held(each) if inner not in functions]
    return found


@kept(2)
def _functions(module: Module) -> list[tuple[int, int, int]]:
    """The first and the last line of each function of a file, and its number; of one that was run twice the first."""
    numbered = reversed([*enumerate(module.top)])
    spans = {(_first(each.node), each.node.end_lineno or 0): number for number, each in numbered}
    return sorted((*span, number) for span, number in spans.items())


def stands(word: bytes, text: bytes) -> Iterator[int]:
    """Where a word stands by itself: found as bytes, in a tenth of the time that a pattern would take."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not (_IN_WORD.match(text, at - 1) if at else None) and not _IN_WORD.match(text, end):
            yield at
        at = text.find(word, end)


def _on(lines: list[int], root: ast.AST) -> Iterator[ast.AST]:
    """The nodes of the statements that stand on these lines, from the outside in; into others nobody looks."""
    todo = [root]
    for each in todo:  # grows while it is gone through
        yield from expressions(each)
        todo += _standing(held(each), lines)


def _standing(block: list[ast.AST], lines: list[int]) -> list[ast.AST]:
    """Those of the statements of a block, one after the other, that stand on one of these lines."""
    found: dict[int, ast.AST] = {}
    for line in lines:
        at = bisect_right(block, line, key=_first)
        while at and _last(block[at - 1]) >= line:
            at -= 1
            found[at] = block[at]
    return [found[at] for at in sorted(found)]


def _first(node: Any) -> int:
    """The line on which a statement begins, with the decorators above it, or a case."""
    at: int = node.pattern.lineno if node.__class__ is ast.match_case else node.lineno
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([at, *(each.lineno for each in decorators)])


def _last(node: Any) -> int:
    last: int = _last(node.body[-1]) if node.__class__ is ast.match_case else node.end_lineno
    return last


def _uses(root: ast.AST, name: str, lines: list[int], anyhow: bool) -> list[tuple[ast.expr, bool]]:
    """The places on these lines where a name stands, also as an attribute, and whether it is called there, of `self` unless
    `anyhow`."""
    uses: dict[int, tuple[Any, bool]] = {}
    for node in _on(lines, root):  # a call comes before what it calls
        if node.__class__ is ast.Call:
            func: Any = node.func
            if name_of(func) == name:
                uses[id(func)] = func, anyhow or name_of(getattr(func, "value", None)) in ("self", "cls")
        elif name_of(node) == name:
            uses.setdefault(id(node), (node, False))
    return list(uses.values())
