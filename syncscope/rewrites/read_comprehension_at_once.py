"""`sum(p.grad.norm().item() ** 2 for p in ps)`: the tensors are computed first, and all of them are read at once."""

from __future__ import annotations

import ast

from syncscope.codemod.attributes import PLAIN_CALLS
from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.joined import all_at_once
from syncscope.codemod.patterns.reads import FLOATS, by_float, number_of
from syncscope.codemod.whereabouts import cannot_be_joined, made_on_host
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Edit, Fix, Safety, Stays, Way
from syncscope.model.source import Span
from syncscope.project.syntax import walk

STAYS = Stays.LAST
WAY = Way.LISTS

EXAMPLES = (
    Example(
        """
        import torch
        from torch import nn

        def norm_of_gradients(model: nn.Module):
            return sum(p.grad.norm().item() ** 2 for p in model.parameters() if p.grad is not None) ** 0.5  # !
        """,
        """
        import torch
        from torch import nn

        def norm_of_gradients(model: nn.Module):
            return sum(
                value ** 2 for value in torch.stack([p.grad.norm() for p in model.parameters() if p.grad is not None]).tolist()
            ) ** 0.5
        """,
        Safety.UNSAFE,
        rule="host-read",
    ),
    Example(
        """
        import math

        import torch

        def spread(x: torch.Tensor):
            return math.sqrt(sum((row.max() - row.min()).item() ** 2 for row in x.split(2)))  # !
        """,
        """
        import math

        import torch

        def spread(x: torch.Tensor):
            return math.sqrt(sum(value ** 2 for value in torch.stack([row.max() - row.min() for row in x.split(2)]).tolist()))
        """,
        Safety.UNSAFE,
        "x: finite[n + 1, m + 1]",
        rule="host-read",
    ),
    Example(
        """
        import torch

        def norms(parts: dict[str, torch.Tensor]):
            largest = max(float(x.square().mean()) for x in parts.values())  # !
            return largest, [round(x.abs().max().item(), 3) for x in parts.values()]  # !
        """,
        """
        import torch

        def norms(parts: dict[str, torch.Tensor]):
            largest = max(torch.stack([x.square().mean() for x in parts.values()]).tolist())
            return largest, [round(value, 3) for value in torch.stack([x.abs().max() for x in parts.values()]).tolist()]
        """,
        Safety.UNSAFE,
        rule="host-read",
    ),
    Example(
        """
        import torch
        from torch import nn

        def norms(model: nn.Module):
            return {name: p.grad.norm().item() for name, p in model.named_parameters()}  # !
        """,
        """
        import torch
        from torch import nn

        def norms(model: nn.Module):
            values = {name: p.grad.norm() for name, p in model.named_parameters()}
            return dict(zip(values, torch.stack(tuple(values.values())).tolist()))
        """,
        Safety.UNSAFE,
        rule="host-read",
    ),
    Example(
        """
        import torch

        def norms(tensors: list[torch.Tensor], found):
            largest: dict[torch.device, torch.Tensor] = {}
            for x in tensors:
                largest[x.device] = x.abs().max()
            print(sum(x.square().sum().item() for x in found._per_device_tensors.values()))  # !
            return sum(x.square().item() for x in largest.values())  # !
        """,
        rule="host-read",
    ),
)

Listed = ast.ListComp | ast.SetComp | ast.GeneratorExp
TAKES_ALL = {"sum", "max", "min", "tuple", "list", "set", "sorted", "math.fsum", "statistics.mean", "statistics.fmean"}
"""What takes all that a generator gives before anything else happens."""
NAMED = (ast.Name, ast.Attribute)
PLAIN = (ast.BinOp, ast.UnaryOp, ast.Constant, ast.Name, ast.operator, ast.unaryop, ast.expr_context)


