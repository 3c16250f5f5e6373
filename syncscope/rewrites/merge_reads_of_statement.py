"""`log(x.item(), y.item())`: the numbers of one statement are read together before it, those that are named earlier too."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.patterns.asked import asks_for_any
from syncscope.codemod.patterns.joined import Joined, joined, names_for, once_each, put_before
from syncscope.codemod.patterns.reads import by_float, by_int, converted, detached, number_read, reads_of
from syncscope.codemod.writes import disturbed, lent_before, written_in
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Edit, Fix, Safety, Stays, Way
from syncscope.model.source import Span

STAYS = Stays.LAST
WAY = Way.JOINS

ELSEWHERE = (ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp, ast.Yield, ast.YieldFrom, ast.Await)
SIMPLE = (ast.Expr, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign)
REDUCTIONS = {"mean", "sum", "norm", "max", "min", "std", "var", "prod", "amax", "amin", "median"}
EXAMPLES = (
    Example(
        """
        import torch

        def overlap(x: torch.Tensor, y: torch.Tensor, n: int):
            low, high = x.min(), y.max()
            start = max(1, low.item() - n + high.item())  # !
            end = min(low.item(), high.item()) + 1  # !
            return start, end
        """,
        """
        import torch

        def overlap(x: torch.Tensor, y: torch.Tensor, n: int):
            low, high = x.min(), y.max()
            low_value, high_value = torch.stack((low, high)).tolist()
            start = max(1, low_value - n + high_value)
            end = min(low_value, high_value) + 1
            return start, end
        """,
        Safety.SUGGEST,
        "x: float[n]; y: float[n]; n: count",
    ),
    Example(
        """
        import torch

        def watch(x: torch.Tensor):
            loss, norm = x.sigmoid().mean(), x.float().norm()
            return {"loss": loss.item(), "norm": norm.item() / 2}  # !
        """,
        """
        import torch

        def watch(x: torch.Tensor):
            loss, norm = x.sigmoid().mean(), x.float().norm()
            loss_value, norm_value = torch.stack((loss, norm)).tolist()
            return {"loss": loss_value, "norm": norm_value / 2}
        """,
        Safety.SUGGEST,
        "x: finite[n]",
    ),
    Example(
        """
        import torch

        def watch(x: torch.Tensor):
            size = x.float().abs()
            return {"mean": size.mean().item(), "worst": size.max().item()}  # !
        """,
        """
        import torch

        def watch(x: torch.Tensor):
            size = x.float().abs()
            mean_value, worst_value = torch.stack((size.mean(), size.max())).tolist()
            return {"mean": mean_value, "worst": worst_value}
        """,
        Safety.SAFE,
        "x: float[n, m]",
    ),
    Example(
        """
        import torch

        def watch(x: torch.Tensor, y: torch.Tensor, value: int):
            return x.mean().item(), y.mean().item(), y.mean().item() + value  # !
        """,
        """
        import torch

        def watch(x: torch.Tensor, y: torch.Tensor, value: int):
            x_mean, y_mean = torch.stack((x.mean(), y.mean())).tolist()
            return x_mean, y_mean, y_mean + value
        """,
        Safety.SUGGEST,
        "x: finite[n]; y: finite[n]; value: count",
    ),
    Example(
        """
        import torch

        def accuracy(best: torch.Tensor, label: torch.Tensor, mask: torch.Tensor):
            right = best == label
            return int((right & mask).sum()) / int(mask.sum())  # !
        """,
        """
        import torch

        def accuracy(best: torch.Tensor, label: torch.Tensor, mask: torch.Tensor):
            right = best == label
            sum_value, mask_sum = torch.stack(((right & mask).sum(), mask.sum())).tolist()
            return sum_value / int(mask_sum)
        """,
        Safety.SUGGEST,
        "best: label[n] < 3; label: label[n] < 3; mask: bool[n]",
    ),
    Example(
        """
        import torch
        from torch import nn

        def train(model: nn.Module, criterion: nn.Module, optimizer, loader, bar):
            for step, (x, y) in enumerate(loader):
                output = model(x)
                loss = criterion(output, y)
                loss.backward()
                before = output.mean().item()  # !
                optimizer.step()
                output = model(x)
                after = output.mean().item()  # !
                bar.write(f"{step}: loss {loss.item():.3f}, scores {before:.3f}, then {after:.3f}")  # !
        """,
        """
        import torch
        from torch import nn

        def train(model: nn.Module, criterion: nn.Module, optimizer, loader, bar):
            for step, (x, y) in enumerate(loader):
                output = model(x)
                loss = criterion(output, y)
                loss.backward()
                before = output.mean().detach()
                optimizer.step()
                output = model(x)
                after = output.mean().detach()
                loss_value, before, after = torch.hstack((loss, before, after)).flatten().tolist()
                bar.write(f"{step}: loss {loss_value:.3f}, scores {before:.3f}, then {after:.3f}")
        """,
        Safety.UNSAFE,
        "model: model; criterion: criterion; optimizer: optimizer; loader: loader; bar: bar",
    ),
    Example(
        """
        import torch

        def history(x: torch.Tensor, steps: int):
            seen = []
            for step in range(steps):
                size = (x * step).square().mean().item()  # !
                x = x.cos()
                if step % 2:
                    seen.append(size)
            return seen
        """,
        """
        import torch

        def history(x: torch.Tensor, steps: int):
            seen = []
            for step in range(steps):
                size = (x * step).square().mean().detach()
                x = x.cos()
                if step % 2:
                    size = size.item()
                    seen.append(size)
            return seen
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]; steps: count",
    ),
)


