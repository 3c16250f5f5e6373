"""A number that is written at positions of one dimension, `x[:, i] = 1.0`, as a call that fills there."""

from __future__ import annotations

import ast
from typing import NamedTuple

from syncscope.codemod.function import Function
from syncscope.codemod.masks import is_all
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.numbers import named
from syncscope.model.fact import Dtype, Fact, Value
from syncscope.project.syntax import each_of

COUNTED = ("torch.arange({n}, **_)", "torch.arange(0, {n}, **_)", "range({n})", "range(0, {n})", "list(range({n}))")


class Filling(NamedTuple):
    """The call that fills, where, and the rows beside those positions, which are not made any more."""

    template: str  # of `x`, `i` and `value`
    at: ast.expr  # the positions
    rows: ast.expr | None


def filling_code(function: Function, target: ast.Subscript) -> Filling | None:
    """The call that fills at positions of one dimension, its index, and the rows that go with that; None for several."""
    found = each_of(target.slice)
    rows: ast.expr | None = None
    square = len(found) == 2 and function.fact(target.value).ndim in (None, 2)
    match [part for part in found if not is_all(part)]:
        case [index]:
            code = f"{{x}}.index_fill_({found.index(index)}, {{i}}, {{value}})"
        case [first, index] if square and counted(function, first):
            rows, code = first, "{x}.scatter_(1, {i}[:, None], {value})"
        case [index, last] if square and is_counted_by(function, last, index):
            rows, code = last, "{x}.scatter_(0, {i}[None], {value})"
        case [*rows_before, index] if (
            rows_before
            and found[: len(rows_before)] == rows_before
            and all(function.fact(row).kind is Value.SCALAR for row in rows_before)
            and all(named(row) or isinstance(row, ast.Constant) for row in rows_before)
            and not any(may_be_flag(function.fact(row), row) for row in rows_before)
        ):
            place = ", ".join(map(function.file.text, rows_before))
            code = f"{{x}}[{place}].index_fill_({found.index(index) - len(rows_before)}, {{i}}, {{value}})"
        case _:
            return None
    fact = function.fact(index)
    return Filling(code, index, rows) if fact.is_tensor and fact.ndim in (None, 1, 0 if rows is None else 1) else None


def may_be_one_row(function: Function, index: ast.expr) -> bool:
    """Whether positions have one dimension, or are called by a name: what is computed may well have more."""
    return isinstance(index, ast.Name) or function.fact(index).ndim is not None


def counted(function: Function, rows: ast.expr) -> ast.expr | None:
    """The call that counts rows from 0: `torch.arange(n)`, `range(n)`."""
    made = function.value(rows)
    return made if seen(function, made, *COUNTED) is not None else None


def is_counted_by(function: Function, rows: ast.expr, index: ast.expr) -> bool:
    """Whether rows are counted by those of an index, which then has one dimension: `torch.arange(len(i))`."""
    made = seen(function, counted(function, rows), *COUNTED)
    sized = (
        seen(function, function.value(made["n"]), "len({i})", "{i}.shape[0]", "{i}.size(0)", "{i}.numel()")
        if made is not None
        else None
    )
    whole = seen(function, index, "{i}.long()")  # as long as what it is made of
    return sized is not None and any(function.same(sized["i"], each) for each in (index, *(whole or {}).values()))


def musts(function: Function, target: ast.Subscript, code: Filling) -> list[str]:
    """What must hold of an index that fills, and of what is filled."""
    _, index, rows = code
    text, wanted = function.file.text(index), []
    if not is_long(function, index):
        wanted.append("be int64")
    if function.fact(index).ndim not in ((1,) if rows is not None else (0, 1)):
        wanted.append("have one dimension")
    if rows is not None:
        wanted.append("not be negative")
        if not is_counted_by(function, rows, index):
            wanted.append(f"be as long as {function.file.text(rows)}")
    found = [f"{text} must {' and '.join(wanted)}"] if wanted else []
    if rows is not None and function.fact(target.value).ndim is None:
        found.append(f"{function.file.text(target.value)} must have two dimensions")
    return found


def is_long(function: Function, index: ast.expr) -> bool:
    """Whether an index is surely of int64: `i.long()`, `x.argmax()`."""
    made = function.value(index)
    return (
        seen(function, made, "{x}.long()", "{x}.argmax(*_, **_)", "{x}.argsort(*_, **_)", "torch.randperm({n})")
        is not None
    )


def may_be_flag(fact: Fact, part: ast.expr) -> bool:
    """Whether a number of an index may be True or False, which selects all or nothing: a copy, in which nothing is kept."""
    return (
        fact.kind is Value.SCALAR and fact.dtype is not Dtype.INT and not isinstance(part, (ast.Constant, ast.UnaryOp))
    )
