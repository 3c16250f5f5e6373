"""Functions of torch that read a value of the device on their own, to check it or to size their result.

Which do was measured (tests/rules/cuda_waits.txt): their names do not tell.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import UNKNOWN, Fact
from syncscope.tensors.facts import HOST, SCALAR, TENSOR
from syncscope.tensors.frame import Frame

Keywords = dict[str | None, Fact]

# By their last word: functions and methods alike.
INSIDE = frozenset(
    ["histc", "cov", "corrcoef", "istft", "norm", "matrix_norm", "clamp", "clip", "masked_fill", "masked_fill_"]
)
_SPECTRAL = (2, -2, "nuc")  # orders of a matrix norm that are made of singular values


def read_inside(
    frame: Frame, node: ast.Call, dotted: str, held: Fact | None, args: list[Fact], keywords: Keywords, shift: int
) -> None:
    """Emit what such a call reads; `shift` is 1 for a method, whose tensor is not among its arguments."""
    if held is None or held.device is HOST:
        return
    word = dotted.rpartition(".")[2]
    at = node.args[0] if shift == 0 and node.args else getattr(node.func, "value", None)
    if word in ("clamp", "clip"):
        _bounds(frame, node, args, keywords, 1 - shift)
    elif word in ("masked_fill", "masked_fill_"):
        _filling(frame, node, args, keywords, 2 - shift)
    elif word in ("norm", "matrix_norm"):
        if _spectral(node, word, held, dotted.startswith("torch.linalg"), 1 - shift):
            frame.emit("linalg_check", node, at, held, 2)
    elif word != "histc" or not _range_given(node, 2 - shift):
        frame.emit("library_read", node, at, held)


def _bounds(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords, first: int) -> None:
    """`torch.clamp(x, 0, high)`: beside a number a tensor is taken for one, too."""
    named = {k.arg: k.value for k in node.keywords}
    bounds = [
        (node.args[at], args[at]) if at < len(args) else (named.get(name), keywords.get(name, UNKNOWN))
        for at, name in enumerate(("min", "max"), first)
    ]
    for (at, fact), (_, other) in (bounds, bounds[::-1]):
        if fact.kind is TENSOR and other.kind is SCALAR:
            frame.emit("scalar_slot", node, at, fact)


def _filling(frame: Frame, node: ast.Call, args: list[Fact], keywords: Keywords, position: int) -> None:
    """`x.masked_fill(m, t)`: PyTorch fills with a number, for which it asks a tensor of the device (masked_fill__cuda)."""
    named = {k.arg: k.value for k in node.keywords}
    fact = args[position] if position < len(args) else keywords.get("value", UNKNOWN)
    if fact.kind is TENSOR:
        frame.emit("scalar_slot", node, node.args[position] if position < len(args) else named["value"], fact)


def _spectral(node: ast.Call, word: str, held: Fact, linalg: bool, position: int) -> bool:
    named = {k.arg: k.value for k in node.keywords}
    order = node.args[position] if len(node.args) > position else named.get("ord", named.get("p"))
    negative = isinstance(order, ast.UnaryOp) and isinstance(order.op, ast.USub)
    value = order.operand if isinstance(order, ast.UnaryOp) else order
    if not isinstance(value, ast.Constant):
        return False
    number = -value.value if negative and isinstance(value.value, int) else value.value
    if number == "nuc":
        return True
    return linalg and number in _SPECTRAL and (word == "matrix_norm" or (held.ndim == 2 and "dim" not in named))


def _range_given(node: ast.Call, first: int) -> bool:
    """`torch.histc(x, bins, min, max)`: only without a range, or with an empty one, the values are asked for it."""
    named = {k.arg: k.value for k in node.keywords}
    low, high = (
        ast.unparse(node.args[at] if at < len(node.args) else named.get(name, ast.Constant(0)))
        for at, name in ((first, "min"), (first + 1, "max"))
    )
    return low != high
