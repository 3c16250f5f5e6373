"""`print(loss.item()); log(loss.item())`: one tensor that is read several times is read once, and has a name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Sequence

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.joined import names_for
from syncscope.codemod.patterns.reads import tensor_read
from syncscope.codemod.sharing import roots
from syncscope.codemod.writes import disturbed, exposed
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Fix, Safety, Stays, Way
from syncscope.model.ops import Op
from syncscope.rewrites import add_up_on_device, collect_on_device, read_where_used, tried

STAYS = Stays.FIRST
WAY = Way.READS_ONCE

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
    if len(nodes) < 2 or definition is None or function.captured(tensor.id):
        return None
    statement = function.statement(nodes[0])
    if statement is None:
        return None
    if why := (
        _seldom(reads)
        or _not_first(function, statement, nodes[0])
        or _not_the_same(function, statement, nodes, definition)
        or _written_between(function, statement, nodes, definition, tensor.id)
        or _better_each(function, reads)
    ):
        return function.declines(site.node, why)
    draft = Draft(function)
    if named_by(statement, nodes[0]):
        assert isinstance(statement, ast.Assign)
        name, rest = function.file.text(statement.targets[0]), nodes[1:]
        if len(function.binds(name)) != 1 or function.captured(name):
            return function.declines(site.node, f"`{name}` is bound elsewhere, too")
    else:
        (name,), rest = names_for(function, nodes[:1]), nodes
        draft.insert_before(statement, f"{name} = {{read}}", read=nodes[0])
    for node in rest:
        draft.replace(node, name)
    title = f"read {tensor.id} once, not {len(nodes)} times"
    if not exposed(function, tensor.id, statement, nodes[-1]) and not roots(function, definition.value):
        return draft.fix(title, Safety.SAFE)
    return draft.fix(title, Safety.UNSAFE, f"nothing may write what {tensor.id} holds between the reads")


def named_by(statement: ast.stmt, read: ast.Call) -> bool:
    """Whether a statement gives a read a name, and does no more."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=value):
            return value is read
    return False


def _seldom(reads: Sequence[Site]) -> str:
    hot = sum(s.hot for s in reads)
    return "the one read that every step makes stays" if hot == 1 else ""


def _not_first(function: Function, statement: ast.stmt, read: ast.Call) -> str:
    first = function.runs_first(statement, read) and not function.indent(statement).strip()
    return "" if first else "something else of its statement runs before it is read"


def _not_the_same(function: Function, statement: ast.stmt, nodes: Sequence[ast.Call], definition: ast.Assign) -> str:
    """Why a later read may be of another tensor, or be made where the first is not; "" where none is."""
    block = function.block(statement)
    for node in nodes[1:]:
        read = tensor_read(function, node)
        same = read is not None and function.reaching_definition(read) is definition
        if not same or stands(node, block, function) is None:
            return f"line {node.lineno} may read another tensor"
    return ""


def _written_between(
    function: Function, statement: ast.stmt, nodes: Sequence[ast.Call], definition: ast.Assign, name: str
) -> str:
    """Why a later read may give another number; "" where it does not."""
    moved = not named_by(statement, nodes[0])
    if disturbed(function, name, statement if moved else nodes[0], nodes[-1], within=moved):
        return f"`{name}` may be written between the reads"
    made = definition.value
    learnt = isinstance(made, ast.Call) and function.dotted(made.func) == "torch.nn.Parameter"
    if learnt and exposed(function, name, statement, nodes[-1]):
        return f"`{name}` is a parameter, which an optimizer's step may write between the reads"
    return ""


def _better_each(function: Function, reads: Sequence[Site]) -> str:
    """Why each of the reads is mended by itself; "" where one is not."""
    each = all(any(is_better(tried(way, read, function)) for way in BETTER) for read in reads)
    return "each of the reads can be left out" if each else ""


def is_better(fix: Fix | None) -> bool:
    """Whether a read is mended otherwise, by what can be made of it without a look elsewhere."""
    return fix is not None and fix.safety is not Safety.SUGGEST


def stands(node: ast.expr, block: list[ast.stmt], function: Function) -> ast.stmt | None:
    """The statement of a block in which a node stands, however deep."""
    around = {id(n) for n in (node, *function.around(node))}
    return next((s for s in block if id(s) in around), None)
