"""`for c in ...: if nothing_of(c): continue; total += f(c)` with `total += torch.where(kept, f(c), 0.0)` in every pass.

It waits for dice losses that leave out absent classes, `if onehot[:, c].sum() == 0: continue`, as scripts of segmentation write
them; the same question in Lovász losses (torchseg, mmsegmentation) ends in a list of losses, and is not seen.
"""

from __future__ import annotations

import ast

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.conditions import decided_by, holes, predicate
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Adds, Fix, Safety

ADDS = Adds.BRANCHES
BOUNDED = ("{x}.clamp(min={c})", "{x}.clamp_min({c})", "torch.maximum({x}, {c})")
ALL = (
    "every pass is computed, also one that was left out, and must not raise an error there; NaN or inf in the gradient of one "
    "comes through"
)
EXAMPLES = (
    Example(
        """
        import torch

        def dice(probability: torch.Tensor, label: torch.Tensor, classes: int, eps: float = 1e-6):
            total, count = 0.0, 0
            for c in range(classes):
                if label[:, c].sum() == 0:  # !
                    continue
                both = (probability[:, c] * label[:, c]).sum()
                total += 1 - (2 * both + eps) / (probability[:, c].sum() + label[:, c].sum() + eps)
                count += 1
            return total / count
        """,
        """
        import torch

        def dice(probability: torch.Tensor, label: torch.Tensor, classes: int, eps: float = 1e-6):
            total, count = 0.0, 0
            for c in range(classes):
                kept = label[:, c].sum() != 0
                both = (probability[:, c] * label[:, c]).sum()
                total += torch.where(kept, 1 - (2 * both + eps) / (probability[:, c].sum() + label[:, c].sum() + eps), 0.0)
                count += kept
            return total / count
        """,
        Safety.UNSAFE,
    ),
    Example(
        """
        import torch

        def spread(x: torch.Tensor, member: torch.Tensor):
            total = x.new_zeros(())
            for own in member.t():
                if not own.any():  # !
                    continue
                total += (x * own).sum() / own.sum()
            return total
        """,
        """
        import torch

        def spread(x: torch.Tensor, member: torch.Tensor):
            total = x.new_zeros(())
            for own in member.t():
                kept = own.any()
                total += torch.where(kept, (x * own).sum() / own.sum(), 0.0)
            return total
        """,
        Safety.SUGGEST,
    ),
    Example(
        """
        import torch

        def dice(probability: torch.Tensor, label: torch.BoolTensor, classes: int):
            total = 0.0
            for c in range(classes):
                if not label[:, c].any():  # !
                    continue
                own = label[:, c].float()
                total += 2 * (probability[:, c] * own).sum() / (own.sum() + 1)
            return total
        """,
        """
        import torch

        def dice(probability: torch.Tensor, label: torch.BoolTensor, classes: int):
            total = 0.0
            for c in range(classes):
                kept = label[:, c].any()
                own = label[:, c].float()
                total += torch.where(kept, 2 * (probability[:, c] * own).sum() / (own.sum() + 1), 0.0)
            return total
        """,
        Safety.UNSAFE,
        "probability: finite[n, 5]; label: bool[n, 5]; classes: count",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    asked = decided_by(site, function)
    loop = function.parent(asked) if asked is not None else None
    if asked is None or not isinstance(loop, ast.For) or asked not in loop.body or asked.orelse:
        return None
    if [type(s) for s in asked.body] != [ast.Continue]:
        return None
    rest = loop.body[loop.body.index(asked) + 1 :]
    added = [s for s in rest if isinstance(s, ast.AugAssign)]
    counts = [s for s in added if function.constant(s.value) is not None]
    sums = [s for s in added if s not in counts]
    kept = kept_where(function, asked.test)
    if (
        why := _does_more(function, rest, loop)
        or _adds_no_tensor(function, sums)
        or _read_elsewhere(function, counts, loop)
    ):
        return function.declines(site.node, why)
    if kept is None:
        return function.declines(site.node, "the opposite of the condition is no bool tensor")
    draft, name = Draft(function), function.fresh("kept")
    draft.replace(asked, f"{name} = {kept}", **holes(asked.test))
    for s in sums:
        draft.replace(s.value, f"torch.where({name}, {{v}}, 0.0)", v=s.value)
    for s in counts:
        draft.replace(s.value, name if function.constant(s.value) == 1 else f"{{n}} * {name}", n=s.value)
    changes = [ALL]
    if counts:
        listed = ", ".join(function.file.text(s.target) for s in counts)
        changes.append(f"{listed} is a tensor that stays on the device, and 0 where nothing was kept divides to NaN")
    risky = any(may_divide_by_zero(function, n) for s in rest for n in ast.walk(s))
    if risky:
        changes.insert(0, "a division by zero has a gradient of NaN: divide by torch.where(d != 0, d, 1)")
    return draft.fix("compute every pass, and choose", Safety.SUGGEST if risky else Safety.UNSAFE, "; ".join(changes))


def _does_more(function: Function, rest: list[ast.stmt], loop: ast.For) -> str:
    """Why the rest of a pass cannot run where it was left out; "" where it can."""
    other = next((s for s in rest if not only_adds(function, s)), None)
    if other is not None:
        return f"line {other.lineno} does more than to compute and add"
    return "" if serves(function, rest, loop) else "what a pass computes is read after it, too"


def _adds_no_tensor(function: Function, sums: list[ast.AugAssign]) -> str:
    if not sums:
        return "nothing of the device is added"
    known = all(function.fact(s.value).is_tensor and function.fact(s.value).confidence >= 2 for s in sums)
    return "" if known else "what is added is not known to be a tensor"


def _read_elsewhere(function: Function, counts: list[ast.AugAssign], loop: ast.For) -> str:
    other = next((s for s in counts if not divided_by(function, s.target, loop)), None)
    return f"{function.file.quote(other.target)} is more than divided by after the loop" if other is not None else ""


def only_adds(function: Function, statement: ast.stmt) -> bool:
    """Whether a statement names a value or adds to one, and nothing in it waits or does more."""
    if function.sites_in(statement):
        return False
    match statement:
        case (
            ast.Assign(targets=[ast.Name()], value=value)
            | ast.AugAssign(target=ast.Name(), op=ast.Add() | ast.Sub(), value=value)
        ):
            return function.pure(value)
    return False


def serves(function: Function, rest: list[ast.stmt], loop: ast.For) -> bool:
    """Whether what these statements name is read in them alone: after a pass that was left out it would be another value."""
    inside = {id(n) for s in rest for n in ast.walk(s)}
    named = {t.id for s in rest if isinstance(s, ast.Assign) for t in s.targets if isinstance(t, ast.Name)}
    return all(id(n) in inside for name in named for n in function.names(name)) and not loop.orelse


def divided_by(function: Function, target: ast.expr, loop: ast.For) -> bool:
    """Whether a count is only divided by, once the loop is over."""
    assert isinstance(target, ast.Name)
    end = function.file.span(loop).end
    for use in function.reads(target.id):
        if function.file.span(use).start < function.file.span(loop).start:
            return False
        parent = function.parent(use)
        if function.file.span(use).start >= end and not (
            isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div) and parent.right is use
        ):
            return False
        if function.file.span(use).start < end:
            return False
    return not function.captured(target.id)


def kept_where(function: Function, test: ast.expr) -> str | None:
    """The opposite of a condition, as a bool tensor."""
    plain = predicate(function, test)
    if plain is None:
        return None
    match test:
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as op], comparators=[right]):
            sides = [f"{{at_{n.lineno}_{n.col_offset}_{n.end_lineno}_{n.end_col_offset}}}" for n in (left, right)]
            return f"{sides[0]} {'!=' if isinstance(op, ast.Eq) else '=='} {sides[1]}"
    return predicate(function, test, negated=True)


def may_divide_by_zero(function: Function, node: ast.AST) -> bool:
    """Whether this divides by a tensor that nothing keeps from being zero: no number is added, no bound is set."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Div, ast.Mod, ast.FloorDiv)):
        return False
    below = function.value(node.right)
    if not function.fact(node.right).is_tensor or seen(function, below, *BOUNDED) is not None:
        return False
    while isinstance(below, ast.BinOp) and isinstance(below.op, ast.Add):
        if any(function.constant(side) or not function.fact(side).is_tensor for side in (below.left, below.right)):
            return False
        below = below.left
    return True
