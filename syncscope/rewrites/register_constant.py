"""`torch.tensor(self.mean, device=x.device)` of a list that `__init__` keeps: a buffer, which goes where its module goes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.made_on_host import may_be_device
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site, Value
from syncscope.model.finding import Fix, Safety
from syncscope.project.syntax import parents, walk
from syncscope.rewrites.register_buffer import beginning, family, is_read, moved_with, named_in, set_up, sets

EXAMPLES = (
    Example(
        """
        import torch
        from torch import nn

        class Normalize(nn.Module):
            def __init__(self, mean: list[float]):
                super().__init__()
                self.mean = mean

            def forward(self, x: torch.Tensor):
                return x - torch.tensor(self.mean, device=x.device)  # !
        """,
        """
        import torch
        from torch import nn

        class Normalize(nn.Module):
            def __init__(self, mean: list[float]):
                super().__init__()
                self.register_buffer("mean", torch.tensor(mean), persistent=False)

            def forward(self, x: torch.Tensor):
                return x - self.mean.to(x.device)
        """,
        Safety.UNSAFE,
        rule="tensor-literal-on-device",
    ),
    Example(
        """
        import numpy as np
        import torch
        from torch import nn

        class Fields(nn.Module):
            def __init__(self, sizes: list[int]):
                super().__init__()
                self.offsets = np.array((0, *np.cumsum(sizes)[:-1]))
                self.fields = nn.Embedding(sum(sizes), 16)

            def forward(self, x: torch.LongTensor):
                return self.fields(x + x.new_tensor(self.offsets).unsqueeze(0))  # !
        """,
        """
        import numpy as np
        import torch
        from torch import nn

        class Fields(nn.Module):
            def __init__(self, sizes: list[int]):
                super().__init__()
                self.register_buffer("offsets", torch.tensor(np.array((0, *np.cumsum(sizes)[:-1]))), persistent=False)
                self.fields = nn.Embedding(sum(sizes), 16)

            def forward(self, x: torch.LongTensor):
                return self.fields(x + self.offsets.to(x).unsqueeze(0))
        """,
        Safety.UNSAFE,
        rule="tensor-literal-on-device",
    ),
)
FACTORIES = {"torch.tensor", "torch.as_tensor"}
INTEGERS = {"long", "int", "int64", "int32", "int16", "int8", "uint8", "intp", "int_"}
NUMBERS = {"int", "float", "bool"}  # are filled on the device; and who says so may be given a parameter all the same
SETTINGS = re.compile(r"size|dim|num|len|shape|stride|kernel|channels|features|layers")  # are read as numbers elsewhere
ARRAYS = {"torch.from_numpy", "torch.Tensor", "torch.FloatTensor", "torch.LongTensor"}  # which are given no device


class Rebuilt(NamedTuple):
    """A tensor that is made of an attribute in every call."""

    whole: ast.Call  # all that is replaced
    kept: ast.Attribute
    maker: str  # as it is written in a template: `torch.tensor`
    dtype: ast.expr | None
    where: str  # what is done to the buffer: `.to({d})`
    parts: dict[str, ast.expr]


def _holds_whole_numbers(function: Function, made: Rebuilt, value: ast.expr) -> bool:
    """Whether the buffer is of integers, which no `half()` turns: by the dtype that is asked for, else by what is kept."""
    said = (each.value for each in value.keywords if each.arg == "dtype") if isinstance(value, ast.Call) else ()
    asked = made.dtype if made.dtype is not None else next(iter(said), None)
    if asked is not None:
        return ast.unparse(asked).rpartition(".")[2] in INTEGERS
    return function.fact(value).dtype is Dtype.INT


def rewrite(site: Site, function: Function) -> Fix | None:
    owner = function.file.class_around(function.scope)
    made = made_of(function, site.node)
    if owner is None or made is None or function.fact(made.kept.value).kind is not Value.MODULE:
        return None
    name = made.kept.attr
    if SETTINGS.search(name):
        return None
    begun = next((s for s in owner.body if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)
    statement = kept_in(function, owner, name) if begun is not None else None
    if begun is None or statement is None or may_be_none(begun, statement.value) or not alike(function, owner, name):
        return None
    above = family(function, owner)
    if any(
        sets(function, cls, name) for cls in above if isinstance(cls, ast.ClassDef) and cls is not owner
    ) or named_in(function, owner, name):
        return None  # `register_buffer` refuses what is there already
    draft = Draft(function)
    said = ", dtype={dtype}" if made.dtype is not None else ""
    template = f'self.register_buffer("{name}", {made.maker}({{v}}{said}), persistent=False)'
    begins = Draft(beginning(function, begun))
    begins.replace(statement, template, v=statement.value, **({"dtype": made.dtype} if made.dtype is not None else {}))
    draft.take(begins)
    for each in every(function, name):
        other = made_of(function, each)
        assert other is not None  # asked by `alike`
        draft.replace(each, f"self.{name}{other.where}", **other.parts)
    turned = "" if _holds_whole_numbers(function, made, statement.value) else "`model.half()` turns it, "
    safety, must = moved_with(owner)
    changes = f"self.{name} is a tensor, also for code elsewhere that reads it", f"{turned}DDP broadcasts it"
    return draft.fix("keep it as a buffer", safety, must, *changes)


def made_of(function: Function, node: ast.AST) -> Rebuilt | None:
    """What is made of `self.name` here: `torch.tensor(self.mean, device=d)`, `x.new_tensor(self.mean)`, `.to(d)` of one."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Call(args=[given]) as inner, attr="to"), args=[where], keywords=[]):
            maker = function.dotted(inner.func) or ""
            said = {k.arg: k.value for k in inner.keywords}
            known = maker in FACTORIES | ARRAYS and said.keys() <= {"dtype"} and may_be_device(function, where)
            if not known or (own := kept(given)) is None:
                return None
            made, dtype = "torch.tensor" if maker in FACTORIES else maker, said.get("dtype")
            if dtype is not None and not (function.dotted(dtype) or "").startswith("torch."):
                return None
            return Rebuilt(node, own, made, dtype, ".to({d})", {"d": where})
        case ast.Call(args=[given], keywords=named) if function.dotted(node.func) in FACTORIES:
            said = {k.arg: k.value for k in named}
            device, dtype = said.pop("device", None), said.pop("dtype", None)
            if device is None or said or (own := kept(given)) is None:
                return None
            if dtype is None or (function.dotted(dtype) or "").startswith("torch."):
                return Rebuilt(node, own, "torch.tensor", dtype, ".to({d})", {"d": device})
            return Rebuilt(node, own, "torch.tensor", None, ".to(device={d}, dtype={t})", {"d": device, "t": dtype})
        case ast.Call(func=ast.Attribute(value=ast.Name() as of, attr="new_tensor"), args=[given], keywords=[]):
            fact = function.fact(of)
            if not fact.is_tensor or fact.confidence < 2 or function.file.own_tensors or (own := kept(given)) is None:
                return None
            return Rebuilt(node, own, "torch.tensor", None, ".to({x})", {"x": of})
    return None