def rewrite(site: Site, function: Function) -> Fix | None:
    tensor, read = number_of(function, site.node)
    loop = next((n for n in function.around(read) if isinstance(n, (Listed, ast.DictComp, ast.stmt))), None)
    if tensor is None or not isinstance(read, ast.expr) or not isinstance(loop, (Listed, ast.DictComp)):
        return None
    ndim = function.fact(tensor).ndim
    bound = {n.id for g in loop.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
    in_pass = any(isinstance(n, ast.Name) and n.id in bound for n in ast.walk(tensor))
    if not in_pass or ndim not in (0, None) or waits_beside(function, loop, read):
        return None
    through = (n for g in loop.generators for n in ast.walk(g.iter))
    if made_on_host(function, tensor) or any(cannot_be_joined(function, n) for n in through if isinstance(n, NAMED)):
        return None
    join, read_all, changes = all_at_once(ndim)
    draft = Draft(function)
    if isinstance(loop, ast.DictComp):
        fits = by_name(draft, loop, read, tensor, join, read_all)
    else:
        fits = listed(draft, loop, read, tensor, join, read_all, bound)
    if not fits:
        return None
    return draft.fix("compute all, then read all at once", Safety.UNSAFE, changes, FLOATS * by_float(function, read))


def waits_beside(function: Function, loop: Listed | ast.DictComp, read: ast.expr) -> bool:
    """Whether a pass of a comprehension waits for something else, too, or for what is not computed at once."""
    statement, own, inside = function.statement(loop), set(ast.walk(read)), set(ast.walk(loop))
    sites = function.sites_in(statement) if statement is not None else []
    return any(g.is_async for g in loop.generators) or any(s.node in inside and s.node not in own for s in sites)


def listed(
    draft: Draft, loop: Listed, read: ast.expr, tensor: ast.expr, join: str, read_all: str, bound: set[str]
) -> bool:
    """Put what is computed into a list that is read at once, where what is made of each number is made of that alone."""
    function, file, outer = draft.function, draft.file, draft.function.parent(loop)
    alone = isinstance(outer, ast.Call) and [*outer.args, *outer.keywords] == [loop]
    if isinstance(loop, ast.GeneratorExp):
        taken = function.dotted(outer.func) if isinstance(outer, ast.Call) and loop in outer.args else None
        if taken not in TAKES_ALL:
            return False
    own = set(ast.walk(read))
    if not all(n in own or is_plain(function, n, bound) for n in ast.walk(loop.elt)):
        return False
    span, element, computed = file.span(loop), file.span(loop.elt), draft.code("{t}", t=tensor)
    join, end = draft.code(join), Span(span.end - 1, span.end - 1)
    if loop.elt is read and isinstance(loop, ast.ListComp):
        draft.replace(read, "{t}", t=tensor)
        draft.edits += [Edit(Span(span.start, span.start), f"{join}("), Edit(Span(span.end, span.end), f"){read_all}")]
    elif loop.elt is read and alone and not file.code[span.start + 1 : element.start].strip():
        draft.edits += [Edit(element, f"{join}([{computed}"), Edit(end, f"]){read_all}")]
    else:
        name = function.fresh("value")
        first = element.end + file.code[element.end : file.span(loop.generators[0].target).start].rindex(b"for")
        draft.replace(read, name)
        draft.edits += [Edit(Span(first, first), f"for {name} in {join}([{computed} "), Edit(end, f"]){read_all}")]
    return True


def is_plain(function: Function, node: ast.AST, bound: set[str]) -> bool:
    """Whether a part of what is made of a number is arithmetic, without what the pass has besides."""
    if isinstance(node, ast.Call):
        return function.dotted(node.func) in PLAIN_CALLS or (function.dotted(node.func) or "").startswith("math.")
    if isinstance(node, ast.Attribute):
        return (function.dotted(node) or "").startswith("math.")
    return isinstance(node, PLAIN) and not (isinstance(node, ast.Name) and node.id in bound)


def by_name(draft: Draft, loop: ast.DictComp, read: ast.expr, tensor: ast.expr, join: str, read_all: str) -> bool:
    """Compute the tensors into a dict before the statement, and read all that it holds."""
    function, statement = draft.function, draft.function.statement(loop)
    if statement is None or loop.value is not read or not function.runs_first(statement, loop):
        return False
    begin = draft.file.span(loop).start
    before = (n for n in walk(statement) if isinstance(n, ast.Call) and draft.file.span(n).end <= begin)
    if function.indent(statement).strip() or not all(map(function.pure, before)):
        return False
    name = function.fresh("values")
    draft.insert_before(statement, f"{name} = {{d}}", d=draft.swapped(loop, {read: tensor}))
    draft.replace(loop, f"dict(zip({name}, {join}(tuple({name}.values())){read_all}))")
    return True
