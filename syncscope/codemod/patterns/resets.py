"""Resets of states where a mask is true: statements that leave everything as it is where the mask is true nowhere."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from syncscope.codemod.function import Function
from syncscope.codemod.names_and_calls import number
from syncscope.codemod.pattern import seen
from syncscope.codemod.proofs import is_mask, may_be_mask, one_value
from syncscope.codemod.sharing import VIEWS
from syncscope.model.ops import Op
from syncscope.project.syntax import each_of

LEAF = (
    "the write is also made where nothing is masked: it raises where the tensor is a leaf that requires grad, or where "
    "backward needs it as it was"
)
SAVED = frozenset(
    """softmax log_softmax gumbel_softmax sigmoid tanh tan exp exp2 expm1 sqrt rsqrt reciprocal relu elu selu celu prod cumprod
    norm std logsumexp cdist inverse pinverse cholesky scaled_dot_product_attention""".split()
)
"""Operations whose gradient is computed of what they gave: what they gave must not be written."""
TRUTHS = ("{m}.bool()", "{m}.to(torch.bool)", "{m}.type(torch.bool)", "torch.as_tensor({m})", "{m}.detach()")
SHAPED = (
    "{m}.unsqueeze(*_, **_)", "{m}.view(*_)", "{m}.reshape(*_)", "{m}.expand(*_)", "{m}.expand_as(*_)", "{m}.squeeze(*_, **_)",
    "{m}.float()", "{m}.int()", "{m}.long()", "{m}.to(*_, **_)", "{m}.type_as(*_)", "{m}.contiguous()",
)  # fmt: skip
CHOSEN = ("{x}.masked_fill({m}, {v})", "torch.where({m}, {v}, {x})", "torch.where({k}, {x}, {v})")
KEPT = ("1 - {m}", "~{m}", "{m} == 0", "{m}.logical_not()", "torch.logical_not({m})", "torch.ones_like(*_, **_) - {m}")
BEYOND = (ast.Eq, ast.GtE, ast.Gt, ast.NotEq)
Words = dict[str, None]  # what has to be said of a fix, once each


class MaskAsked(NamedTuple):
    """What is asked for its truth: whether this mask is true anywhere."""

    function: Function
    mask: ast.expr

    def selects(self, part: ast.expr) -> bool:
        """Whether this, as an index, is true only where the mask is: `m`, `m.bool()`, `m == 1`."""
        return self.nowhere(part, TRUTHS)

    def nowhere(self, part: ast.expr, shapes: Sequence[str] = (*TRUTHS, *SHAPED)) -> bool:
        """Whether this is zero everywhere where the mask is: the mask, with another shape or of another dtype."""
        function = self.function
        if function.same(part, self.mask):
            return True
        match part:
            case ast.Name() if (made := function.value(part)) is not part:
                return self.nowhere(made, shapes)
            case ast.Subscript(value=value, slice=index) if shapes is not TRUTHS:
                return all(map(_only_shapes, each_of(index))) and self.nowhere(value, shapes)
            case ast.Compare(left=left, ops=[op], comparators=[bound]):
                least = number(bound)
                beyond = least == 1 if isinstance(op, (ast.Eq, ast.GtE)) else least == 0
                return beyond and isinstance(op, BEYOND) and self.nowhere(left, shapes)
        found = seen(function, part, *shapes)
        return found is not None and function.pure(part) and self.nowhere(found["m"], shapes)

    def keeps(self, part: ast.expr) -> bool:
        """Whether this is 1, or true, everywhere where the mask is true nowhere: `1 - m`, `~m`, `(1 - m).unsqueeze(-1)`."""
        function = self.function
        if isinstance(part, ast.Name) and (made := function.value(part)) is not part:
            return self.keeps(made)
        if (found := seen(function, part, *KEPT)) is not None:
            inverted = isinstance(part, ast.UnaryOp)
            return function.pure(part) and (not inverted or self.is_bool(found["m"])) and self.nowhere(found["m"])
        if isinstance(part, ast.Subscript):
            return all(map(_only_shapes, each_of(part.slice))) and self.keeps(part.value)
        found = seen(function, part, *SHAPED)
        return found is not None and function.pure(part) and self.keeps(found["m"])

    def is_bool(self, part: ast.expr) -> bool:
        """Whether a mask is surely of truths, not of numbers: `~m` of numbers is something else."""
        return is_mask(self.function.fact(part))

    def stays(self, value: ast.expr, x: ast.expr) -> str | None:
        """What changes if `x = value` runs where the mask is true nowhere, and leaves x what it is; None where it may not."""
        function, name = self.function, self.function.file.text(x)
        new = f"{name} is a new tensor in every pass"
        if (found := seen(function, value, "{x}.clone()")) is not None:
            return new if _written(found["x"], x) else None
        for found in (seen(function, value, shape) for shape in CHOSEN):
            if found is not None and _written(found["x"], x) and function.pure(found["v"]):
                return new if (self.nowhere(found["m"]) if "m" in found else self.keeps(found["k"])) else None
        if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
            for kept, factor in ((value.left, value.right), (value.right, value.left)):
                if _written(kept, x) and self.keeps(factor):
                    return f"{new}, of the dtype and shape of the product"
        return None


def _only_shapes(part: ast.expr) -> bool:
    """Whether a part of an index takes everything: `:`, `None`, `...`."""
    return (isinstance(part, ast.Constant) and part.value in (None, ...)) or (
        isinstance(part, ast.Slice) and part.lower is part.upper is part.step is None
    )


def _written(a: ast.expr, b: ast.expr) -> bool:
    """Whether both are written alike, one of which is bound here."""
    return ast.unparse(a) == ast.unparse(b)


def leaves_all(asked: MaskAsked, body: Sequence[ast.stmt]) -> list[str] | None:
    """What changes if statements run where the mask is true nowhere; None where one of them may do anything there."""
    words: Words = {}
    bound = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    roots = {_root(t.value) for s in body for t in ast.walk(s) if isinstance(t, ast.Subscript) and _is_target(t)}
    names = {n.id for n in ast.walk(asked.mask) if isinstance(n, ast.Name)}
    inside = {id(n) for s in body for n in ast.walk(s)}
    others = (s for s in asked.function.sites if s.op is not Op.NUMBER_WRITE)  # of no mask, which is said
    if names & (bound | roots) or any(id(site.node) in inside for site in others):
        return None
    if not all(_leaves(asked, statement, words) for statement in body):
        return None
    return list(words)


def _is_target(node: ast.Subscript) -> bool:
    return isinstance(node.ctx, ast.Store)


def _root(node: ast.expr) -> str:
    """The name that an attribute or an item is of."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _leaves(asked: MaskAsked, statement: ast.stmt, words: Words) -> bool:
    function = asked.function
    match statement:
        case ast.Assign(targets=[ast.Subscript() as target], value=value) if _write(asked, target, value, words):
            return not needed_back(function, target.value)
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
            apart = len(targets) == len(values) and not any(isinstance(t, ast.Starred) for t in targets)
            return apart and all(_same(asked, t, v, words) for t, v in zip(targets, values, strict=True))
        case ast.Assign(targets=[ast.Name() | ast.Attribute() as target], value=ast.Tuple(elts=values)):
            items = [ast.Subscript(target, ast.Constant(at)) for at in range(len(values))]
            words[f"{function.file.text(target)} must be a tuple of {len(values)}"] = None
            return all(_same(asked, item, v, words, target) for item, v in zip(items, values, strict=True))
        case ast.Assign(targets=[target], value=value):
            return _same(asked, target, value, words)
        case ast.AugAssign(target=ast.Name() | ast.Attribute() as target, op=ast.Mult(), value=value):
            words[LEAF] = None
            return asked.keeps(value) and not needed_back(function, target)
        case ast.Expr(value=call):
            found = seen(function, call, "{x}.masked_fill_({m}, {v})")
            words[LEAF] = None
            if found is None or not asked.nowhere(found["m"]):
                return False
            return all(map(function.pure, (found["x"], found["v"]))) and not needed_back(function, found["x"])
        case ast.For(target=ast.Name(), iter=held, body=body, orelse=[]):
            return function.pure(held) and all(_leaves(asked, each, words) for each in body)
        case ast.With(items=[ast.withitem(context_expr=ast.Call(func=func), optional_vars=None)], body=body):
            return function.dotted(func) == "torch.no_grad" and all(_leaves(asked, each, words) for each in body)
    return False


