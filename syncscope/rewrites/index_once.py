"""One mask that serves several times, `x[m] + y[m]`: its true elements are looked for once, `i = m.nonzero(as_tuple=True)`."""

from __future__ import annotations

import ast

from syncscope.codemod.calls import foreign
from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.masks import (
    before_all,
    bound_by,
    bound_once,
    holds,
    is_container,
    mask_of,
    masking,
    positions_of,
    selections,
)
from syncscope.codemod.proofs import is_mask, same_shape
from syncscope.codemod.ranks import may_be_one_element
from syncscope.codemod.writes import disturbed, exposed
from syncscope.model.example import Example
from syncscope.model.fact import Fact, Site
from syncscope.model.finding import Fix, Safety, Stays, Way
from syncscope.model.ops import Op
from syncscope.rewrites import (
    choose_with_where,
    ignore_in_cross_entropy,
    reduce_with_mask,
    sum_losses_by_mask,
    tried,
)

STAYS = Stays.FIRST
WAY = Way.INDEXES
TAKES = True
LOCAL = True
TOGETHER = True
SELECTS_APART = True
EXAMPLES = (
    Example(
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.flatten()
            y = x.sigmoid()
            good = x > 0
            return x[good] + y[good]  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor):
            x = x.flatten()
            y = x.sigmoid()
            good = x > 0
            good_index = good.nonzero(as_tuple=True)
            return x[good_index] + y[good_index]
        """,
        Safety.SAFE,
        "x: float[...]",
        rule="boolean-mask-read",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            good = x > 0
            return x[good] - y[good] * x[good].sigmoid()  # !
        """,
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor):
            good = x > 0
            good_index = good.nonzero(as_tuple=True)
            return x[good_index] - y[good_index] * x[good_index].sigmoid()
        """,
        Safety.UNSAFE,
        "x: finite[n, m]; y: finite[n, m]",
        rule="boolean-mask-read",
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def loss(out: torch.Tensor, data):
            return F.l1_loss(out[data.train_mask], data.y[data.train_mask])  # !
        """,
        """
        import torch
        import torch.nn.functional as F

        def loss(out: torch.Tensor, data):
            train_mask_index = data.train_mask.nonzero(as_tuple=True)
            return F.l1_loss(out[train_mask_index], data.y[train_mask_index])
        """,
        Safety.UNSAFE,
        rule="boolean-mask-read",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, steps: int):
            x = x.flatten()
            y = x.sigmoid()
            good = x > 0
            total = 0
            for _ in range(steps):
                total = total + torch.dist(x[good], y[good])  # !
            return total
        """,
        """
        import torch

        def forward(x: torch.Tensor, steps: int):
            x = x.flatten()
            y = x.sigmoid()
            good = x > 0
            total = 0
            good_index = good.nonzero(as_tuple=True)
            for _ in range(steps):
                total = total + torch.dist(x[good_index], y[good_index])
            return total
        """,
        Safety.UNSAFE,
        "x: finite[n + 1]; steps: count",
        rule="boolean-mask-read",
    ),
    Example(
        """
        import torch

        def kept(boxes: torch.Tensor, keep: torch.Tensor, scores: torch.Tensor):
            return torch.dist(boxes[keep], scores[keep])  # !
        """,
        """
        import torch

        def kept(boxes: torch.Tensor, keep: torch.Tensor, scores: torch.Tensor):
            keep_index = keep.nonzero(as_tuple=True)
            return torch.dist(boxes[keep_index], scores[keep_index])
        """,
        Safety.SUGGEST,
        "boxes: finite[n]; keep: bool[n]; scores: finite[n]",
        rule="boolean-mask-read",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor, known: torch.Tensor):
            has: torch.Tensor = ~torch.isnan(known)[0]
            out = torch.zeros_like(x)
            out[:, has] = torch.tanh(x[:, has]).cumsum(0) - y[0, has]  # !
            return out
        """,
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor, known: torch.Tensor):
            has: torch.Tensor = ~torch.isnan(known)[0]
            out = torch.zeros_like(x)
            has_index = has.nonzero(as_tuple=True)[0]
            out[:, has_index] = torch.tanh(x[:, has_index]).cumsum(0) - y[0, has_index]
            return out
        """,
        Safety.UNSAFE,
        "x: finite[n, m]; y: finite[n + 1, m]; known: holes[n + 1, m]",
        rule="boolean-mask-read",
    ),
    Example(
        """
        import torch

        def forward(boxes: torch.Tensor, scores: torch.Tensor, sure: bool):
            mask = scores > 0
            if sure:
                mask = scores > 1
            boxes, scores = boxes[mask], scores[mask]  # !
            return boxes.cumsum(0), scores
        """,
        """
        import torch

        def forward(boxes: torch.Tensor, scores: torch.Tensor, sure: bool):
            mask = scores > 0
            if sure:
                mask = scores > 1
            mask_index = mask.nonzero(as_tuple=True)
            boxes, scores = boxes[mask_index], scores[mask_index]
            return boxes.cumsum(0), scores
        """,
        Safety.UNSAFE,
        "boxes: finite[n, m]; scores: finite[n]; sure: count",
        rule="boolean-mask-read",
    ),
    Example(
        """
        import torch

        def forward(boxes: torch.Tensor, scores: torch.Tensor):
            order, keep = scores.sort()[1], scores > 0
            chosen = torch.dist(boxes[keep].cumsum(0), boxes[keep])  # !
            return chosen, order
        """,
        """
        import torch

        def forward(boxes: torch.Tensor, scores: torch.Tensor):
            order, keep = scores.sort()[1], scores > 0
            keep_index = keep.nonzero(as_tuple=True)
            chosen = torch.dist(boxes[keep_index].cumsum(0), boxes[keep_index])
            return chosen, order
        """,
        Safety.UNSAFE,
        "boxes: finite[n, m]; scores: finite[n]",
        rule="boolean-mask-read",
    ),
    Example(
        """
        import torch

        def distances(out: torch.Tensor, y: torch.Tensor, *masks: torch.BoolTensor):
            found = []
            for mask in masks:
                chosen = out[mask]  # !
                found.append(torch.dist(chosen.square(), y[mask]))  # !
            return found
        """,
        """
        import torch

        def distances(out: torch.Tensor, y: torch.Tensor, *masks: torch.BoolTensor):
            found = []
            for mask in masks:
                mask_index = mask.nonzero(as_tuple=True)
                chosen = out[mask_index]
                found.append(torch.dist(chosen.square(), y[mask_index]))
            return found
        """,
        Safety.UNSAFE,
        rule="boolean-mask-read",
    ),
    Example(
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor, strict: bool):
            keep = y > 0
            if strict:
                keep = y > 1
            x[keep] = x[keep].cumsum(0) * y[keep]  # !
            return x
        """,
        """
        import torch

        def forward(x: torch.Tensor, y: torch.Tensor, strict: bool):
            keep = y > 0
            if strict:
                keep = y > 1
            keep_index = keep.nonzero(as_tuple=True)
            x[keep_index] = x[keep_index].cumsum(0) * y[keep_index]
            return x
        """,
        Safety.UNSAFE,
        "x: finite[n, m]; y: finite[n, m]; strict: count",
        rule="boolean-mask-read",
    ),
)

