"""The largest of lengths that the host has as a list: `int(lengths.max())` of `lengths = torch.tensor(lens)` as `max(lens)`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import around, seen
from syncscope.codemod.patterns.joined import plain
from syncscope.codemod.patterns.reads import number_read
from syncscope.codemod.templates import Part
from syncscope.codemod.writes import changed, exposed
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety
from syncscope.model.ops import Op

MADE = (
    "torch.tensor({l}, **_)", "torch.as_tensor({l}, **_)", "torch.LongTensor({l})", "torch.IntTensor({l})",
    "torch.LongTensor({l}).to(*_, **_)", "{x}.new_tensor({l}, **_)", "torch.tensor({l}, **_).to(*_, **_)",
)  # fmt: skip
ASKED = ("{t:name}.max()", "{t:name}.min()", "{t:name}.sum()", "{t:name}.amax()", "{t:name}.amin()")
CLEARS = True
EXAMPLES = (
    Example(
        """
        import torch

        def padded(seqs: list[torch.Tensor], x: torch.Tensor):
            lens = [len(s) for s in seqs]
            lengths = torch.tensor(lens, device=x.device)
            return x.new_zeros(len(lens), lengths.max()), x[:, : lengths.max()], lengths  # !
        """,
        """
        import torch

        def padded(seqs: list[torch.Tensor], x: torch.Tensor):
            lens = [len(s) for s in seqs]
            lengths = torch.tensor(lens, device=x.device)
            return x.new_zeros(len(lens), max(lens)), x[:, : max(lens)], lengths
        """,
        Safety.UNSAFE,
        rule="tensor-as-size",
    ),
    Example(
        """
        import torch

        def counted(seqs: list[torch.Tensor], x: torch.Tensor):
            lengths = torch.tensor([len(s) for s in seqs], dtype=torch.long, device=x.device)
            total = lengths.sum().item()  # !
            return x.new_zeros(total), lengths
        """,
        """
        import torch

        def counted(seqs: list[torch.Tensor], x: torch.Tensor):
            lengths_list = [len(s) for s in seqs]
            lengths = torch.tensor(lengths_list, dtype=torch.long, device=x.device)
            total = sum(lengths_list)
            return x.new_zeros(total), lengths
        """,
        Safety.UNSAFE,
        rule="host-read",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    whole = site.operand if site.op is Op.SIZE else site.node
    if not isinstance(whole, ast.expr):
        return None
    tensor = whole if site.op is Op.SIZE else number_read(function, whole)
    asked = seen(function, tensor, *ASKED)
    made = function.reaching_definition(asked["t"]) if asked is not None else None
    given = seen(function, made.value, *MADE) if made is not None else None
    if asked is None or made is None or given is None or tensor is None:
        return None
    listed, op = given["l"], function.op(tensor)
    by_int = isinstance(whole, ast.Call) and function.dotted(whole.func) == "int"
    if op is None or not (
        site.op is Op.SIZE or by_int or function.fact(asked["t"]).dtype is Dtype.INT or whole_numbers(made)
    ):
        return None  # what is no whole number is rounded in a tensor
    if function.fact(listed).is_tensor or changed(function, made, whole, asked["t"]):
        return None
    draft = Draft(function)
    name: Part = listed
    if isinstance(listed, (ast.List, ast.ListComp)):
        if not of_numbers(function, listed) or not function.alone(made):
            return None
        name = function.fresh(f"{plain(ast.unparse(asked['t']).rstrip('_'))}_list")
        draft.insert_before(made, f"{name} = {{l}}", l=listed)
        draft.replace(listed, name)
    elif (
        not isinstance(listed, ast.Name)
        or changed(function, made, whole, listed)
        or exposed(function, listed.id, made, whole)
    ):
        return None
    word = {"amax": "max", "amin": "min"}.get(op.name, op.name)
    outer = around(function, whole, "int({it})")
    draft.replace(outer.node if outer is not None else whole, f"{word}({{l}})", l=name)
    text = function.file.text(listed) if isinstance(listed, ast.Name) else "the list"
    return draft.fix("ask the list on the host", Safety.UNSAFE, f"{text} must hold whole numbers of Python's")


def whole_numbers(made: ast.Assign) -> bool:
    """Whether a tensor is said to hold whole numbers: by its dtype, or its type."""
    return any(word in ast.unparse(made.value) for word in ("torch.long", "torch.int", "LongTensor", "IntTensor"))


def of_numbers(function: Function, listed: ast.List | ast.ListComp) -> bool:
    """Whether each entry of a list is written as one number of Python's: a length, or what is counted."""
    entries = [listed.elt] if isinstance(listed, ast.ListComp) else listed.elts
    plain = (
        "len({x})",
        "int({x})",
        "{x}.size({n})",
        "{x}.shape[{n}]",
        "{x}.numel()",
        "{x}.shape[{n}] + {m}",
        "len({x}) + {m}",
    )
    return bool(entries) and all(
        seen(function, e, *plain) is not None or function.constant(e) is not None for e in entries
    )
