"""What a call sends that another has just made, `torch.zeros(n).long().to(device)`, and what is done with it on its way."""

from __future__ import annotations

import ast
from typing import NamedTuple

from syncscope.codemod.function import Function
from syncscope.codemod.patterns.made_on_host import SAID, takes_all, target
from syncscope.codemod.proofs import DTYPES
from syncscope.project.syntax import name_of

ALIKE = {"torch.zeros", "torch.ones", "torch.eye", "torch.empty"}  # of every dtype they hold the same, or nothing known
COUNTED = {"torch.long", "torch.int", "torch.double", "torch.float"}  # dtypes in which torch.arange counts
CONVERTIBLE = ALIKE | {"torch.eye", "torch.arange", "torch.linspace"}
SPREAD = {"torch.rand", "torch.randn"}  # drawn in any floating dtype
CONVERT = set("long float double int half bool".split())
# `expand` lays out nothing whole
KEEPS = CONVERT | set("unsqueeze view reshape repeat flatten t transpose permute detach".split())


class MadeAndSent(NamedTuple):
    """A call that sends what another has just made."""

    call: ast.Call
    made: ast.Call
    where: ast.expr | str | None
    dtype: ast.expr | str | None = None  # what it is converted to on its way


def sent_as(function: Function, move: ast.AST) -> MadeAndSent | None:
    """What is made, perhaps converted, and sent; None where it is anything else, or converted to what is made otherwise."""
    where = target(function, move)
    match move:
        case ast.Call(
            func=ast.Attribute(value=ast.Call(func=ast.Attribute(value=ast.Call() as made)) as converted)
        ) if function.dotted(made.func) in ALIKE | {"torch.arange"}:
            dtype = as_dtype(function, converted)
            if dtype is None or any(k.arg == "dtype" for k in made.keywords):
                return None
            if isinstance(dtype, str) and function.dotted(made.func) == "torch.arange" and dtype not in COUNTED:
                return None  # of bool there is none, of others it is another range
            return MadeAndSent(move, made, where, dtype)
        case ast.Call(
            func=ast.Attribute(value=ast.Call() as made, attr="to"),
            args=[],
            keywords=[ast.keyword(arg="device" | "dtype"), ast.keyword(arg="device" | "dtype")],
        ) if function.dotted(made.func) in CONVERTIBLE | SPREAD and not any(k.arg == "dtype" for k in made.keywords):
            given = {k.arg: k.value for k in move.keywords}
            named = len(given) == 2 and all(isinstance(each, (ast.Name, ast.Attribute)) for each in given.values())
            return MadeAndSent(move, made, given["device"], given["dtype"]) if named else MadeAndSent(move, made, where)
        case ast.Call(func=ast.Attribute(value=ast.Call() as made)):
            return MadeAndSent(move, made, where)
    return None


def unshaped(made: ast.expr) -> tuple[ast.expr, bool]:
    """What is given another shape on its way, or another dtype, as it was made; and whether it is converted."""
    converted = False
    while True:
        match made:
            case ast.Call(func=ast.Attribute(value=ast.Call() | ast.Subscript() as inner, attr=word)) if word in KEEPS:
                made, converted = inner, converted or word in CONVERT
            case ast.Subscript(value=ast.Call() as inner, slice=ast.Tuple(elts=parts)) if all(map(takes_all, parts)):
                made = inner
            case _:
                return made, converted


def sent_to(function: Function, move: ast.Call) -> ast.expr | None:
    """The tensor to whose dtype and device something is sent: not one whose class it would get, too, and none that is called
    `device`, whatever its annotation says."""
    match move:
        case ast.Call(
            func=ast.Attribute(attr="to" | "type_as"), args=[ast.Name() | ast.Attribute() as given], keywords=[]
        ):
            fact = function.fact(given)
            if name_of(given) == "device":
                return None
            return given if fact.is_tensor and fact.confidence >= 2 and not function.file.own_tensors else None
    return None


def may_be_moved(function: Function, made: ast.Call) -> bool:
    """Whether a call that makes a tensor says nothing of where."""
    return function.dotted(made.func) is not None and SAID.isdisjoint(k.arg for k in made.keywords)


def as_dtype(function: Function, converted: ast.Call) -> ast.expr | str | None:
    """The dtype that `.to(x.dtype)`, `.to(torch.int64)` or `.long()` gives."""
    match converted:
        case ast.Call(
            func=ast.Attribute(attr="to" | "type" as how), args=[ast.Attribute(attr=word) as given], keywords=[]
        ):
            known = (function.dotted(given) or "").removeprefix("torch.") in DTYPES
            # `type` takes classes and strings, too
            return given if known or (how == "to" and word == "dtype") else None
        case ast.Call(
            func=ast.Attribute(attr="long" | "float" | "double" | "half" | "bool" | "int" as word), args=[], keywords=[]
        ):
            return f"torch.{word}"
    return None
