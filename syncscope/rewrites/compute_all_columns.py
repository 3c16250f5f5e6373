"""Writes to one class column of each kept row, `loss[rows, label[rows]] = f(...)`, computed for all columns and chosen.

It waits for code like mmdet's `gfocal_loss.py`, whose labels are a guess there, with labels that are known to be tensors.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from syncscope.codemod.draft import Draft
from syncscope.codemod.function import Function
from syncscope.codemod.pattern import seen
from syncscope.codemod.patterns.positions import is_true, positions
from syncscope.codemod.proofs import ELEMENTWISE, is_mask
from syncscope.codemod.templates import Part
from syncscope.codemod.writes import changed, seen_otherwise
from syncscope.model.example import Example
from syncscope.model.fact import Site
from syncscope.model.finding import Adds, Fix, Safety
from syncscope.model.ops import Op

POINTWISE = ELEMENTWISE | {"pow", "clamp", "log", "log1p", "sqrt", "clone"}
LOSSES = {
    "binary_cross_entropy_with_logits",
    "binary_cross_entropy",
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
}
CAST = {"long", "int", "to", "type"}
CHANGES = (
    "{0} is a new tensor; what was computed for the kept rows is computed for all rows and columns: more work where few "
    "are kept, and it must be finite there or gradients become NaN; a class out of range is left out instead of raising"
)
ADDS = Adds.ROWS
EXAMPLES = (
    Example(
        """
        import torch

        def targets(scores: torch.Tensor, label: torch.LongTensor, overlap: torch.Tensor):
            goal = torch.zeros_like(scores)
            found = label >= 0
            goal[found, label[found]] = overlap[found].clamp(min=0)  # !
            return goal
        """,
        """
        import torch

        def targets(scores: torch.Tensor, label: torch.LongTensor, overlap: torch.Tensor):
            goal = torch.zeros_like(scores)
            found = label >= 0
            hit = found[:, None] & (label[:, None] == torch.arange(goal.shape[1], device=goal.device))
            goal = torch.where(hit, overlap[:, None].clamp(min=0), goal)
            return goal
        """,
        Safety.UNSAFE,
        "scores: finite[n, 4]; label: label[n] < 4; overlap: finite[n]",
        rule="boolean-mask-write",
    ),
    Example(
        """
        import torch
        import torch.nn.functional as F

        def quality_loss(pred: torch.Tensor, label: torch.LongTensor, score: torch.Tensor):
            prob = pred.sigmoid()
            loss = F.binary_cross_entropy_with_logits(pred, torch.zeros_like(pred), reduction="none") * prob.pow(2)
            good = (label >= 0) & (label < pred.size(1))
            pos = good.nonzero().squeeze(1)  # !
            pos_label = label[pos].long()
            scale = score[pos] - prob[pos, pos_label]
            loss[pos, pos_label] = F.binary_cross_entropy_with_logits(
                pred[pos, pos_label], score[pos], reduction="none"
            ) * scale.abs().pow(2)
            return loss.sum(dim=1)
        """,
        """
        import torch
        import torch.nn.functional as F

        def quality_loss(pred: torch.Tensor, label: torch.LongTensor, score: torch.Tensor):
            prob = pred.sigmoid()
            loss = F.binary_cross_entropy_with_logits(pred, torch.zeros_like(pred), reduction="none") * prob.pow(2)
            good = (label >= 0) & (label < pred.size(1))
            hit = good[:, None] & (label[:, None] == torch.arange(loss.shape[1], device=loss.device))
            loss = torch.where(
                hit,
                F.binary_cross_entropy_with_logits(pred, score[:, None].expand_as(loss), reduction="none")
                * (score[:, None] - prob).abs().pow(2),
                loss,
            )
            return loss.sum(dim=1)
        """,
        Safety.UNSAFE,
        "pred: finite[n, 4]; label: label[n] < 4; score: finite[n]",
        rule="nonzero",
    ),
)


class KeptRows(NamedTuple):
    """The kept rows: how the user writes them, and the mask that says which they are."""

    selector: ast.expr  # `rows`, or the mask itself
    mask: ast.expr
    start: ast.stmt | None  # the assignment that named the positions


class Write(NamedTuple):
    """`x[rows, label[rows]] = value`."""

    statement: ast.Assign
    x: ast.Name
    label: ast.expr  # one class for each row
    column: ast.expr  # as the user writes it
    value: ast.expr


def rewrite(site: Site, function: Function) -> Fix | None:
    """The site is a `nonzero` whose positions serve such a write only, or a selection of such a write by a mask."""
    rows = kept(site, function)
    if (
        rows is None
        or not (is_mask(function.fact(rows.mask)) or comparison(rows.mask, rows))
        or not function.pure(rows.mask)
    ):
        return None
    found = [w for s in function.every(ast.Assign) if (w := write(function, s, rows)) is not None]
    if len(found) != 1 or not written_to_tensor(function, found[0]):
        return None
    at, draft = found[0], Draft(function)
    if seen_otherwise(function, at.x, at.statement):
        return None
    work = Dense(function, draft, rows, at)
    whole = work.of(at.value)
    start = rows.start or min(work.used.values(), key=lambda s: s.lineno, default=at.statement)
    if whole is None or changed(function, start, at.statement, rows.mask, at.label, at.x, *work.whole):
        return None
    gone = unneeded(function, work, at)
    if rows.start is not None and rows.start not in gone:  # the positions serve something else too
        return None
    if not all(function.alone(s) for s in gone):
        return None
    for statement in gone:
        draft.remove(statement)
    hit = function.fresh("hit")
    own = "{m}[:, None] & ({c}[:, None] == torch.arange({x}.shape[1], device={x}.device))"
    draft.insert_before(at.statement, f"{hit} = {own}", m=rows.mask, c=at.label, x=at.x)
    draft.replace(at.statement, f"{{x}} = torch.where({hit}, {{whole}}, {{x}})", x=at.x, whole=whole)
    return draft.fix("compute all columns, and choose each row's own", Safety.UNSAFE, CHANGES.format(at.x.id))


def kept(site: Site, function: Function) -> KeptRows | None:
    """The rows that a site is about."""
    if isinstance(site.node, ast.Subscript):
        match function.statement(site.node):
            case ast.Assign(targets=[ast.Subscript(slice=ast.Tuple(elts=[mask, *_])), *_]):
                return KeptRows(mask, mask, None)
        return None
    op = function.op(site.node)
    if op is None or not isinstance(site.node, ast.Call):
        return None
    row = positions(function, site.node, site.op is Op.WHERE or is_true(op.keywords.get("as_tuple")))
    match function.parent(row) if row is not None else None:
        case ast.Assign(targets=[ast.Name() as name, *_], value=value) as assign if value is row:
            return KeptRows(name, op.base, assign) if function.seen_by(assign) else None
    return None


def comparison(node: ast.expr, rows: KeptRows) -> bool:
    """Whether a tensor of which `nonzero` is taken is one of bools, because it is made of comparisons."""
    if rows.start is None:  # it is no tensor for sure
        return False
    match node:
        case ast.BinOp(op=ast.BitAnd() | ast.BitOr(), left=left, right=right):
            return comparison(left, rows) and comparison(right, rows)
        case ast.Compare(ops=[_]):
            return True
    return False


def write(function: Function, statement: ast.Assign, rows: KeptRows) -> Write | None:
    """A statement as a write to one column of each of these rows."""
    found = seen(function, statement, "{x:name}[{rows}, {column}] = {value}")
    if found is None or not is_rows(function, found["rows"], rows):
        return None
    label = function.value(found["column"])
    cast = function.op(label)
    of = seen(function, cast.base if cast is not None and cast.name in CAST else label, "{label}[{rows}]")
    if of is None or not is_rows(function, of["rows"], rows) or not function.pure(of["label"]):
        return None
    assert isinstance(found["x"], ast.Name)
    return Write(statement, found["x"], of["label"], found["column"], found["value"])


def written_to_tensor(function: Function, at: Write) -> bool:
    """Whether what is written is surely a tensor, so that positions in it are too."""
    fact = function.fact(at.x)
    return fact.is_tensor and fact.confidence >= 2


def is_rows(function: Function, index: ast.expr, rows: KeptRows) -> bool:
    """Whether an index selects these rows."""
    if rows.start is None:
        return function.same(index, rows.mask)
    return isinstance(index, ast.Name) and function.reaching_definition(index) is rows.start


class Dense:
    """Rewrites what is computed for one column of each kept row as computed for all columns of all rows."""

    def __init__(self, function: Function, draft: Draft, rows: KeptRows, at: Write) -> None:
        self.function, self.draft, self.rows, self.at = function, draft, rows, at
        self.whole: list[ast.expr] = []  # the tensors of which nothing is selected any more
        self.used: dict[str, ast.Assign] = {}  # assignments whose values were taken in, by name

    def of(self, node: ast.expr, full: bool = False) -> Part | None:
        """An expression for all columns; None where it is not made element by element. `full`: it must have every column."""
        function = self.function
        if function.constant(node) is not None:
            return node
        if isinstance(node, ast.Name):
            made = function.reaching_definition(node)
            if made is None:
                return node if not function.fact(node).is_tensor else None
            self.used[node.id] = made
            return self.of(made.value, full)
        if isinstance(node, ast.Subscript):
            return self.selected(node, full)
        parts = self.parts(node)
        if parts is None:
            return None
        loss = isinstance(node, ast.Call) and self.is_loss(node)
        new = {part: self.of(part, full or loss) for part in parts}
        if None in new.values():
            return None
        return self.draft.swapped(node, {o: made for o, made in new.items() if made is not None and made is not o})

    def selected(self, node: ast.Subscript, full: bool) -> Part | None:
        """`a[rows, label[rows]]` is a; `s[rows]` is s with a column."""
        index = node.slice
        own = seen(self.function, node, "{a}[{rows}, {column}]")
        if own is not None and is_rows(self.function, own["rows"], self.rows):
            if not self.function.same(own["column"], self.at.column) or not self.function.pure(node.value):
                return None
            self.whole.append(node.value)
            return node.value
        if not is_rows(self.function, index, self.rows) or self.function.fact(node.value).ndim not in (1, None):
            return None
        if not self.function.pure(node.value):
            return None
        self.whole.append(node.value)
        column = "{s}[:, None].expand_as({x})" if full else "{s}[:, None]"
        return self.draft.part(column, s=node.value, x=self.at.x)

    def parts(self, node: ast.expr) -> list[ast.expr] | None:
        """The operands of what is computed element by element."""
        match node:
            case ast.BinOp(op=sign, left=left, right=right) if not isinstance(sign, ast.MatMult):
                return [left, right]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return [operand]
        op = self.function.op(node)
        if op is None or not isinstance(node, ast.Call):
            return None
        if self.is_loss(node):
            return [op.base, *op.args] if len(op.args) == 1 else None
        numbers = all(self.function.constant(v) is not None for v in op.keywords.values())
        return [op.base, *op.args] if op.name in POINTWISE and numbers else None

    def is_loss(self, call: ast.Call) -> bool:
        """Whether this is a loss that is not reduced."""
        name = (self.function.dotted(call.func) or "").removeprefix("torch.nn.functional.")
        how = {k.arg: k.value for k in call.keywords}
        reduction = how.pop("reduction", None)
        return name in LOSSES and not how and isinstance(reduction, ast.Constant) and reduction.value == "none"


def unneeded(function: Function, work: Dense, at: Write) -> list[ast.stmt]:
    """The assignments that served the write alone: of the positions, of the classes, and of values that were taken in."""
    made = [*work.used.values(), work.rows.start, function.reaching_definition(at.column)]
    left = list({id(s): s for s in made if isinstance(s, ast.Assign)}.values())
    gone: list[ast.stmt] = []
    while True:
        inside = {id(n) for s in (at.statement, *gone) for n in ast.walk(s)}
        more = [
            s
            for s in left
            if s not in gone and function.seen_by(s) and all(id(n) in inside for n in function.seen_by(s))
        ]
        if not more:
            return gone
        gone += more