SHAPE = "torch may raise no error where the shape of the mask does not fit"
SOME = "must have at least one dimension"  # of none, nonzero gives one index all the same

BETTER = {  # what is tried of a selection first, by op: one that has such a fix needs no index
    Op.MASK_READ: (ignore_in_cross_entropy, sum_losses_by_mask, reduce_with_mask, choose_with_where),
    Op.MASK_WRITE: (choose_with_where,),
}


def rewrite(site: Site, function: Function) -> Fix | None:
    better = function.once("better", function.scope, lambda: mended_otherwise(function))
    mask = mask_of(site)
    if isinstance(mask, ast.Attribute):
        return of_statement(site, function, mask, better)
    if not isinstance(mask, ast.Name):
        return None
    definition = function.reaching_definition(mask) or bound_once(function, mask)
    home = function.block(definition) if definition is not None else bound_by(function, mask)
    if home is None:
        return of_statement(site, function, mask, better)
    uses = selections(function, mask, definition or home, better)
    first = before_all(function, home, uses) if len(uses) > 1 and site.node in uses else None
    if first is None:
        return function.declines(site.node, f"`{mask.id}` selects once, or not in one block behind where it is made")
    disturbs = disturbed(function, mask.id, definition or first, uses[-1], within=definition is None)
    if disturbs or exposed(function, mask.id, first, uses[-1]):
        return function.declines(site.node, f"`{mask.id}` may be written between its selections")
    fact = site.fact_of(mask)
    beside = [use for use in uses if use.slice is not masking(use, mask, function)]  # x[:, mask]
    if fact.ndim == 0 or (beside and fact.ndim not in (1, None)):
        return function.declines(site.node, f"`{mask.id}` has {fact.ndim} dimensions")
    draft = Draft(function)
    index = positions_of(function, mask.id)
    draft.insert_before(first, f"{index} = {{m}}.nonzero(as_tuple=True){'[0]' if beside else ''}", m=mask)
    for use in uses:
        part = masking(use, mask, function)
        if part is use.slice and isinstance(part, ast.Tuple):
            draft.replace(use, f"{{x}}[{index}]", x=use.value)
        else:
            draft.replace(part, index)
    title = f"look for the true elements of {mask.id} once, not {len(uses)} times"
    out_of_loop = isinstance(first, (ast.For, ast.AsyncFor))
    # it shares its memory
    fresh = isinstance(getattr(definition, "value", None), (ast.Compare, ast.BinOp, ast.UnaryOp))
    surely = fresh and fact.ndim is not None and is_mask(fact) and not (beside or out_of_loop)
    if surely and all(same_shape(function, use.slice, use.value) for use in uses):
        return draft.fix(title, Safety.SAFE)
    tier, changes = in_turn(function, mask, fact, bool(beside))
    return draft.fix(title, tier, *changes, "it waits where the loop has no pass, too" if out_of_loop else "")


