"""`torch.FloatTensor([self.eps]).to(x)`, `torch.tensor(1e-8).to(device)`: one number that is made on the host, then sent."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.asked import may_be_several
from syncscope.codemod.patterns.made_on_host import TYPES, target
from syncscope.codemod.patterns.numbers import element, filler, filling, too_large
from syncscope.model.example import Example
from syncscope.model.fact import Site, Value
from syncscope.model.finding import Fix, Safety

TOGETHER = "made"
ROUNDS = True
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.FloatTensor, cost: float):
            return x[None] - torch.tensor([[cost]]).to(x)  # !
        """,
        """
        import torch

        def forward(x: torch.FloatTensor, cost: float):
            return x[None] - x.new_full((1, 1), cost)
        """,
        Safety.UNSAFE,
        "x: finite[n]; cost: number",
    ),
    Example(
        """
        import torch

        def forward(x: torch.FloatTensor, device, eps: float):
            least = torch.FloatTensor([eps]).to(x)  # !
            rows = torch.tensor(x.shape[0]).to(x)  # !
            return torch.max(torch.max(x, least), rows), torch.tensor(-1e8).to(device)  # !
        """,
        """
        import torch

        def forward(x: torch.FloatTensor, device, eps: float):
            least = x.new_full((1,), eps)
            rows = x.new_full((), x.shape[0])
            return torch.max(torch.max(x, least), rows), torch.full((), -1e8, device=device)
        """,
        Safety.UNSAFE,
        "x: finite[n]; device: cpu; eps: number",
    ),
    Example(
        """
        import torch

        class Loss(torch.nn.Module):
            def forward(self, x: torch.FloatTensor):
                x = x / torch.FloatTensor([self.scale]).to(x.device)  # !
                return x + torch.tensor(self.bias, device=x.device)
        """,
        """
        import torch

        class Loss(torch.nn.Module):
            def forward(self, x: torch.FloatTensor):
                x = x / torch.full((1,), self.scale, dtype=torch.float, device=x.device)
                return x + torch.tensor(self.bias, device=x.device)
        """,
        Safety.UNSAFE,
    ),
)
ROUNDED = "it is rounded to {x}'s dtype at once, and one that does not fit it is an error"
OWN_DTYPE = "a number of numpy's gets torch's default dtype"
FITS = "beyond 3.4e38 it is an error, no inf"


def rewrite(site: Site, function: Function) -> Fix | None:
    move = site.node
    if not isinstance(move, ast.Call) or not isinstance(move.func, ast.Attribute):
        return None
    made = move.func.value
    name = function.dotted(made.func) if isinstance(made, ast.Call) else None
    if not isinstance(made, ast.Call) or name not in ("torch.tensor", *TYPES) or len(made.args) != 1 or made.keywords:
        return None
    value, size = element(function, made.args[0])
    if name in TYPES and size == "()":
        return None  # it is given sizes, or a list
    asked = one_number(function, value, size)
    if asked is None or too_large(function, value):
        return None
    where, draft = target(function, move), Draft(function)
    match move:
        case ast.Call(
            func=ast.Attribute(attr="to" | "type_as"), args=[ast.Name() | ast.Attribute() as other], keywords=[]
        ) if where is None:
            fact = function.fact(other)
            if not fact.is_tensor or fact.confidence < 2 or function.file.own_tensors or function.file.other_layouts:
                return None
            word = filler(value)
            number = ", {v}" if word == "full" else ""
            draft.replace(move, f"{{x}}.new_{word}({size}{number})", x=other, v=value)
            changes = ROUNDED.format(x=function.file.text(other))
        case _ if where is not None:
            dtype = {"dtype": draft.part(TYPES[name])} if name in TYPES else {}
            place = draft.part(where) if isinstance(where, str) else where
            draft.replace(move, "{call}", call=filling(draft, made, value, size, **dtype, device=place))
            changes = FITS if dtype or function.constant(value) is not None else OWN_DTYPE
        case _:
            return None
    return draft.fix("fill a tensor on the device", Safety.UNSAFE, asked, changes)


def one_number(function: Function, value: ast.expr, size: str) -> str | None:
    """What must hold for a value to be one number; None where it may not be one."""
    if function.constant(value) is not None:
        return ""
    fact = function.fact(value)
    if may_be_several(function, value) or fact.kind not in (Value.SCALAR, Value.UNKNOWN):
        return None
    if fact.kind is Value.SCALAR and fact.confidence == 3:
        return ""
    if fact.kind is Value.UNKNOWN and (size == "()" or function.value(value) is not value):
        return None  # it may be a list, or a tensor that needs its gradient
    return f"{function.file.text(value)} must be one number"
