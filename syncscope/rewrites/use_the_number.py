"""`x * torch.tensor(0.5, device=d)` as `x * 0.5`: a number that tensors are only computed with needs to be none itself."""

from __future__ import annotations

import ast
import re
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import around
from syncscope.codemod.patterns.asked import may_be_several
from syncscope.codemod.patterns.made_on_host import TYPES
from syncscope.codemod.patterns.numbers import element, filler, own_int, too_large, written_out
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site, Value
from syncscope.model.finding import Fix, Safety

COMPUTED = (ast.Add, ast.Sub, ast.Mult, ast.Div)
MAKERS = {"torch.tensor", "torch.as_tensor"}
FLOATS = {f"torch.{name}" for name in ("float", "float32", "float16", "half", "bfloat16")}
DEFAULT = {"torch.float", "torch.float32"}
WIDTH = re.compile(r"^(d_?[kqv]|d_(model|head)|(\w+_)?(dim|size|width)|dim_\w+)$")
"""What people call the width of a layer, which scores are scaled by: a number of Python."""
EIGHTHS = 8.0  # parts of one that even half precision holds as they are, up to `HELD`
HELD = 64
ROUNDS = True
EXAMPLES = (
    Example(
        """
        import torch

        def halved(x: torch.Tensor):
            x = x.flatten()
            return torch.tensor(3, dtype=x.dtype, device=x.device) - x, x * torch.tensor(0.5, device=x.device)  # !
        """,
        """
        import torch

        def halved(x: torch.Tensor):
            x = x.flatten()
            return 3 - x, x * 0.5
        """,
        Safety.SAFE,
        "x: float[n]",
        rule="tensor-literal-on-device",
    ),
    Example(
        """
        import math
        import torch

        def scaled(q: torch.Tensor, k: torch.Tensor):
            scores = q @ k.T
            size = torch.sqrt(torch.tensor(k.shape[-1], dtype=scores.dtype, device=scores.device))  # !
            return scores / size
        """,
        """
        import math
        import torch

        def scaled(q: torch.Tensor, k: torch.Tensor):
            scores = q @ k.T
            size = math.sqrt(k.shape[-1])
            return scores / size
        """,
        Safety.UNSAFE,
        "q: finite[n, m + 1]; k: finite[n, m + 1]",
        rule="tensor-literal-on-device",
    ),
    Example(
        """
        import math
        import torch

        class Attention(torch.nn.Module):
            def __init__(self, size):
                super().__init__()
                self.head_dim = size // 2

            def forward(self, q: torch.Tensor, k: torch.Tensor):
                scale = torch.sqrt(torch.tensor(self.head_dim, dtype=torch.float32, device=q.device))  # !
                return (q @ k.T) / scale
        """,
        """
        import math
        import torch

        class Attention(torch.nn.Module):
            def __init__(self, size):
                super().__init__()
                self.head_dim = size // 2

            def forward(self, q: torch.Tensor, k: torch.Tensor):
                scale = math.sqrt(self.head_dim)
                return (q @ k.T) / scale
        """,
        Safety.UNSAFE,
        rule="tensor-literal-on-device",
    ),
    Example(
        """
        import torch

        def kept(x: torch.Tensor, device):
            x = x.flatten()
            scale = torch.FloatTensor([0.7]).to(device)  # !
            return x * scale + x
        """,
        """
        import torch

        def kept(x: torch.Tensor, device):
            x = x.flatten()
            scale = 0.7
            return x * scale + x
        """,
        Safety.UNSAFE,
        "x: finite[n]; device: cpu",
        rule="created-on-host",
    ),
)


class OneNumber(NamedTuple):
    """A tensor of one number: what it is made of, and whether it has a dimension, and a dtype."""

    number: ast.expr
    flat: bool
    dtype: ast.expr | None
    named: bool  # whether it is one by its name alone: `self.head_dim`


