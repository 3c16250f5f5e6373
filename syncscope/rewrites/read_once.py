"""`print(loss.item()); log(loss.item())`: one tensor that is read several times is read once, and has a name."""

from __future__ import annotations

import ast
from collections import defaultdict

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.joined import names_for
from syncscope.codemod.patterns.reads import tensor_read
from syncscope.codemod.sharing import roots
from syncscope.codemod.writes import disturbed, exposed
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety, Stays
from syncscope.model.ops import Op
from syncscope.rewrites import add_up_on_device, collect_on_device, read_where_used, tried

STAYS = Stays.FIRST

BETTER = (add_up_on_device, collect_on_device, read_where_used)  # after which a read is not made at all
EXAMPLES = (
    Example(
        """
        import torch

        def watch(x: torch.Tensor):
            seen = []
            loss = x.sigmoid().mean()
            seen.append(loss.item())  # !
            seen.append(f"{loss.item():.3f}")  # !
            return loss.item() > 0.5, seen  # !
        """,
        """
        import torch

        def watch(x: torch.Tensor):
            seen = []
            loss = x.sigmoid().mean()
            loss_value = loss.item()
            seen.append(loss_value)
            seen.append(f"{loss_value:.3f}")
            return loss_value > 0.5, seen
        """,
        Safety.SAFE,
        "x: float[n]",
    ),
    Example(
        """
        import torch

        def spread(x: torch.Tensor, y: torch.Tensor):
            worst = (x * y).max()
            value = worst.item()  # !
            return value, worst.item() * 2  # !
        """,
        """
        import torch

        def spread(x: torch.Tensor, y: torch.Tensor):
            worst = (x * y).max()
            value = worst.item()
            return value, value * 2
        """,
        Safety.SAFE,
        "x: float[n]; y: float[n]",
    ),
    Example(
        """
        import torch

        def step(criterion, x: torch.Tensor, y: torch.Tensor, log):
            loss = criterion(x, y)
            loss.backward()
            log("loss", loss.item())  # !
            return loss.item()  # !
        """,
        """
        import torch

        def step(criterion, x: torch.Tensor, y: torch.Tensor, log):
            loss = criterion(x, y)
            loss.backward()
            loss_value = loss.item()
            log("loss", loss_value)
            return loss_value
        """,
        Safety.UNSAFE,
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    tensor = tensor_read(function, site.node)
    if not isinstance(tensor, ast.Name) or isinstance(function.scope, ast.Module):
        return None
    return function.once(f"read once {ast.unparse(site.node)}", function.scope, lambda: of_name(function, site, tensor))


def by_text(function: Function) -> dict[tuple[Op, str], list[Site]]:
    """The sites of a function by what they do, and how they are written."""
    found: dict[tuple[Op, str], list[Site]] = defaultdict(list)
    for each in function.sites:
        found[each.op, ast.dump(each.node)].append(each)
    return found


def of_name(function: Function, site: Site, tensor: ast.Name) -> Fix | None:
    """The fix for all reads of what a name holds that are written as this one is."""
    definition = function.reaching_definition(tensor)
    reads = function.once("sites by text", function.scope, lambda: by_text(function))[site.op, ast.dump(site.node)]
    nodes = [s.node for s in reads if isinstance(s.node, ast.Call) and s.node.end_lineno is not None]
    if any(s.hot for s in reads) and sum(s.hot for s in reads) < 2:
        return None  # the one that every step makes stays
    if len(nodes) < 2 or definition is None or function.captured(tensor.id):
        return None
    first = nodes[0]
    statement = function.statement(first)
    if statement is None or not function.runs_first(statement, first) or function.indent(statement).strip():
        return None
    block = function.block(statement)
    for node in nodes[1:]:
        read = tensor_read(function, node)
        if (
            read is None
            or function.reaching_definition(read) is not definition
            or stands(node, block, function) is None
        ):
            return None
    moved = not (isinstance(statement, ast.Assign) and statement.value is first)
    if disturbed(function, tensor.id, statement if moved else first, nodes[-1], within=moved):
        return None
    if all(any(is_better(tried(way, each, function)) for way in BETTER) for each in reads):
        return None
    draft = Draft(function)
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is first:
            if len(function.binds(name)) != 1 or function.captured(name):
                return None
            rest = nodes[1:]
        case _:
            (name,), rest = names_for(function, [first]), nodes
            draft.insert_before(statement, f"{name} = {{read}}", read=first)
    for node in rest:
        draft.replace(node, name)
    title = f"read {tensor.id} once, not {len(nodes)} times"
    lent = exposed(function, tensor.id, statement, nodes[-1])
    if lent and isinstance(made := definition.value, ast.Call) and function.dotted(made.func) == "torch.nn.Parameter":
        return None  # an optimizer's step between the reads is what it is for
    if not lent and not roots(function, definition.value):
        return draft.fix(title, Safety.SAFE)
    return draft.fix(title, Safety.UNSAFE, f"nothing may write what {tensor.id} holds between the reads")


def is_better(fix: Fix | None) -> bool:
    """Whether a read is mended otherwise, by what can be made of it without a look elsewhere."""
    return fix is not None and fix.safety is not Safety.SUGGEST


def stands(node: ast.expr, block: list[ast.stmt], function: Function) -> ast.stmt | None:
    """The statement of a block in which a node stands, however deep."""
    around = {id(n) for n in (node, *function.around(node))}
    return next((s for s in block if id(s) in around), None)
