"""`torch.tensor([0.1, 0.9], device=x.device)` in a module: a buffer, which goes where the module goes."""

from __future__ import annotations

import ast
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.made_on_host import may_be_device
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site, Value
from syncscope.model.finding import Edit, Fix, Safety
from syncscope.model.source import Span
from syncscope.rewrites.make_constant_once import called, only_computed_with, written
from syncscope.rewrites.register_buffer import (
    beginning,
    defines_getattr,
    family,
    moved_with,
    sets,
    sets_up_base,
)

EXAMPLES = (
    Example(
        """
        import torch
        from torch import nn

        class Blur(nn.Module):
            def __init__(self, width: int):
                super().__init__()
                self.width = width

            def forward(self, x: torch.Tensor):
                weights = torch.tensor([0.25, 0.5, 0.25], device=x.device)  # !
                return (x[..., None] * weights).sum(-1)
        """,
        """
        import torch
        from torch import nn

        class Blur(nn.Module):
            def __init__(self, width: int):
                super().__init__()
                self.register_buffer("weights", torch.tensor([0.25, 0.5, 0.25]), persistent=False)
                self.width = width

            def forward(self, x: torch.Tensor):
                weights = self.weights.to(x.device)
                return (x[..., None] * weights).sum(-1)
        """,
        Safety.UNSAFE,
        rule="tensor-literal-on-device",
    ),
    Example(
        """
        import torch
        from torch import nn

        class Normalize(nn.Module):
            def __init__(self):
                super().__init__()

            def forward(self, x: torch.Tensor):
                return x - torch.tensor([0.5, 0.4, 0.3]).to(x.device)  # !
        """,
        """
        import torch
        from torch import nn

        class Normalize(nn.Module):
            def __init__(self):
                super().__init__()
                self.register_buffer("constant", torch.tensor([0.5, 0.4, 0.3]), persistent=False)

            def forward(self, x: torch.Tensor):
                return x - self.constant.to(x.device)
        """,
        Safety.UNSAFE,
        rule="created-on-host",
    ),
)


class Constant(NamedTuple):
    """A tensor of numbers that are written out, made in every call."""

    whole: ast.Call  # all that is replaced
    values: ast.expr
    dtype: ast.expr | None
    where: ast.expr


def rewrite(site: Site, function: Function) -> Fix | None:
    owner = function.file.class_around(function.scope)
    made = made_of(function, site.node)
    if owner is None or made is None or not only_computed_with(function, made.whole):
        return None
    begun = next((s for s in owner.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)
    base = next(filter(sets_up_base, begun.body), None) if begun is not None else None
    above = family(function, owner)
    if begun is None or base is None or function.scope is begun or not of_a_module(function, above):
        return None
    classes = [cls for cls in above if isinstance(cls, ast.ClassDef)]
    name = called(function, made.whole)
    if any(defines_getattr(cls) or sets(function, cls, name) for cls in classes):
        return None  # `register_buffer` refuses what is there already
    draft = Draft(function)
    said = ", dtype={t}" if made.dtype is not None else ""
    parts = {"v": made.values, **({"t": made.dtype} if made.dtype is not None else {})}
    text = draft.code(f'self.register_buffer("{name}", torch.tensor({{v}}{said}), persistent=False)', **parts)
    draft.replace(made.whole, f"self.{name}.to({{d}})", d=made.where)
    line = base.end_lineno or base.lineno
    if line >= len(function.file.starts):
        return None
    at = function.file.starts[line]  # of the next one, behind a comment
    draft.edits.append(Edit(Span(at, at), f"{beginning(function, begun).indent(base)}{text}\n"))
    changes = f"self.{name} goes where the module goes, DDP broadcasts it"
    if function.fact(made.whole).dtype is not Dtype.INT:
        changes += ", `model.half()` turns it, too"
    if any(isinstance(cls, str) and not cls.startswith("torch.") for cls in above):
        changes += f"; no class above may have a {name}"
    return draft.fix("make it a buffer", *moved_with(owner, changes))


def of_a_module(function: Function, above: list[ast.ClassDef | str]) -> bool:
    """Whether this is a method of a module, which it is given as `self`."""
    arguments = function.scope.args.args if isinstance(function.scope, ast.FunctionDef) else []
    if not arguments or arguments[0].arg != "self":
        return False
    named = any(isinstance(cls, str) and cls.endswith("Module") for cls in above)
    return named or any(function.fact(read).kind is Value.MODULE for read in function.reads("self"))


def made_of(function: Function, node: ast.AST) -> Constant | None:
    """`torch.tensor([1.0, 2.0], device=d)` or `torch.tensor([1.0, 2.0]).to(d)`, with a dtype that is written out, if any."""
    where: ast.expr | None
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call(args=[values]) as inner, attr="to"), args=[where], keywords=[]):
            said = {k.arg: k.value for k in inner.keywords}
        case ast.Call(args=[values]) as inner:
            said = {k.arg: k.value for k in inner.keywords}
            where = said.pop("device", None)
        case _:
            return None
    dtype = said.pop("dtype", None)
    plain = dtype is None or (function.dotted(dtype) or "").startswith("torch.")
    if where is None or said or not plain or function.dotted(inner.func) != "torch.tensor":
        return None
    if not written(values) or not may_be_device(function, where) or not isinstance(node, ast.Call):
        return None
    return Constant(node, values, dtype, where)