def classes_around(node: ast.AST, outer: Mapping[ast.AST, ast.AST]) -> Iterator[ast.ClassDef]:
    """The classes that a node stands in."""
    around = outer.get(node)
    while around is not None:
        if isinstance(around, ast.ClassDef):
            yield around
        around = outer.get(around)


def is_other(cls: ast.ClassDef, owner: ast.ClassDef) -> bool:
    """Whether a class is neither this one, nor derived from it."""
    return cls is not owner and owner.name not in map(ast.unparse, cls.bases)


def kept(node: ast.AST) -> ast.Attribute | None:
    """`self.name`."""
    own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return node if own and isinstance(node, ast.Attribute) else None


def kept_in(function: Function, owner: ast.ClassDef, name: str) -> ast.Assign | None:
    """The statement of `__init__` that alone gives an attribute of a class its value, after the base class was set up."""
    match statement := set_up(function, owner, name):
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"))]):
            return statement
    return None


def may_be_none(begun: ast.FunctionDef, value: ast.expr) -> bool:
    """Whether what is kept may be nothing, or a tensor already: an argument that may be left out, an arm that is None."""
    if isinstance(value, ast.Constant):
        return True
    arguments = begun.args
    optional = dict(
        zip(reversed([*arguments.posonlyargs, *arguments.args]), reversed(arguments.defaults), strict=False)
    )
    optional |= {a: d for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None}
    unsure = {a.arg for a, d in optional.items() if isinstance(d, ast.Constant)}
    unsure |= {
        a.arg
        for a in (*arguments.args, *arguments.kwonlyargs)
        if a.annotation is not None
        and (
            any(word in ast.unparse(a.annotation) for word in ("None", "Optional", "Tensor"))
            or ast.unparse(a.annotation) in NUMBERS
        )
    }
    if isinstance(value, ast.Name) and value.id in unsure:
        return True
    return any(isinstance(n, ast.Constant) and n.value is None for n in walk(value))


def every(function: Function, name: str) -> list[ast.Call]:
    """The calls of this function that make a tensor of an attribute."""
    found = (made_of(function, call) for call in function.every(ast.Call))
    return [each.whole for each in found if each is not None and each.kept.attr == name]


def alike(function: Function, owner: ast.ClassDef, name: str) -> bool:
    """Whether an attribute is read for nothing else in this file than to be made such a tensor here, or to be counted."""
    mine = {id(node) for call in every(function, name) for node in walk(call)}
    outer = parents(function.file.tree)
    for node in filter(is_read, function.file.attributes.get(name, ())):
        if id(node) in mine or (
            kept(node) is not None and any(is_other(c, owner) for c in classes_around(node, outer))
        ):
            continue
        above = outer[node]
        counted = isinstance(above, ast.Call) and isinstance(above.func, ast.Name) and above.func.id == "len"
        if not counted and not (isinstance(above, ast.Call) and above.func is node):  # `x.mean()` beside `self.mean`
            return False
    return True
