"""`cross_entropy(x[m], t[m])` over everything, with `ignore_index` for what the mask leaves out."""

from __future__ import annotations

import ast

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
    "the sum may differ in its last bits, and logits that are NaN where they are left out make gradients NaN; "
    "with nothing kept both are NaN"
)
COMPILES = True
ADDS = Adds.ROWS
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
    if loss is None or reduction(loss) not in ("mean", "sum") or setting(loss, "ignore_index") is not None:
        return None
    x, t = selection(site, function, loss.input), selection(site, function, loss.target)
    if x is None or t is None or not function.same(x.mask, t.mask) or site.fact_of(t.base).dtype is Dtype.FLOAT:
        return None
    if not function.pure(x.mask) or changed(function, _later(x, t), loss.call, x.mask, x.base, t.base):
        return None
    ignored = compared(function, t)
    shared = (
        isinstance(loss.call.func, ast.Attribute) and loss.settings is not loss.call
    )  # a module that others call too
    if shared and ignored is not None and function.constant(ignored) != IGNORED:
        ignored = None
    named = not is_mask(site.fact_of(t.mask)) and t.rows is None
    split = named and name_of(t.mask) in SPLITS
    one_row = split or (t.rows is not None and not t.rows.tupled)  # then there is one dimension
    if ignored is None and not one_row and not named and not same_rank(site, function, t.mask, t.base):
        return None  # a mask of whole rows of targets: the loss may have further dimensions
    draft = Draft(function)
    if ignored is not None:
        target, index = draft.node(t.base), draft.node(ignored)
        definition = function.reaching_definition(t.mask)
        if definition is not None and changed(function, definition, loss.call, t.base):
            return None
    else:
        target, index = draft.part("torch.where({m}, {t}, -100)", m=t.mask, t=t.base), draft.part(str(IGNORED))
    second = classes_second(function, x.base)
    logits = draft.node(x.base)
    definition = function.reaching_definition(x.base)
    if second is not None and (definition is None or not changed(function, definition, loss.call, second)):
        logits = draft.node(second)
    elif not one_row and site.fact_of(x.base).ndim != 2 and site.fact_of(t.base).ndim != 1:
        logits = draft.part("{x}.flatten(0, -2)", x=x.base)
        target = draft.part("{t}.flatten()", t=target)
    if t.cast:
        target = draft.part("{t}.long()", t=target)
    instead: dict[ast.expr, Part] = {loss.input: logits, loss.target: target}
    if shared or (ignored is not None and function.constant(ignored) == IGNORED):
        new = draft.call(loss.call, instead)
    elif loss.settings is loss.call:
        new = draft.call(loss.call, instead, ignore_index=index)
    elif loss.call.func is loss.settings:
        made = draft.call(loss.settings, {}, ignore_index=index)
        new = draft.call(loss.call, {**instead, loss.settings: made})
    else:
        made = draft.call(loss.settings, {}, ignore_index=index)
        new = draft.call(loss.call, {**instead, loss.call.func: made})
    text = draft.code("{new}", new=new)
    draft.replace(loss.call, "{new}", new=new)
    draft.drop_unused([loss.call], text)
    title = "leave out with ignore_index" if ignored is not None else "mark what is left out, and ignore it"
    if named:
        mask, whole = function.file.text(t.mask), function.file.text(t.base)
        shape = f"{mask} must be a mask, no positions, and {whole} hold one class for each of its elements"
        return draft.fix(title, Safety.UNSAFE, f"{shape}; {IGNORING}")
    if one_row and site.fact_of(t.base).ndim != 1:
        shape = f"{function.file.text(t.base)} must have one dimension"
        return draft.fix(title, Safety.UNSAFE if ignored is not None else Safety.SUGGEST, f"{shape}; {IGNORING}")
    return draft.fix(title, Safety.UNSAFE, IGNORING)


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