def needed_back(function: Function, tensor: ast.expr) -> bool:
    """Whether backward needs what is in a tensor here, or in what it is a view of: `attention = scores.softmax(-1)`."""
    made = function.value(tensor)
    op = function.op(made)
    while op is not None and op.name in VIEWS:
        made = function.value(op.base)
        op = function.op(made)
    return op is not None and op.name in SAVED


def _same(asked: MaskAsked, target: ast.expr, value: ast.expr, words: Words, whole: ast.expr | None = None) -> bool:
    """Whether `target = value` leaves a state, or an item of the tuple `whole`, what it is."""
    if not isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)) or not asked.function.pure(value):
        return False
    if isinstance(target, ast.Subscript) and whole is None:
        return False
    said = _stays_item(asked, target, value, whole) if whole is not None else asked.stays(value, target)
    if said is not None:
        words[said] = None
    return said is not None


def _stays_item(asked: MaskAsked, item: ast.expr, value: ast.expr, whole: ast.expr) -> str | None:
    """As `stays`, of an item that stands in no code: what is said is said of the tuple."""
    for part in ast.walk(value):
        if isinstance(part, ast.Subscript) and ast.unparse(part) == ast.unparse(item):
            said = asked.stays(value, part)
            name = asked.function.file.text(whole)
            return said and f"{name} holds new tensors in every pass, of the dtype and shape of what is computed"
    return None


def _write(asked: MaskAsked, target: ast.Subscript, value: ast.expr, words: Words) -> bool:
    """Whether this is `x[m] = number`, or `x[:, m] = number`: a mask takes one number without looking."""
    function, parts = asked.function, each_of(target.slice)
    masks = [part for part in parts if not isinstance(part, (ast.Slice, ast.Constant))]
    if len(masks) != 1 or not asked.selects(masks[0]) or not function.pure(target.value):
        return False
    fact = function.fact(masks[0])
    if not is_mask(fact):
        if not may_be_mask(fact):
            return False
        words[f"{function.file.text(masks[0])} must be a mask, no positions"] = None
    if not one_value(function, function.fact(value), value):
        return False
    words[LEAF] = None
    return True
