"""Whether an index is one number, a row of positions or a mask, and whether it comes from the host."""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.project import conventions, vectors
from syncscope.project.syntax import last_word, name_of, statements, text_of
from syncscope.tensors.facts import ANY_DTYPE, ARRAY, BATCH, INT, SCALAR, TENSOR, Tag
from syncscope.tensors.frame import Frame, evaluate


def most_likely_one(frame: Frame, part: ast.expr, fact: Fact) -> bool:
    """Whether an index of unknown rank is one number, most likely: good enough to tell of it, and no proof for a rewrite."""
    return (fact.dtype is INT and is_one_position(frame, fact)) or _one_length(frame, part)


def _one_length(frame: Frame, part: ast.expr) -> bool:
    """Whether it is one of what people call lengths, `lengths[b] - 1`, or what a loop over them gives."""
    while isinstance(part, ast.BinOp) and isinstance(part.right, ast.Constant):
        part = part.left
    match part:
        case ast.Subscript(value=lengths, slice=at) if vectors.are_lengths(name_of(lengths)):
            return evaluate(frame, at).kind in (SCALAR, UNKNOWN.kind) and not mask_like(at)
        case ast.Name(id=name) if (
            (one := frame.env.get(name)) is not None and one.kind is TENSOR and not one.provenance
        ):
            return any(known is one.source and vectors.are_lengths(of) for of, known in frame.env.items())
    return False


def as_one_position(frame: Frame, part: ast.expr, fact: Fact, base: Fact, adds: bool) -> int:
    """How surely an index of unknown dimensions is one number: 2, 1 where it may be a row of them, or 0.

    `adds`: it is one of several of what is added to. Of rows of positions, what is there twice would be added once.
    """
    known = base.kind is TENSOR
    if known and most_likely_one(frame, part, fact):
        return 2
    if fact.dtype not in (INT, ANY_DTYPE) or not (known or base.kind is ARRAY or base.kind is UNKNOWN.kind):
        return 0
    while isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in _KEEP_ROWS:
        part = part.func.value
    if isinstance(part, ast.Name) and evaluate(frame, part).ref is Tag.ROW:
        return 2 if adds and base.kind is not UNKNOWN.kind else 1
    return 1 if known and is_one_position(frame, fact) and _came_in_a_batch(fact) else 0


def _came_in_a_batch(fact: Fact) -> bool:
    """Whether a tensor was computed from what a loader gave: a class of each sample, most often in one dimension."""
    source = fact.source
    while source is not None and source.kind is TENSOR:
        source = source.source
    return source is not None and source.kind is BATCH


_KEEP_ROWS = frozenset(("long", "int", "detach", "clone", "to"))


def is_one_position(frame: Frame, fact: Fact) -> bool:
    """Whether one element was taken from it before: of positions, most often sorted in one dimension, a number is left."""
    row = fact.provenance
    taken = row.slice if isinstance(row, ast.Subscript) else None
    if isinstance(row, ast.Subscript) and conventions.of_pairs(_word(row.value)):
        return False
    if not isinstance(taken, ast.Name):
        return isinstance(taken, ast.Constant)
    known = frame.env.get(taken.id)  # a name of another function, that gave this, may be a mask's
    return known is not None and known.kind in (SCALAR, UNKNOWN.kind) and not mask_like(taken)


def _word(node: ast.expr) -> str:
    """The last word of what is indexed, or the key under which it is found: `edge_index` of `data["edge_index"]`."""
    key = text_of(node.slice) if isinstance(node, ast.Subscript) else None
    return key if key is not None else last_word(node)


_KEEP_VALUES = frozenset(
    """squeeze unsqueeze expand expand_as view view_as reshape flatten repeat transpose permute contiguous detach clone to
    cuda""".split()
)

_KEEP_DTYPE = _KEEP_VALUES - {"to"}  # which may make another dtype of them


def named_mask(part: ast.expr, fact: Fact) -> int:
    """How surely an index is what people call a mask, or was made of one and only has another shape: as `mask_like`.

    What was computed by arithmetic is none, whatever it is called: `masked_target = target - first`.
    """
    if is_computed(fact):
        return 0
    made = fact.provenance if isinstance(part, ast.Name) else None
    return mask_like(part) or (mask_like(made) if isinstance(made, ast.Call) else 0)


def is_computed(fact: Fact) -> bool:
    """Whether a tensor is what arithmetic gave, perhaps in another shape or in part: numbers, be they of an unknown dtype."""
    each: Fact | None = fact
    for _ in range(_FAR):
        made = each.provenance if each is not None else None
        if isinstance(made, ast.BinOp | ast.AugAssign):
            return gives_numbers(made)
        if isinstance(made, ast.UnaryOp):
            return isinstance(made.op, ast.USub)
        if each is None or not (made == () or isinstance(made, ast.Subscript) or _keeps_values(made)):
            return False
        each = each.source
    return False


_FAR = 8  # links of what a fact was derived from
# of bools PyTorch refuses them
_ONLY_NUMBERS = ast.Sub, ast.FloorDiv, ast.Mod, ast.Div, ast.Pow, ast.LShift, ast.RShift


def gives_numbers(node: ast.BinOp | ast.AugAssign) -> bool:
    """Whether arithmetic gives numbers; two masks may be multiplied for `and`, and added for `or`."""
    if isinstance(node.op, _ONLY_NUMBERS):
        return True
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.target, node.value)
    return isinstance(node.op, ast.Mult | ast.Add) and any(map(_is_number, sides))


def is_made_of_numbers(frame: Frame, part: ast.expr) -> bool:
    """Whether each value that a function gives a name is arithmetic, or whole numbers, of whatever it is made."""
    if not isinstance(part, ast.Name) or frame.function is None:
        return False
    given = [
        each.value
        for each in statements(frame.function.node)
        if isinstance(each, ast.Assign) and any(isinstance(t, ast.Name) and t.id == part.id for t in each.targets)
    ]
    return bool(given) and all(map(_makes_numbers, given))


def _makes_numbers(value: ast.expr) -> bool:
    while _keeps_values(value):
        value = value.func.value  # type: ignore[attr-defined]  # it is a method
    if isinstance(value, ast.Call):
        return name_of(value.func) in _WHOLE
    return isinstance(value, ast.BinOp) and gives_numbers(value)


_WHOLE = frozenset("long int argmax argmin arange argsort randint randperm bincount searchsorted bucketize".split())


def _is_number(node: ast.expr) -> bool:
    node = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(node, ast.Constant) and node.value.__class__ in (int, float)


def _keeps_values(node: object) -> bool:
    """Whether it is a method that gives the same values in another shape or at another place."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _KEEP_DTYPE


def mask_like(node: ast.expr) -> int:
    """How surely people call a mask so: 2, 1 when a list of positions may be called so as well, or 0."""
    while isinstance(node, (ast.Subscript, ast.UnaryOp, ast.Call)):
        if isinstance(node, ast.UnaryOp):
            if isinstance(node.op, ast.Invert):
                return 2
            node = node.operand
        elif isinstance(node, ast.Call):
            if not (isinstance(node.func, ast.Attribute) and node.func.attr in _KEEP_VALUES):
                break
            node = node.func.value  # `mask.expand_as(x)`
        elif text_of(node.slice) is not None:
            break  # `state["mask"]`
        else:
            node = node.value
    return conventions.is_mask(last_word(node))