class Named(NamedTuple):
    """`name = t.item()` whose name is used in one later statement only."""

    statement: ast.Assign
    name: ast.Name
    tensor: ast.expr


def rewrite(site: Site, function: Function) -> Fix | None:
    named = only_for(site, function)
    statement = named[1] if named is not None else function.statement(site.node)
    if not isinstance(statement, SIMPLE) or function.indent(statement).strip():
        return None
    if isinstance(function.block(statement)[-1], ast.Raise):  # the program ends here: nothing is gained
        return None
    found = function.once("in statement", statement, lambda: of_statement(function, statement))
    return found[1] if found is not None and site.node in found[0] else None


def of_statement(function: Function, statement: ast.stmt) -> tuple[list[ast.expr], Fix] | None:
    """The reads that serve a statement, and the fix that makes one of them."""
    sites = (s.node for s in function.sites_in(statement) if isinstance(s.node, ast.Call))
    reads = [read for read in sites if number_read(function, read) is not None]
    before = named_for(function, statement)
    every = [*reads, *(b.statement.value for b in before)]
    elsewhere = bool(before) and function.block(statement) is not function.block(before[0].statement)
    if len(every) < 2 and not elsewhere:
        return None
    reading = joined(function, reads, [(b.name.id, b.tensor) for b in before])
    once = once_each(function, reads)  # what stands twice is read once
    tensors = [t for r in once if (t := number_read(function, r)) is not None]
    if why := (
        ("nothing joins all the numbers that it reads" if reading is None else "")
        or _read_in_turn(function, statement, reads)
        or _of_one(tensors, before)
        or _writes_too(function, statement, tensors)
    ):
        for node in every:
            function.declines(node, why)
        return None
    assert reading is not None
    names = names_for(function, once)
    called = dict(zip(map(ast.unparse, tensors), names, strict=True))
    more = [] if before else again(function, statement, reads, called)
    if not before and not more and (row := in_a_row(function, reads)) is not None:
        return every, starred(function, row, reading, len(reads))
    draft = Draft(function)
    for b in before:
        draft.replace(b.statement.value, "{t}.detach()", t=detached(function, b.tensor))
    kept = [b.name.id for b in before]
    if not tensors and len(kept) == 1:
        draft.insert_before(statement, f"{kept[0]} = {kept[0]}.item()")
    else:
        put_before(draft, statement, [*names, *kept], reading)
    for read in (*reads, *more):
        name = called[ast.unparse(number_read(function, read) or read)]
        draft.replace(converted(function, read), f"int({name})" if by_int(function, read) else name)
    if len(names) + len(kept) > 1:
        title = f"read {len(names) + len(kept)} numbers at once"
        return [*every, *more], draft.fix(title, reading.safety, *reading.changes)
    return later(function, draft, statement, kept[0], every)


def later(
    function: Function, draft: Draft, statement: ast.stmt, name: str, every: list[ast.expr]
) -> tuple[list[ast.expr], Fix] | None:
    """The one read that a statement is made for, made there: not in an arm that asks whether there is anything."""
    arm = function.parent(statement)
    if isinstance(arm, ast.If) and asks_for_any(arm.test):
        return function.declines(every[0], "the arm that takes the number is run most often")
    return every, draft.fix(f"read {name} where it is used", Safety.UNSAFE, f"{name} is a tensor until then")


def starred(function: Function, row: Sequence[ast.expr], reading: Joined, count: int) -> Fix:
    """The fix of reads that stand one after another: `f(*torch.stack((a, b)).tolist())`."""
    draft, file, holder = Draft(function), function.file, function.parent(row[0])
    code = draft.code(reading.code, **reading.parts)
    draft.dense |= reading.dense_in(draft)
    if isinstance(holder, ast.Tuple) and len(holder.elts) == len(row):
        draft.edits.append(Edit(file.span(holder), f"tuple({code})"))
    else:
        draft.edits.append(Edit(Span(file.span(row[0]).start, file.span(row[-1]).end), f"*{code}"))
    return draft.fix(f"read {count} numbers at once", reading.safety, *reading.changes)


