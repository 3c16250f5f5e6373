"""`cross_entropy(x[m], t[m])` over everything, with `ignore_index` for what the mask leaves out."""

from __future__ import annotations

import ast
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.losses import Loss, Selection, enclosing_loss, reduction, selection, setting
from syncscope.codemod.patterns.positions import rows_of
from syncscope.codemod.proofs import is_mask, same_rank
from syncscope.codemod.templates import Part
from syncscope.codemod.writes import changed
from syncscope.model.example import Example
from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Adds, Fix, Safety
from syncscope.model.ops import Op
from syncscope.project.syntax import name_of

CROSS_ENTROPY = {
    "torch.nn.functional.cross_entropy", "torch.nn.functional.nll_loss", "torch.nn.CrossEntropyLoss", "torch.nn.NLLLoss",
    "torch.nn.modules.loss.CrossEntropyLoss",
}  # fmt: skip
SPLITS = ("train_mask", "val_mask", "test_mask")  # of the nodes of a graph: masks of one dimension
IGNORED = -100  # the default of `ignore_index`
IGNORING = (
    "the sum may differ in its last bits, and logits that are NaN where they are left out make gradients NaN",
    "with nothing kept both are NaN",
)
COMPILES = True
ADDS = Adds.ROWS
ROUNDS = True
EXAMPLES = (
    Example(
        """
        import torch
        from torch import nn

        def loss(logits: torch.Tensor, target: torch.LongTensor):
            keep = target != -1
            scores = logits.permute(0, 2, 3, 1)
            chosen = keep.unsqueeze(-1).expand_as(scores)
            return nn.CrossEntropyLoss()(scores[chosen].view(-1, 4), target[keep])  # !
        """,
        """
        import torch
        from torch import nn

        def loss(logits: torch.Tensor, target: torch.LongTensor):
            return nn.CrossEntropyLoss(ignore_index=-1)(logits, target)
        """,
        Safety.UNSAFE,
        "logits: finite[n, 4, h, w]; target: label[n, h, w] < 4",
        rule="boolean-mask-read",
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def loss(logits: torch.Tensor, target: torch.LongTensor):
            good = (target > 0) & (target < 3)
            return F.cross_entropy(
                logits[good],  # !
                target[good],  # !
                reduction="sum",
            )
        """,
        """
        import torch
        import torch.nn.functional as F

        def loss(logits: torch.Tensor, target: torch.LongTensor):
            good = (target > 0) & (target < 3)
            return F.cross_entropy(
                logits.flatten(0, -2),
                torch.where(good, target, -100).flatten(),
                reduction="sum",
                ignore_index=-100,
            )
        """,
        Safety.UNSAFE,
        "logits: finite[n, 4]; target: label[n] < 4",
        rule="boolean-mask-read",
    ),
    Example(
        """
        import torch
        from torch import nn

        class Tagger(nn.Module):
            def __init__(self):
                super().__init__()
                self.criterion = nn.CrossEntropyLoss()

            def loss(self, logits: torch.Tensor, labels: torch.LongTensor):
                active = labels.view(-1) != -100
                return self.criterion(logits.view(-1, 4)[active], labels.view(-1)[active])  # !
        """,
        """
        import torch
        from torch import nn

        class Tagger(nn.Module):
            def __init__(self):
                super().__init__()
                self.criterion = nn.CrossEntropyLoss()

            def loss(self, logits: torch.Tensor, labels: torch.LongTensor):
                return self.criterion(logits.view(-1, 4), labels.view(-1))
        """,
        Safety.UNSAFE,
        "logits: finite[n, m, 4]; labels: label[n, m] < 4",
        rule="boolean-mask-read",
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def loss(logits: torch.Tensor, target: torch.LongTensor):
            rows = torch.nonzero(target != -1).squeeze(1)  # !
            return F.cross_entropy(logits[rows], target[rows])
        """,
        """
        import torch
        import torch.nn.functional as F

        def loss(logits: torch.Tensor, target: torch.LongTensor):
            return F.cross_entropy(logits, target, ignore_index=-1)
        """,
        Safety.UNSAFE,
        "logits: finite[n, 4]; target: label[n] < 4",
        rule="nonzero",
    ),
    Example(
        """
        import torch
        from torch import nn

        class Head(nn.Module):
            def __init__(self):
                super().__init__()
                self.criterion = nn.CrossEntropyLoss()

            def loss(self, logits: torch.Tensor, target: torch.LongTensor, weight: torch.Tensor):
                rows = torch.where(weight > 0)[0]  # !
                picked = logits[rows]
                return self.criterion(picked, target[rows].long())
        """,
        """
        import torch
        from torch import nn

        class Head(nn.Module):
            def __init__(self):
                super().__init__()
                self.criterion = nn.CrossEntropyLoss()

            def loss(self, logits: torch.Tensor, target: torch.LongTensor, weight: torch.Tensor):
                return self.criterion(logits, torch.where(weight > 0, target, -100).long())
        """,
        Safety.SUGGEST,
        "logits: finite[n, 4]; target: label[n] < 4; weight: finite[n]",
        rule="nonzero",
    ),
    Example(
        """
        import torch
        from torch import nn

        def loss(logits: torch.Tensor, target: torch.LongTensor):
            target = target.flatten()
            criterion = nn.CrossEntropyLoss(reduction="sum")
            rows = torch.nonzero(target > 0, as_tuple=True)[0]  # !
            return criterion(logits[rows], target[rows])
        """,
        """
        import torch
        from torch import nn

        def loss(logits: torch.Tensor, target: torch.LongTensor):
            target = target.flatten()
            criterion = nn.CrossEntropyLoss(reduction="sum")
            return nn.CrossEntropyLoss(reduction="sum", ignore_index=-100)(logits, torch.where(target > 0, target, -100))
        """,
        Safety.UNSAFE,
        "logits: finite[n, 4]; target: label[n] < 4",
        rule="nonzero",
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def loss(logits: torch.Tensor, target: torch.LongTensor, train_mask: torch.Tensor):
            return F.cross_entropy(logits[train_mask], target[train_mask])  # !
        """,
        """
        import torch
        import torch.nn.functional as F

        def loss(logits: torch.Tensor, target: torch.LongTensor, train_mask: torch.Tensor):
            return F.cross_entropy(logits, torch.where(train_mask, target, -100), ignore_index=-100)
        """,
        Safety.UNSAFE,
        "logits: finite[n, 4]; target: label[n] < 4; train_mask: bool[n]",
        rule="boolean-mask-read",
    ),
    Example(
        """
        import torch
        from torch import nn

        class Denoiser(nn.Module):
            def __init__(self):
                super().__init__()
                self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

            def loss(self, logits: torch.Tensor, tokens, mask: torch.Tensor):
                return self.criterion(logits[mask], tokens[mask])  # !
        """,
        """
        import torch
        from torch import nn

        class Denoiser(nn.Module):
            def __init__(self):
                super().__init__()
                self.criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

            def loss(self, logits: torch.Tensor, tokens, mask: torch.Tensor):
                return self.criterion(logits.flatten(0, -2), torch.where(mask, tokens, -100).flatten())
        """,
        Safety.UNSAFE,
        "logits: finite[n, m, 4]; tokens: label[n, m] < 4; mask: bool[n, m]",
        rule="boolean-mask-read",
    ),
)


def rewrite(site: Site, function: Function) -> Fix | None:
    return cross_entropy(site, function) if site.op is Op.MASK_READ else of_rows(site, function)


def of_rows(site: Site, function: Function) -> Fix | None:
    """The same fix where the site is the `nonzero` of rows that serve `cross_entropy(x[rows], t[rows])` and nothing else."""
    statement = function.statement(site.node)
    uses = function.seen_by(statement) if isinstance(statement, ast.Assign) else []
    rows = rows_of(function, uses[0]) if uses else None
    taken = function.parent(uses[0]) if uses else None
    if rows is None or rows.call is not site.node or not isinstance(taken, ast.Subscript):
        return None
    loss = enclosing_loss(function, taken, CROSS_ENTROPY)
    if loss is None:
        return None
    made = [function.reaching_definition(e) for e in (loss.input, loss.target)]
    inside = {id(n) for part in (loss.call, *filter(None, made)) for n in ast.walk(part)}
    return cross_entropy(site, function, loss) if all(id(use) in inside for use in uses) else None


def cross_entropy(site: Site, function: Function, loss: Loss | None = None) -> Fix | None:
    """`cross_entropy(logits[keep], target[keep])` with `ignore_index` instead."""
    loss = loss or enclosing_loss(function, site.node, CROSS_ENTROPY)
    if loss is None:
        return None
    if reduction(loss) not in ("mean", "sum"):
        return function.declines(site.node, "its loss is not known to be a mean or a sum")
    if setting(loss, "ignore_index") is not None:
        return function.declines(site.node, "its loss has another ignore_index")
    x, t = selection(site, function, loss.input), selection(site, function, loss.target)
    if x is None or t is None or not function.same(x.mask, t.mask):
        return function.declines(site.node, "logits and targets are not both selected by one mask")
    if site.fact_of(t.base).dtype is Dtype.FLOAT:
        return function.declines(site.node, f"{function.file.quote(t.base)} holds no classes: nothing of it is ignored")
    if not function.pure(x.mask) or changed(function, _later(x, t), loss.call, x.mask, x.base, t.base):
        return function.declines(site.node, "what is selected may change before the loss is computed")
    left = ignored(function, loss, t)
    if left.value is None and not left.one_row and not left.named and not same_rank(site, function, t.mask, t.base):
        return function.declines(site.node, f"{function.file.quote(t.mask)} may be of whole rows of targets")
    definition = function.reaching_definition(t.mask) if left.value is not None else None
    if definition is not None and changed(function, definition, loss.call, t.base):
        return function.declines(site.node, f"{function.file.quote(t.base)} changes after the mask is made of it")
    draft = Draft(function)
    new = new_loss(draft, loss, over_all(site, draft, loss, x, t, left), left)
    text = draft.code("{new}", new=new)
    draft.replace(loss.call, "{new}", new=new)
    draft.drop_unused([loss.call], text)
    title = "leave out with ignore_index" if left.value is not None else "mark what is left out, and ignore it"
    if left.named:
        mask, whole = function.file.text(t.mask), function.file.text(t.base)
        shape = f"{mask} must be a mask, no positions, and {whole} hold one class for each of its elements"
        return draft.fix(title, Safety.UNSAFE, shape, *IGNORING)
    if left.one_row and site.fact_of(t.base).ndim != 1:
        shape = f"{function.file.text(t.base)} must have one dimension"
        return draft.fix(title, Safety.UNSAFE if left.value is not None else Safety.SUGGEST, shape, *IGNORING)
    return draft.fix(title, Safety.UNSAFE, *IGNORING)


class Ignored(NamedTuple):
    """How a loss is told what is left out."""

    value: ast.expr | None  # which targets have that are left out; None: they are given -100 first
    named: bool  # what selects is only called a mask
    one_row: bool  # it is one of a graph's splits, or positions: there is one dimension
    shared: bool  # the loss is a module that others call, too: its settings stay

    def is_default(self, function: Function) -> bool:
        """Whether the loss leaves it out without being told."""
        return self.shared or (self.value is not None and function.constant(self.value) == IGNORED)


def ignored(function: Function, loss: Loss, t: Selection) -> Ignored:
    """How a loss is told what is left out of its targets."""
    shared = isinstance(loss.call.func, ast.Attribute) and loss.settings is not loss.call
    value = compared(function, t)
    if shared and value is not None and function.constant(value) != IGNORED:
        value = None
    named = not is_mask(function.fact(t.mask)) and t.rows is None
    split = named and name_of(t.mask) in SPLITS
    return Ignored(value, named, split or (t.rows is not None and not t.rows.tupled), shared)


def over_all(site: Site, draft: Draft, loss: Loss, x: Selection, t: Selection, left: Ignored) -> dict[ast.expr, Part]:
    """What the loss is given instead: all logits, and all targets, in two dimensions and one where it may want no more."""
    function, logits = draft.function, draft.node(x.base)
    target = draft.node(t.base)
    if left.value is None:
        target = draft.part("torch.where({m}, {t}, -100)", m=t.mask, t=t.base)
    second, definition = classes_second(function, x.base), function.reaching_definition(x.base)
    if second is not None and (definition is None or not changed(function, definition, loss.call, second)):
        logits = draft.node(second)
    elif not left.one_row and site.fact_of(x.base).ndim != 2 and site.fact_of(t.base).ndim != 1:
        logits, target = draft.part("{x}.flatten(0, -2)", x=x.base), draft.part("{t}.flatten()", t=target)
    return {loss.input: logits, loss.target: draft.part("{t}.long()", t=target) if t.cast else target}


def new_loss(draft: Draft, loss: Loss, given: dict[ast.expr, Part], left: Ignored) -> Part:
    """The call of the loss with what it is given instead, told what to ignore where its settings are."""
    if left.is_default(draft.function):
        return draft.call(loss.call, given)
    index = draft.node(left.value) if left.value is not None else draft.part(str(IGNORED))
    if loss.settings is loss.call:
        return draft.call(loss.call, given, ignore_index=index)
    made = draft.call(loss.settings, {}, ignore_index=index)
    replaced = loss.settings if loss.call.func is loss.settings else loss.call.func
    return draft.call(loss.call, {**given, replaced: made})


def _later(*selections: Selection) -> ast.AST:
    """The node from which on what was selected must not change: the first definition, else the selection itself."""
    gone = [g for s in selections for g in s.gone if isinstance(g, ast.expr)]
    return min(gone, key=lambda g: (g.lineno, g.col_offset)) if gone else selections[0].base


def compared(function: Function, t: Selection) -> ast.expr | None:
    """The value that is left out, where the mask is `target != value` with the very target that is selected from."""
    found = seen(function, function.value(t.mask), "{a} != {b}", "{a}.ne({b})", "{a}.not_equal({b})")
    if found is None:
        return None
    a, b = found["a"], found["b"]
    if function.same(b, t.base):
        a, b = b, a
    return b if function.same(a, t.base) and isinstance(function.constant(b), int) else None


def classes_second(function: Function, expr: ast.expr) -> ast.expr | None:
    """X where `expr` is X with its classes moved from the second place to the last: what the loss wants is X itself."""
    op = function.op(function.value(expr))
    if op is None or op.keywords:
        return None
    order = [function.constant(a) for a in op.args]
    if op.name == "permute" and order == [0, *range(2, len(order)), 1] and len(order) >= 3:
        return op.base
    if op.name in ("movedim", "moveaxis") and order == [1, -1]:
        return op.base
    return None
