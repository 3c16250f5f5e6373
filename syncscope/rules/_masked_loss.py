"""Losses over what a mask selects, in fixed shapes."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules import Example
from syncscope.rules._function import Function
from syncscope.rules._positions import Rows, rows_of
from syncscope.rules._proofs import is_mask, same_rank

if TYPE_CHECKING:
    from syncscope.rules._draft import Part

CROSS_ENTROPY = {
    "torch.nn.functional.cross_entropy", "torch.nn.functional.nll_loss", "torch.nn.CrossEntropyLoss", "torch.nn.NLLLoss",
    "torch.nn.modules.loss.CrossEntropyLoss",
}  # fmt: skip
PER_ELEMENT = {
    "torch.nn.functional.mse_loss", "torch.nn.functional.l1_loss", "torch.nn.functional.smooth_l1_loss",
    "torch.nn.functional.huber_loss", "torch.nn.functional.binary_cross_entropy_with_logits",
}  # fmt: skip
IGNORED = -100  # the default of `ignore_index`
IGNORING = (
    "the sum may differ in its last bits, and logits that are NaN where they are left out make gradients NaN; "
    "with nothing kept both are NaN"
)
OF_ROWS = (
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
    ),
)


class Loss(NamedTuple):
    """A call of a loss."""

    name: str
    call: ast.Call  # with the input and the target
    settings: ast.Call  # with reduction, weight, ...: the same call, or the one that made the module
    input: ast.expr
    target: ast.expr


class Selection(NamedTuple):
    """`base[mask]`, or `base[rows]` with the rows of a mask."""

    base: ast.expr
    mask: ast.expr
    gone: list[ast.AST]  # expressions that made it and are not needed without it
    rows: Rows | None = None
    cast: bool = False  # `base[mask].long()`


def enclosing_loss(node: ast.AST, function: Function, names: set[str]) -> Loss | None:
    """The loss of which this is an argument, directly, through a reshape or through a name that is used once."""
    for _ in range(2):
        for outer in function.around(node):
            if isinstance(outer, ast.stmt):
                break
            if isinstance(outer, ast.Call) and (loss := as_loss(outer, function, names)) is not None:
                return loss
        statement = function.statement(node)
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            return None
        reads = function.reads(statement.targets[0].id)
        if len(reads) != 1 or function.definition(reads[0]) is not statement:
            return None
        node = reads[0]
    return None


def as_loss(call: ast.Call, function: Function, names: set[str]) -> Loss | None:
    """A call as a loss with an input and a target."""
    settings = call
    if isinstance(call.func, ast.Call):
        settings = call.func
    elif isinstance(call.func, ast.Name) and isinstance(made := function.value(call.func), ast.Call):
        settings = made
    elif isinstance(call.func, ast.Attribute) and (kept := function.maker(call.func)) is not None:  # self.criterion
        settings = kept
    name = function.dotted(settings.func)
    keywords = {k.arg: k.value for k in call.keywords}
    arguments = [*call.args, *(keywords[k] for k in ("input", "target") if k in keywords)]
    if name is None or name not in names or len(arguments) < 2 or None in keywords:
        return None
    return Loss(name, call, settings, arguments[0], arguments[1])


def setting(loss: Loss, name: str) -> ast.expr | None:
    """What a loss was told by keyword."""
    return next((k.value for k in loss.settings.keywords if k.arg == name), None)


def reduction(loss: Loss) -> str | None:
    """How a loss is reduced: "mean", "sum" or "none"; None where that cannot be seen."""
    if any(k.arg is None for k in loss.settings.keywords) or setting(loss, "reduce") or setting(loss, "size_average"):
        return None
    if len(loss.settings.args) > (2 if loss.settings is loss.call else 0):
        return None
    node = setting(loss, "reduction")
    if node is None:
        return "mean"
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def selection(expr: ast.expr, site: Site, function: Function) -> Selection | None:
    """An argument as what a mask selects: `x[m]`, or over classes `x[m.unsqueeze(-1).expand_as(x)].view(-1, classes)`."""
    gone: list[ast.AST] = []
    defined = function.definition(expr)
    if defined is not None:
        if len(function.reads(getattr(expr, "id", ""))) != 1:
            return None
        gone.append(defined.value)
        expr = defined.value
    op = function.op(expr)
    cast = op is not None and op.name == "long" and not op.args and not op.keywords
    if op is not None and cast:
        expr = op.base
        op = function.op(expr)
    flat = (
        op is not None and op.name in ("view", "reshape") and len(op.args) == 2 and function.constant(op.args[0]) == -1
    )
    if op is not None and flat:
        expr = op.base
    if not isinstance(expr, ast.Subscript):
        return None
    mask = expr.slice
    if (rows := rows_of(function, mask)) is not None and not flat:
        gone.append(rows.statement.value)
        mask = rows.mask
    elif not is_mask(site.fact_of(mask)):
        return None
    if flat:
        spread = function.op(function.value(mask))
        if (
            spread is None
            or spread.name != "expand_as"
            or not spread.args
            or not function.same(spread.args[0], expr.value)
        ):
            return None
        inner = unsqueezed(spread.base, function)
        if inner is None:
            return None
        gone += [mask, spread.base]
        mask = inner
    if defined is not None and undone([expr], function, defined, site.node):
        return None
    return Selection(expr.value, mask, gone, rows, cast)


def unsqueezed(expr: ast.expr, function: Function) -> ast.expr | None:
    """What got one dimension more at its end: `m.unsqueeze(-1)` or `m[..., None]`."""
    op = function.op(expr)
    if op is not None and op.name == "unsqueeze" and len(op.args) == 1 and function.constant(op.args[0]) == -1:
        return op.base
    if isinstance(expr, ast.Subscript) and isinstance(expr.slice, ast.Tuple) and len(expr.slice.elts) == 2:
        dots, none = expr.slice.elts
        if (
            isinstance(dots, ast.Constant)
            and dots.value is ...
            and isinstance(none, ast.Constant)
            and none.value is None
        ):
            return expr.value
    return None


def undone(exprs: list[ast.expr], function: Function, start: ast.AST, end: ast.AST) -> bool:
    """Whether anything that these expressions are made of may have changed between two nodes."""
    names = {n.id for e in exprs for n in ast.walk(e) if isinstance(n, ast.Name)}
    return any(function.disturbed(name, start, end) for name in names)


def classes_second(expr: ast.expr, function: Function) -> ast.expr | None:
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


def of_rows(site: Site, function: Function) -> Fix | None:
    """As `cross_entropy`, where the site is the `nonzero` of `rows`, which serve the loss and nothing else."""
    statement = function.statement(site.node)
    uses = function.seen_by(statement) if isinstance(statement, ast.Assign) else []
    rows = rows_of(function, uses[0]) if uses else None
    taken = function.parent(uses[0]) if uses else None
    if rows is None or rows.call is not site.node or not isinstance(taken, ast.Subscript):
        return None
    loss = enclosing_loss(taken, function, CROSS_ENTROPY)
    if loss is None:
        return None
    made = [function.definition(e) for e in (loss.input, loss.target)]
    inside = {id(n) for part in (loss.call, *filter(None, made)) for n in ast.walk(part)}
    return cross_entropy(site, function, loss) if all(id(use) in inside for use in uses) else None


def cross_entropy(site: Site, function: Function, loss: Loss | None = None) -> Fix | None:
    """`cross_entropy(logits[keep], target[keep])` with `ignore_index` instead."""
    loss = loss or enclosing_loss(site.node, function, CROSS_ENTROPY)
    if loss is None or reduction(loss) not in ("mean", "sum") or setting(loss, "ignore_index") is not None:
        return None
    x, t = selection(loss.input, site, function), selection(loss.target, site, function)
    if x is None or t is None or not function.same(x.mask, t.mask) or site.fact_of(t.base).dtype is Dtype.FLOAT:
        return None
    if not function.pure(x.mask) or undone([x.mask, x.base, t.base], function, _later(function, x, t), loss.call):
        return None
    ignored = compared(t, function)
    shared = (
        isinstance(loss.call.func, ast.Attribute) and loss.settings is not loss.call
    )  # a module that others call too
    if shared and ignored is not None and function.constant(ignored) != IGNORED:
        ignored = None
    one_row = t.rows is not None and not t.rows.tupled  # then there is one dimension
    if ignored is None and not one_row and not same_rank(site, function, t.mask, t.base):
        return None  # a mask of whole rows of targets: the loss may have further dimensions
    draft = function.draft()
    if ignored is not None:
        target, index = draft.node(t.base), draft.node(ignored)
        definition = function.definition(t.mask)
        if definition is not None and undone([t.base], function, definition, loss.call):
            return None
    else:
        target, index = draft.part("torch.where({m}, {t}, -100)", m=t.mask, t=t.base), draft.part(str(IGNORED))
    second = classes_second(x.base, function)
    logits = draft.node(x.base)
    definition = function.definition(x.base)
    if second is not None and (definition is None or not undone([second], function, definition, loss.call)):
        logits = draft.node(second)
    elif not one_row and site.fact_of(x.base).ndim != 2 and site.fact_of(t.base).ndim != 1:
        logits = draft.part("{x}.flatten(0, -2)", x=x.base)
        target = draft.part("{t}.flatten()", t=target)
    if t.cast:
        target = draft.part("{t}.long()", t=target)
    instead: dict[ast.expr, Part] = {loss.input: logits, loss.target: target}
    if shared:
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
    if one_row and site.fact_of(t.base).ndim != 1:
        shape = f"{function.view.text(t.base)} must have one dimension"
        return draft.fix(title, Safety.UNSAFE if ignored is not None else Safety.SUGGEST, f"{shape}; {IGNORING}")
    return draft.fix(title, Safety.UNSAFE, IGNORING)


def _later(function: Function, *selections: Selection) -> ast.AST:
    """The node from which on what was selected must not change: the first definition, else the selection itself."""
    gone = [g for s in selections for g in s.gone if isinstance(g, ast.expr)]
    return min(gone, key=lambda g: (g.lineno, g.col_offset)) if gone else selections[0].base


def compared(t: Selection, function: Function) -> ast.expr | None:
    """The value that is left out, where the mask is `target != value` with the very target that is selected from."""
    mask = function.value(t.mask)
    a: ast.expr
    b: ast.expr
    if isinstance(mask, ast.Compare) and len(mask.ops) == 1 and isinstance(mask.ops[0], ast.NotEq):
        a, b = mask.left, mask.comparators[0]
    elif (op := function.op(mask)) is not None and op.name in ("ne", "not_equal") and len(op.args) == 1:
        a, b = op.base, op.args[0]
    else:
        return None
    if function.same(b, t.base):
        a, b = b, a
    return b if function.same(a, t.base) and isinstance(function.constant(b), int) else None


def per_element(site: Site, function: Function) -> Fix | None:
    """`mse_loss(x[m], t[m])` over everything, then only what the mask keeps."""
    loss = enclosing_loss(site.node, function, PER_ELEMENT)
    how = reduction(loss) if loss is not None else None
    if loss is None or how not in ("mean", "sum") or loss.settings is not loss.call or setting(loss, "weight"):
        return None
    x, t = selection(loss.input, site, function), selection(loss.target, site, function)
    if x is None or t is None or x.gone or t.gone or not function.same(x.mask, t.mask) or not function.pure(x.mask):
        return None
    if not same_rank(site, function, x.mask, x.base) or not same_rank(site, function, t.mask, t.base):
        return None
    draft = function.draft()
    each = draft.call(loss.call, {loss.input: x.base, loss.target: t.base}, reduction='"none"')
    template = "torch.where({m}, {each}, 0.0).sum()" + (" / {m}.sum()" if how == "mean" else "")
    draft.replace(loss.call, template, m=x.mask, each=each)
    return draft.fix(
        "compute all, keep what the mask selects",
        Safety.UNSAFE,
        "the sum may differ in its last bits, and what is left out must be finite or its gradient is NaN",
    )