def in_turn(function: Function, mask: ast.Name, fact: Fact, beside: bool) -> tuple[Safety, tuple[str, ...]]:
    """How far the fix can be trusted where it is not safe, and what must hold; `beside`: slices stand beside the mask."""
    tier, changes = (Safety.UNSAFE, (SHAPE,)) if is_mask(fact) else supposed(mask, mask.id)
    if is_mask(fact) and fact.confidence < 3:
        changes = (f"{mask.id} must be a tensor, no array of numpy", *changes)
    if fact.ndim is not None:
        return tier, changes
    if beside:
        return tier, (f"{mask.id} must have one dimension", *changes)
    return Safety.SUGGEST if may_be_one_element(function, mask) else tier, (f"{mask.id} {SOME}", *changes)


def supposed(mask: ast.Name | ast.Attribute, text: str) -> tuple[Safety, tuple[str, ...]]:
    """How far the fix can be trusted of what only is called a mask, and what must hold: of positions it takes other rows."""
    word = mask.id if isinstance(mask, ast.Name) else mask.attr
    tier = Safety.UNSAFE if "mask" in word.lower() else Safety.SUGGEST
    return tier, (f"{text} must be a mask, no positions", SHAPE)


def of_statement(site: Site, function: Function, mask: ast.Attribute | ast.Name, better: frozenset[int]) -> Fix | None:
    """A mask that an object holds, or one of several, where it serves twice in one statement: `f(x[d.mask], y[d.mask])`."""
    statement = function.statement(site.node)
    if statement is None or not function.pure(mask) or function.indent(statement).strip():
        return None
    written = {id(s.node) for s in function.sites_in(statement) if s.op is Op.MASK_WRITE}
    kept = isinstance(statement, ast.Assign) and function.pure(statement.value)  # the mask, until the value is written
    subscripts = (n for n in ast.walk(statement) if isinstance(n, ast.Subscript) and function.same(n.slice, mask))
    uses = [n for n in subscripts if isinstance(n.ctx, ast.Load) or (kept and id(n) in written)]
    uses = [n for n in uses if not is_container(function, n.value)]
    at_once = all(id(use) not in better and function.runs_first(statement, use) for use in uses)
    if len(uses) < 2 or site.node not in uses:
        return function.declines(site.node, f"{function.file.quote(mask)} selects once in its statement")
    if not at_once:
        return function.declines(site.node, "something else of its statement runs before it selects")
    if isinstance(mask, ast.Name) and any(foreign(function, n) for n in ast.walk(statement) if holds(n, mask)):
        return function.declines(site.node, f"`{mask.id}` may be written while the statement runs")
    draft = Draft(function)
    name = function.file.text(mask)
    index = positions_of(function, name.rpartition(".")[2])
    draft.insert_before(statement, f"{index} = {{m}}.nonzero(as_tuple=True)", m=mask)
    for use in uses:
        draft.replace(use.slice, index)
    title = f"look for the true elements of {name} once, not {len(uses)} times"
    tier, changes = supposed(mask, name)
    if isinstance(mask, ast.Name):  # bound more than once, it may also hold positions
        fact = site.fact_of(mask)
        tier, changes = (
            (Safety.UNSAFE, (SHAPE,)) if is_mask(fact) and fact.confidence == 3 else (Safety.SUGGEST, changes)
        )
    if site.fact_of(mask).ndim is None:
        changes = (f"{name} {SOME}", *changes)
        tier = Safety.SUGGEST if may_be_one_element(function, mask) else tier
    return draft.fix(title, tier, *changes)


def mended_otherwise(function: Function) -> frozenset[int]:
    """The ids of the selections of a function that have a better fix than an index."""
    fixes = ((s.node, tried(way, s, function)) for s in function.sites for way in BETTER.get(s.op, ()))
    return frozenset(id(node) for node, fix in fixes if fix is not None)
