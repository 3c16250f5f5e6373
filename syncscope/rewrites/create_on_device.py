"""`torch.zeros(n).to(device)` as `torch.zeros(n, device=device)`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.numbers import filling
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety

SAME = {"torch.zeros", "torch.ones", "torch.full", "torch.eye", "torch.empty"}
CLOSE = {"torch.arange", "torch.linspace", "torch.logspace"}
DRAWN = {"torch.rand", "torch.randn", "torch.randint", "torch.randperm", "torch.normal"}
COMPILES = True
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor, device):
            return x + torch.zeros(x.shape[1]).to(device)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, device):
            return x + torch.zeros(x.shape[1], device=device)
        """,
        Safety.SAFE,
        "x: float[n, m]; device: cpu",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            total = torch.tensor(0.0).to(x.device)  # !
            return x + total, torch.tensor(1, dtype=torch.long).to(x.device)  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            total = torch.zeros((), device=x.device)
            return x + total, torch.ones((), dtype=torch.long, device=x.device)
        """,
        Safety.SAFE,
        "x: float[n, m]",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            return x + torch.randn(x.shape[1]).cuda()  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            return x + torch.randn(x.shape[1], device="cuda")
        """,
        Safety.UNSAFE,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    move, where = site.node, target(site.node)
    match move:
        case ast.Call(func=ast.Attribute(value=ast.Call() as made)):
            name = function.dotted(made.func)
        case _:
            return None
    taken = {k.arg for k in made.keywords}
    if where is None or name is None or taken & {"device", "out", "requires_grad", "pin_memory", "generator", None}:
        return None
    if any(isinstance(a, ast.Starred) for a in made.args):
        return None
    draft = Draft(function)
    if name == "torch.tensor":
        number = function.constant(made.args[0]) if len(made.args) == 1 else None
        if (
            number is None or abs(number) >= 128 or taken - {"dtype"}
        ):  # what overflows a dtype is reported in other words
            return None
        draft.replace(move, "{call}", call=filling(draft, made, made.args[0], "()", device=where))
        return draft.fix("make it on the device", Safety.SAFE)
    draft.replace(move, "{call}", call=draft.call(made, {}, device=where))
    title = "make it on the device"
    if name in SAME:
        return draft.fix(title, Safety.SAFE)
    if name in CLOSE:
        return draft.fix(title, Safety.UNSAFE, "values that are not whole may differ in their last bits")
    if name in DRAWN:
        return draft.fix(title, Safety.UNSAFE, "the device's generator draws other numbers for the same seed")
    return None


def target(move: ast.AST) -> ast.expr | str | None:
    """The device that `.to(device)` or `.cuda()` names."""
    match move:
        case ast.Call(func=ast.Attribute(attr="cuda"), args=[], keywords=[]):
            return '"cuda"'
        case ast.Call(func=ast.Attribute(attr="to"), args=[ast.Constant(value=str()) as where], keywords=[]):
            return where
        case ast.Call(
            func=ast.Attribute(attr="to"), args=[(ast.Attribute(attr=word) | ast.Name(id=word)) as where], keywords=[]
        ):
            return where if "device" in word else None
    return None
