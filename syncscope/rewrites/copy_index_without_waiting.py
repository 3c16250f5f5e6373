"""`x[i]` with an index of the host as `x[i.to(x.device, non_blocking=True)]`."""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.listed import NO_LINE_SAYS, TAKEN_OVER, says_so
from syncscope.codemod.patterns.numbers import named
from syncscope.model.example import Example
from syncscope.model.fact import Device, Dtype, Site
from syncscope.model.finding import Drawback, Edit, Fix, Safety
from syncscope.project.syntax import each_of

TITLE = "copy the index while the host goes on"
CHANGES = (TAKEN_OVER, "one that is pinned must not be written before the copy is made")
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.cuda()
            order = torch.randperm(len(x))
            print(order)
            return x[order]  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.cuda()
            order = torch.randperm(len(x))
            print(order)
            return x[order.to(x.device, non_blocking=True)]
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        def targets(label: torch.Tensor, show):
            box = {"label": label.cuda()}
            order = torch.randperm(8)
            show(order)
            return box["label"][order]  # !
        """,
        """
        import torch

        def targets(label: torch.Tensor, show):
            box = {"label": label.cuda()}
            order = torch.randperm(8)
            show(order)
            return box["label"][order.to(box["label"].device, non_blocking=True)]
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        def mixed(x: torch.Tensor, y: torch.Tensor, weight: float, show):
            x, y = x.cuda(), y.cuda()
            order = torch.randperm(len(x))
            show(order)
            pairs = weight * x + (1 - weight) * x[order]  # !
            return pairs, y, y[order]  # !
        """,
        """
        import torch

        def mixed(x: torch.Tensor, y: torch.Tensor, weight: float, show):
            x, y = x.cuda(), y.cuda()
            order = torch.randperm(len(x))
            show(order)
            order = order.to(x.device, non_blocking=True)
            pairs = weight * x + (1 - weight) * x[order]
            return pairs, y, y[order]
        """,
        Safety.UNSAFE,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    taken, index = site.node, site.operand
    if index is None or site.fact_of(index).dtype is not Dtype.INT:
        return None  # of a mask the true elements would be looked for on the device
    if not isinstance(taken, ast.Subscript) or not (named(taken.value) or is_entry(taken.value)):
        return None
    sent = [part for part in each_of(taken.slice) if part is index or is_sent_too(site, part)]
    uses = {part.id: uses_of(function, site, part) for part in sent if isinstance(part, ast.Name)}
    often = {name: found for name, found in uses.items() if len(found) > 1}
    if often and len(often) == len(sent):
        first = min((found[0] for found in often.values()), key=lambda each: function.file.span(each))
        return function.once(f"send {', '.join(often)}", first, lambda: at_once(function, sorted(often), first))
    draft = Draft(function)
    for part in sent:
        draft.replace(part, "{i}.to({x}.device, non_blocking=True)", i=part, x=taken.value)
    root = taken.value.value if isinstance(taken.value, ast.Subscript) else taken.value
    of_loader = isinstance(root, ast.Name) and root.id == "batch"  # which most likely is on the host, too
    known = says_so(function)
    draft.drawbacks.add(Drawback.UNPINNED)
    return draft.fix(
        TITLE,
        Safety.UNSAFE if known and not of_loader else Safety.SUGGEST,
        "" if known else NO_LINE_SAYS,
        *CHANGES,
    )


def is_sent_too(site: Site, part: ast.expr) -> bool:
    """Whether this is another index of the host in the same subscript: one that is left would be waited for all the same."""
    fact = site.fact_of(part)
    return fact.is_tensor and fact.device is Device.HOST and fact.dtype is Dtype.INT and fact.ndim != 0


def uses_of(function: Function, site: Site, index: ast.Name) -> list[ast.Subscript]:
    """The tensors of one block that an index of the host is taken from, where it serves for nothing else from the first on."""
    statement = function.statement(site.node)
    block = function.block(statement) if statement is not None else []
    found = [
        s.node
        for s in function.sites
        if s.op is site.op
        and isinstance(s.node, ast.Subscript)
        and any(function.same_name(part, index) for part in each_of(s.node.slice))
    ]
    first = function.statement(found[0]) if found else None
    if (
        first is None
        or first not in block
        or not all(named(u.value) and function.loop(u) is function.loop(first) for u in found)
    ):
        return []
    start, loop, names = function.file.span(first).start, function.loop(first), function.names(index.id)
    anew = any(loop in [*function.around(n)] and function.file.span(n).start < start for n in function.binds(index.id))
    # it comes round again
    again = [n for n in names if loop is not None and loop in [*function.around(n)] and not anew]
    rest = [n for n in names if function.file.span(n).start >= start or n in again]
    return found if len(rest) == len(found) and all(isinstance(n.ctx, ast.Load) for n in rest) else []


def at_once(function: Function, names: list[str], first: ast.Subscript) -> Fix | None:
    """The fix for all that indices are taken from: each is sent once, before the first."""
    statement = function.statement(first)
    assert statement is not None
    draft = Draft(function)
    for name in names:
        draft.insert_before(statement, f"{name} = {name}.to({{x}}.device, non_blocking=True)", x=first.value)
    draft.edits = [Edit(draft.edits[0].span, "".join(edit.text for edit in draft.edits))]
    one = function.file.text(first.value)
    draft.drawbacks.add(Drawback.UNPINNED)
    return draft.fix(TITLE, Safety.UNSAFE, f"all must live on the device of {one}", *CHANGES)


def is_entry(node: ast.expr) -> bool:
    """Whether this is an entry of a dict that has a name, `target["boxes"]`: written twice, it is not computed twice."""
    match node:
        case ast.Subscript(value=held, slice=ast.Constant(value=str())):
            return named(held)
    return False