def _read_in_turn(function: Function, statement: ast.stmt, reads: Sequence[ast.expr]) -> str:
    """Why a read cannot be made before its statement; "" where all can."""
    for read in reads:
        if not function.runs_first(statement, read):
            return f"something else of the statement runs before {function.file.quote(read)}"
        if not function.pure(number_read(function, read) or read):
            return f"{function.file.quote(read)} cannot be made at another place"
    return ""


def _writes_too(function: Function, statement: ast.stmt, tensors: list[ast.expr]) -> str:
    return "it writes what it reads" if written_in(function, statement, tensors) else ""


def _of_one(tensors: Sequence[ast.expr], before: Sequence[Named]) -> str:
    """Why there is only one number to read; "" where there are several."""
    different = {*map(ast.unparse, tensors), *(ast.unparse(b.tensor) for b in before)}
    return "all are reads of one tensor" if tensors and len(different) < 2 else ""


def in_a_row(function: Function, reads: Sequence[ast.expr]) -> Sequence[ast.expr] | None:
    """The reads, where they stand one after another as arguments of a call or in a tuple: then `*numbers` can."""
    holder = function.parent(reads[0])
    match holder:
        case ast.Call(args=given) | ast.Tuple(elts=given, ctx=ast.Load()):
            pass
        case _:
            return None
    at = next((n for n, each in enumerate(given) if each is reads[0]), None)
    tensors = {ast.unparse(number_read(function, r) or r) for r in reads}
    apart = len(tensors) == len(reads) and not any(by_int(function, r) for r in reads)
    whole = isinstance(holder, ast.Tuple) and len(holder.elts) == len(reads)
    fits = at is not None and (len(reads) > 2 or whole) and all(a is b for a, b in zip(given[at:], reads, strict=False))
    bracketed = isinstance(holder, ast.Call) or function.file.text(holder).startswith("(")
    return reads if fits and apart and bracketed and len(given) >= (at or 0) + len(reads) else None


def again(function: Function, statement: ast.stmt, reads: Sequence[ast.expr], called: dict[str, str]) -> list[ast.expr]:
    """The reads of statements right after this one that are of the same tensors, while these surely hold the same."""
    found: list[ast.expr] = []
    block = function.block(statement)
    names = {n.id for r in reads for n in ast.walk(r) if isinstance(n, ast.Name)}
    if not only_computes(function, statement) or not all(map(function.pure, reads)):
        return []
    for later in block[block.index(statement) + 1 :]:
        if not only_computes(function, later):
            break
        here = [s.node for s in function.sites_in(later) if isinstance(s.node, ast.Call)]
        same = [n for n in here if (t := number_read(function, n)) is not None and ast.unparse(t) in called]
        if any(disturbed(function, name, statement, same[-1] if same else later, within=True) for name in names):
            break
        if len(same) > 1 and all(map(function.pure, same)) and not any(by_float(function, n) for n in same):
            found += same
    return found


def only_computes(function: Function, statement: ast.stmt) -> bool:
    """Whether a statement runs no code of others, and nothing later or elsewhere."""
    calls = (n for n in ast.walk(statement) if isinstance(n, ast.Call))
    quiet = all(function.pure_call(c) or function.dotted(c.func) in ("max", "min") for c in calls)
    return isinstance(statement, SIMPLE) and quiet and not any(isinstance(n, ELSEWHERE) for n in ast.walk(statement))


def only_for(site: Site, function: Function) -> tuple[Named, ast.stmt] | None:
    """A read that is named, for one later statement: with that statement."""
    assign = function.parent(site.node)
    pairs = reads_of(function, assign) if isinstance(assign, ast.Assign) and assign.value is site.node else []
    if len(pairs) != 1 or not isinstance(assign, ast.Assign):
        return None
    name, tensor = pairs[0]
    uses = function.seen_by(assign)
    statements = {id(s): s for use in uses if (s := function.statement(use)) is not None}
    if len(statements) != 1:
        return None
    later = next(iter(statements.values()))
    inside = function.beside(assign, later)
    if inside is None or inside is assign or function.loop(later) is not function.loop(assign):
        return None
    if any(not isinstance(n, ast.If) for n in function.around(later) if n in ast.walk(inside)):
        return None
    op = function.op(tensor)
    shared = op is None or op.name not in REDUCTIONS  # its memory may be that of a tensor that is written until then
    if shared and lent_before(function, tensor, assign, later):
        return None
    if shared and any(disturbed(function, n.id, assign, later) for n in ast.walk(tensor) if isinstance(n, ast.Name)):
        return None
    return Named(assign, name, tensor), later


def named_for(function: Function, statement: ast.stmt) -> list[Named]:
    """The reads before a statement that are named and serve it only, in order."""
    found: dict[str, Named] = {}
    for use in (n for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)):
        made = function.reaching_definition(use)
        site = next((s for s in function.sites_in(made) if s.node is made.value), None) if made is not None else None
        if site is not None and (named := only_for(site, function)) is not None and named[1] is statement:
            found.setdefault(use.id, named[0])
    return sorted(found.values(), key=lambda n: n.statement.lineno)
