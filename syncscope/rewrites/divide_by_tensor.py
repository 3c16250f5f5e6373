"""`num_boxes = torch.clamp(n, min=1).item()` that the methods of a class only divide by: the tensor stays on the device.

It is the normalization of DETR's losses, and of the many criteria that are written after them.
"""

from __future__ import annotations

import ast
import builtins

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.names_and_calls import parameters_of
from syncscope.codemod.patterns.reads import STAYS_TENSOR, detached, tensor_read, undone_between, without_gradient
from syncscope.codemod.proofs import no_dimensions
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety
from syncscope.project.syntax import walk
from syncscope.rewrites.hand_on_the_tensor import new

LOCAL = True
EXAMPLES = (
    Example(
        """
        import torch
        from torch import nn

        class Criterion(nn.Module):
            def loss_boxes(self, outputs, targets, num_boxes):
                return {"loss_boxes": (outputs["boxes"] - targets).abs().sum() / num_boxes}

            def get_loss(self, loss, outputs, targets, num_boxes):
                known = {"boxes": self.loss_boxes}
                return known[loss](outputs, targets, num_boxes)

            def forward(self, outputs: dict[str, torch.Tensor], targets: torch.Tensor, counted: torch.Tensor, world_size: int):
                num_boxes = torch.clamp(counted / world_size, min=1).item()  # !
                return self.get_loss("boxes", outputs, targets, num_boxes)
        """,
        """
        import torch
        from torch import nn

        class Criterion(nn.Module):
            def loss_boxes(self, outputs, targets, num_boxes):
                return {"loss_boxes": (outputs["boxes"] - targets).abs().sum() / num_boxes}

            def get_loss(self, loss, outputs, targets, num_boxes):
                known = {"boxes": self.loss_boxes}
                return known[loss](outputs, targets, num_boxes)

            def forward(self, outputs: dict[str, torch.Tensor], targets: torch.Tensor, counted: torch.Tensor, world_size: int):
                num_boxes = torch.clamp(counted / world_size, min=1).squeeze()
                return self.get_loss("boxes", outputs, targets, num_boxes)
        """,
        Safety.UNSAFE,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    tensor, read = tensor_read(function, site.node), site.node
    definition = function.parent(read)
    if tensor is None or not isinstance(read, ast.Call) or not isinstance(definition, ast.Assign):
        return None
    if (
        definition.value is not read
        or not isinstance(definition.targets[0], ast.Name)
        or b"jit.script" in function.file.code
    ):
        return None
    name, uses = definition.targets[0].id, function.seen_by(definition)
    if not any(isinstance(function.parent(use), (ast.Call, ast.keyword)) for use in uses):
        return None
    takers = takers_of(function, name)
    if not takers:
        return None
    if not new(function, tensor) and undone_between(function, tensor, definition, uses[-1]):
        return None
    unseen: set[str] = set()
    for one, reads in ((function, uses), *((taker, taker.reads(name)) for taker in takers.values())):
        for use in reads:
            to = divides_or_hands(one, use, takers)
            if to is None:
                return None
            unseen.update({to} - {""})
    draft = Draft(function)
    whole = site.fact.dtype is Dtype.INT or without_gradient(function, tensor) or counted(function, tensor)
    value = "{t}" if whole else "{t}.detach()"
    if not no_dimensions(function, tensor):
        value += ".squeeze()"
    draft.replace(read, value, t=tensor if whole else detached(function, tensor))
    if unseen:
        must = f"{', '.join(sorted(unseen))} must do no more than divide by it"
        return draft.fix("divide by the tensor", Safety.SUGGEST, must, STAYS_TENSOR)
    return draft.fix(
        "divide by the tensor",
        Safety.UNSAFE,
        STAYS_TENSOR,
        "what overrides the methods here must only divide by it, too",
    )


def counted(function: Function, tensor: ast.expr) -> bool:
    """Whether what is read is made of a count alone, which no gradient goes through: `torch.clamp(n / size, min=1)`."""
    names = [n for n in walk(tensor) if isinstance(n, ast.Name) and function.fact(n).is_tensor]
    return bool(names) and all("num" in n.id or "count" in n.id for n in names)


def takers_of(function: Function, name: str) -> dict[str, Function]:
    """The methods of the class around, and the functions of the file, that have a parameter of this name."""
    around = function.file.class_around(function.scope)
    every = [*(around.body if around is not None else ()), *function.file.tree.body]
    found = {s.name: s for s in every if isinstance(s, ast.FunctionDef) and s is not function.scope}
    return {word: Function(function.file, s, ()) for word, s in found.items() if name in parameters_of(s)}


def divides_or_hands(function: Function, use: ast.Name, takers: dict[str, Function]) -> str | None:
    """What a number is handed to that is not seen here, "" where it divides or is handed to a taker; None for anything else."""
    outer = function.parent(use)
    match outer:
        case ast.BinOp(op=ast.Div(), right=right) if right is use:
            return ""
    call = function.parent(outer) if isinstance(outer, ast.keyword) else outer
    if not isinstance(call, ast.Call) or call.func is use:
        return None
    match call.func:
        case ast.Name(id=word) | ast.Attribute(value=ast.Name(id="self"), attr=word):
            return "" if word in takers else None if word in vars(builtins) else word
        case ast.Subscript():  # of a table of the class's own methods
            return ""
    return None