def rewrite(site: Site, function: Function) -> Fix | None:
    made = made_of(function, site.node)
    if made is None or not isinstance(site.node, ast.expr):
        return None
    rooted = around(function, site.node, "torch.sqrt({it})", "{it}.sqrt()")
    whole = rooted.node if rooted is not None else site.node
    if rooted is None and (made.named or filler(made.number) != "full"):  # `torch.zeros(())` is as short as anything
        return None
    uses, others = uses_of(function, whole), []
    for use in uses:
        outer = function.parent(use)
        if not isinstance(outer, ast.BinOp) or not isinstance(outer.op, COMPUTED):
            return None
        others.append(outer.right if outer.left is use else outer.left)
    flat = any((function.fact(other).ndim or 0) == 0 for other in others)
    if (
        not others
        or (flat and made.flat and rooted is None)
        or not all(met(function, o, made, rooted is not None) for o in others)
    ):
        return None
    draft = Draft(function)
    draft.replace(whole, "math.sqrt({v})" if rooted is not None else "{v}", v=made.number)
    title = "compute with the number"
    divided = rooted is not None or any(divides(function, use) for use in uses)
    if not flat and not made.flat and not divided and held_by_all(function, made.number):
        return draft.fix(title, Safety.SAFE)
    must = f"{function.file.text(made.number)} must be a number; " * made.named
    changes = f"{must}it is Python's number, so the last bits may differ"
    more = "what it meets keeps its own dtype and shape, also where it has no dimension" if flat else ""
    return draft.fix(title, Safety.UNSAFE, changes, more)


def made_of(function: Function, node: ast.AST) -> OneNumber | None:
    """What a call makes a tensor of one number of, where it sends it along or names the device."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call() as call, attr="to" | "cuda"), args=moved, keywords=more):
            if len(moved) + len(more) > 1 or any(k.arg != "device" for k in more) or call.keywords:
                return None
        case ast.Call() as call:
            pass
        case _:
            return None
    name, typed = function.dotted(call.func) or "", {k.arg: k.value for k in call.keywords}
    if (name not in MAKERS and name not in ("torch.FloatTensor",)) or len(call.args) != 1:
        return None
    number, size = element(function, call.args[0])
    dtype = typed.get("dtype")
    if typed.keys() - {"device", "dtype"} or size not in ("()", "(1,)") or (name in TYPES and size == "()"):
        return None
    fact = function.fact(number)
    known = isinstance(number, ast.Name) and fact.kind is Value.SCALAR and fact.confidence == 3
    plain = known or written_out(function, number) or own_int(function, number)
    named = not plain and isinstance(number, ast.Attribute) and WIDTH.match(number.attr) is not None
    if not (plain or named) or isinstance(getattr(number, "value", None), bool):
        return None
    if too_large(function, number) or may_be_several(function, number):
        return None
    return OneNumber(number, size != "()", dtype, named)


def uses_of(function: Function, whole: ast.expr) -> list[ast.expr]:
    """Where a tensor is used: itself, or each use of the one name that it is given."""
    match function.parent(whole):
        case ast.Assign(targets=[ast.Name(id=name)], value=value) as assign if value is whole:
            seen = function.seen_by(assign)
            alone = len(seen) == len(function.reads(name)) and not function.captured(name)
            return list[ast.expr](seen) if alone and len(function.binds(name)) == 1 else []
    return [whole]


def met(function: Function, other: ast.expr, made: OneNumber, rooted: bool) -> bool:
    """Whether the other operand is surely a tensor that gives what is computed its own dtype, whichever of both it meets; of a
    root, which Python has with a point, also where that is the default's.
    """
    fact = function.fact(other)
    if not fact.is_tensor or fact.confidence < 2 or function.file.own_tensors:
        return False
    if made_of(function, function.value(other)) is not None:  # of two numbers nothing would be a tensor
        return False
    if made.dtype is None or (rooted and not made.flat and function.dotted(made.dtype) in DEFAULT):
        return True
    whole = isinstance(function.constant(made.number), int) or own_int(function, made.number)
    if not whole and fact.dtype is not Dtype.FLOAT:  # it would be rounded
        return False
    if isinstance(made.dtype, ast.Attribute) and made.dtype.attr == "dtype" and function.same(made.dtype.value, other):
        return True
    of_float = function.dotted(made.dtype) in FLOATS or (
        isinstance(made.dtype, ast.Attribute) and made.dtype.attr == "dtype"
    )
    return of_float and fact.dtype is Dtype.FLOAT and not made.flat


def divides(function: Function, use: ast.expr) -> bool:
    """Whether a use takes part in a division: by a number a GPU divides less exactly."""
    outer = function.parent(use)
    return isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Div)


def held_by_all(function: Function, number: ast.expr) -> bool:
    """Whether every dtype with a point holds a number as it is: 3, -0.5."""
    value = function.constant(number)
    return value is not None and abs(value) <= HELD and (value * EIGHTHS).is_integer()
