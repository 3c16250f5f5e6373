"""What is part of a loader's batch, and was not sent anywhere since: batches are made on the host."""

from __future__ import annotations

import ast

from syncscope.model.fact import Fact
from syncscope.project.syntax import each_of, name_of
from syncscope.tensors.facts import BATCH, TENSOR

SHAPING = set("unsqueeze view reshape repeat flatten t transpose permute".split())
SAME = frozenset(("detach", "contiguous"))  # what was made just now is given as it is
CONVERTING = {"to", "type", "long", "int", "short", "float", "double", "half", "bfloat16", "bool", "byte"}
_CONVERTING = (CONVERTING - {"to"}) | SHAPING | {"cat", "concat", "stack"}


def of_a_batch(fact: Fact) -> bool:
    """Whether it is part of what people call a loader's, perhaps converted: batches are made on the host."""
    part: Fact | None = fact
    while part is not None and part.kind is TENSOR and (part.provenance == () or _converts(part.provenance)):
        part = part.source
    return part is not None and part.kind is BATCH


def _converts(said: object) -> bool:
    """Whether this gives another dtype or shape, or a part, and nothing else, or joins what is given: the views of a batch."""
    if isinstance(said, ast.Subscript):
        return is_cut(said.slice)
    return isinstance(said, ast.Call) and name_of(said.func) in _CONVERTING


def is_cut(index: ast.expr) -> bool:
    """Whether an index only cuts, or adds dimensions: `[:, None]`, `[:, -1]`."""
    return all(isinstance(each, (ast.Slice, ast.Constant)) or _is_negative(each) for each in each_of(index))


def _is_negative(index: ast.expr) -> bool:
    return isinstance(index, ast.UnaryOp) and isinstance(index.operand, ast.Constant)
