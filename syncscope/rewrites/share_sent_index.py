"""One list that is made an index again and again, `x[torch.tensor(i, device=d)] + y[torch.tensor(i, device=d)]`: it is sent
once, and nobody waits for it."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.masks import before_all, bound_by, index_of
from syncscope.codemod.patterns.listed import TAKEN_OVER, shaped
from syncscope.codemod.writes import bound_between, disturbed, exposed
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Drawback, Fix, Safety
from syncscope.model.ops import Op
from syncscope.rewrites.send_without_waiting import of_call, sent_of

EXAMPLES = (
    Example(
        """
        import torch

        def chosen(x: torch.Tensor, y: torch.Tensor, idx: list[int]):
            here = x[torch.tensor(idx, device=x.device)]  # !
            there = y[:, torch.tensor(idx, device=x.device)]  # !
            return here.sum() + there.sum()
        """,
        """
        import torch

        def chosen(x: torch.Tensor, y: torch.Tensor, idx: list[int]):
            idx_tensor = torch.tensor(idx).to(x.device, non_blocking=True)
            here = x[idx_tensor]
            there = y[:, idx_tensor]
            return here.sum() + there.sum()
        """,
        Safety.UNSAFE,
        "x: finite[5, m]; y: finite[m, 5]; idx: counts[n]",
        rule="tensor-literal-on-device",
    ),
    Example(
        """
        import torch

        def chosen(x: torch.Tensor, y: torch.Tensor, sentences):
            x, y = x.cuda(), y.cuda()
            rows = [s.row for s in sentences]
            a = x.index_select(0, torch.LongTensor(rows).to(x.device))  # !
            b = y[torch.LongTensor(rows).to(y.device)]  # !
            return a - b
        """,
        """
        import torch

        def chosen(x: torch.Tensor, y: torch.Tensor, sentences):
            x, y = x.cuda(), y.cuda()
            rows = [s.row for s in sentences]
            rows_index = torch.LongTensor(rows).to(x.device, non_blocking=True)
            a = x.index_select(0, rows_index)
            b = y[rows_index]
            return a - b
        """,
        Safety.UNSAFE,
        rule="created-on-host",
    ),
)

OPS = {Op.TENSOR_LITERAL, Op.CREATED_ON_HOST}
TAKEN_AS_INDEX = set(
    "index_select gather take take_along_dim index_add index_add_ index_copy index_copy_ embedding".split()
)


def rewrite(site: Site, function: Function) -> Fix | None:
    held = listed(function, site.node)
    if held is None:
        return None
    definition = function.reaching_definition(held)
    return function.once(
        f"share {made_as(function, site.node)}", definition or function.scope, lambda: shared(site, held, function)
    )


def shared(site: Site, held: ast.Name, function: Function) -> Fix | None:
    """The fix for all indices that are made alike of what a name holds."""
    definition, made = function.reaching_definition(held), made_as(function, site.node)
    home = function.block(definition) if definition is not None else bound_by(function, held)
    calls = [s.node for s in function.sites if s.op in OPS and is_alike(function, s, made, definition)]
    uses = [call for call in calls if isinstance(call, ast.Call)]
    first = before_all(function, home, uses) if home is not None and len(uses) > 1 else None
    if (
        first is None
        or disturbed(function, held.id, definition or first, uses[-1], within=definition is None)
        or exposed(function, held.id, first, uses[-1])
    ):
        return None
    draft = Draft(function)
    sent = sent_of(draft, function, uses[0])
    if sent is None or moves(function, uses[0], first):
        return None
    name = index_of(function, held.id)
    draft.insert_before(first, f"{name} = {sent.template}", **sent.parts)
    for use in uses:
        draft.replace(use, name)
    # One copy in place of several is worth it, however it is written.
    changes = (TAKEN_OVER,) if sent.few else sent.changes
    draft.drawbacks |= {Drawback.UNPINNED} if sent.few else set()
    devices = [goes_to(function, use) for use in uses]
    if len({each and ast.unparse(each) for each in devices}) > 1 or any(moves(function, use, first) for use in uses):
        changes = ("all that it selects from must live on one device", *changes)
    safety = Safety.UNSAFE if sent.few else sent.safety
    return draft.fix(f"send {held.id} once, without waiting, not {len(uses)} times", safety, *changes)


def is_alike(function: Function, site: Site, made: str, definition: ast.AST | None) -> bool:
    """Whether the call at a site makes the same index."""
    held = listed(function, site.node)
    same = (
        held is not None and function.reaching_definition(held) is definition and made_as(function, site.node) == made
    )
    return same and of_call(site, function) is not None


def listed(function: Function, call: ast.AST) -> ast.Name | None:
    """The name of the values of which an index is made here: it is only read, whoever else has it."""
    maker = maker_of(function, call)
    if (
        maker is None
        or not isinstance(call, ast.Call)
        or len(maker.args) != 1
        or not isinstance(maker.args[0], ast.Name)
    ):
        return None
    above = function.parent(call)
    if isinstance(above, ast.Tuple):
        above = function.parent(above)
    if isinstance(above, ast.Subscript):
        return maker.args[0] if call in ast.walk(above.slice) else None
    match above:
        case ast.Call(func=ast.Attribute(attr=word), args=args) if call in args and word in TAKEN_AS_INDEX:
            return maker.args[0]
    return None


def maker_of(function: Function, call: ast.AST) -> ast.Call | None:
    """The call that makes the tensor: itself, or what is moved and nothing else, `torch.tensor(i).to(d)`."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Call() as moved, attr="to" | "cuda")):
            is_plain = len(call.args) + len(call.keywords) < 2 and all(k.arg == "device" for k in call.keywords)
            return moved if is_plain and shaped(function, moved) is moved else None
        case ast.Call() if function.dotted(call.func) is not None:
            return call
    return None


def made_as(function: Function, call: ast.AST) -> str:
    """How the tensor is made, wherever it goes."""
    maker = maker_of(function, call)
    if maker is None:
        return ""
    given = sorted(f"{k.arg}={ast.unparse(k.value)}" for k in maker.keywords if k.arg != "device")
    return f"{ast.unparse(maker.func)}({', '.join([*map(ast.unparse, maker.args), *given])})"


def goes_to(function: Function, call: ast.Call) -> ast.expr | None:
    """The device that it is sent to; None where that is the one of CUDA that is chosen."""
    named = next((k.value for k in call.keywords if k.arg == "device"), None)
    return named or (call.args[0] if call.args and call is not maker_of(function, call) else None)


def moves(function: Function, call: ast.Call, first: ast.stmt) -> bool:
    """Whether what names the device of a call's tensor is bound anew between a statement and the call."""
    device = goes_to(function, call)
    names = {n.id for n in ast.walk(device) if isinstance(n, ast.Name)} if device is not None else set()
    return any(bound_between(function, name, first, call) for name in names)
