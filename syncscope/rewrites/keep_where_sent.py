"""`self.table.to(x.device)` of a table that `__init__` makes: it is kept where it was sent, and sent once."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.kept import set_by_init
from syncscope.codemod.patterns.made_on_host import may_be_device
from syncscope.model.example import Example
from syncscope.model.fact import Site, Value
from syncscope.model.finding import Fix, Safety
from syncscope.project.syntax import name_of
from syncscope.rewrites.make_constant_once import only_computed_with
from syncscope.rewrites.register_buffer import of_host, only_sent

PLAIN = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
LATER = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp, ast.BoolOp)
EXAMPLES = (
    Example(
        """
        import torch

        class Scheduler:
            def __init__(self, steps: int):
                betas = torch.linspace(1e-4, 0.02, steps)
                self.alphas = torch.cumprod(1 - betas, 0)

            def add_noise(self, x: torch.Tensor, noise: torch.Tensor, t: torch.Tensor):
                alphas = self.alphas.to(device=x.device, dtype=x.dtype)  # !
                return alphas[t] * x + (1 - alphas[t]) * noise

            def snr(self, t: torch.LongTensor):
                alphas = self.alphas.to(t.device)[t]  # !
                return alphas / (1 - alphas)
        """,
        """
        import torch

        class Scheduler:
            def __init__(self, steps: int):
                betas = torch.linspace(1e-4, 0.02, steps)
                self.alphas = torch.cumprod(1 - betas, 0)

            def add_noise(self, x: torch.Tensor, noise: torch.Tensor, t: torch.Tensor):
                self.alphas = self.alphas.to(x.device)
                alphas = self.alphas.to(dtype=x.dtype)
                return alphas[t] * x + (1 - alphas[t]) * noise

            def snr(self, t: torch.LongTensor):
                self.alphas = self.alphas.to(t.device)
                alphas = self.alphas[t]
                return alphas / (1 - alphas)
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        class Anchors:
            def __init__(self, n: int):
                self.grid = torch.linspace(0, 1, n)

            def near(self, x: torch.Tensor):
                return x - self.grid.cuda()  # !

            def rows(self):
                return self.grid.tolist()
        """,
        """
        import torch

        class Anchors:
            def __init__(self, n: int):
                self.grid = torch.linspace(0, 1, n)

            def near(self, x: torch.Tensor):
                self.grid = self.grid.cuda()
                return x - self.grid

            def rows(self):
                return self.grid.tolist()
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        class Anchors:
            def __init__(self, n: int):
                self.grid = torch.linspace(0, 1, n)

            def moved(self, x: torch.Tensor):
                grid = self.grid.to(x.device)  # !
                return grid.add_(x)
        """,
        """
        import torch

        class Anchors:
            def __init__(self, n: int):
                self.grid = torch.linspace(0, 1, n)

            def moved(self, x: torch.Tensor):
                self.grid = self.grid.to(x.device)
                grid = self.grid
                return grid.add_(x)
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        class Memory:
            def __init__(self, n: int):
                self.states = torch.zeros(n, 4)

            def push(self, i: int, state: list[float]):
                self.states[i] = torch.tensor(state)

            def drawn(self, x: torch.Tensor):
                return x + self.states.to(x.device)  # !
        """,
        """
        import torch

        class Memory:
            def __init__(self, n: int):
                self.states = torch.zeros(n, 4)

            def push(self, i: int, state: list[float]):
                self.states[i] = torch.tensor(state)

            def drawn(self, x: torch.Tensor):
                return x + self.states.to(x.device, non_blocking=True)
        """,
        Safety.SUGGEST,  # by another rewrite: what is filled row by row is not sent once
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    sent, statement = sent_by(function, site.node), function.statement(site.node)
    if sent is None or not isinstance(statement, PLAIN) or b"inference_mode" in function.file.code:
        return None  # what is kept in inference mode can be used in no graph
    kept, where = sent
    name, fact = kept.attr, function.fact(kept)
    if function.fact(kept.value).kind is Value.MODULE or fact.confidence < 2 or not of_host(fact):
        return None
    if not set_by_init(function, name) or any(isinstance(n, LATER) for n in within(function, site.node, statement)):
        return None
    assert isinstance(site.node, ast.Call)
    draft = Draft(function)
    if where is None:
        draft.insert_before(statement, f"self.{name} = self.{name}.cuda()")
    else:
        draft.insert_before(statement, f"self.{name} = self.{name}.to({{d}})", d=where)
    dtype = next((k.value for k in site.node.keywords if k.arg == "dtype"), None)
    if dtype is None:
        draft.replace(site.node, "{t}", t=kept)
    else:
        draft.replace(site.node, "{t}.to(dtype={dtype})", t=kept, dtype=dtype)
    changes = [f"self.{name} stays on the device, and is sent again only where another is asked for"]
    if not only_sent(function, name):
        changes.append(f"other lines read self.{name}, and must be able to on the device")
    if not only_computed_with(function, site.node):
        changes.append("what was a copy is the table itself: nothing may write it")
    tier = Safety.SUGGEST if len(changes) > 1 else Safety.UNSAFE
    return draft.fix("send it once, and keep it there", tier, *changes)


def sent_by(function: Function, node: ast.AST) -> tuple[ast.Attribute, ast.expr | None] | None:
    """The attribute of `self` that is sent, and to which device: `self.table.to(x.device)`; None for `self.table.cuda()`."""
    match node:
        case ast.Call(
            func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="self")) as kept, attr="cuda"),
            args=[],
            keywords=[],
        ):
            return kept, None
        case ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="self")) as kept, attr="to")):
            named = {k.arg: k.value for k in node.keywords}
            where = named.get("device", node.args[0] if len(node.args) == 1 else None)
            plain = named.keys() <= {"device", "dtype"} and where is not None
            if plain and where is not None and function.pure(where) and may_be_device(function, where):
                return (kept, where) if is_device(where) else None
    return None


def is_device(where: ast.expr) -> bool:
    """Whether this says a device: by its name, or because it is written out."""
    text = where.value if isinstance(where, ast.Constant) else None
    return isinstance(text, str) or "device" in name_of(where)


def within(function: Function, node: ast.AST, statement: ast.stmt) -> list[ast.AST]:
    """What stands around an expression in its statement."""
    around = list(function.around(node))
    return around[: around.index(statement)] if statement in around else around
