"""Functions of torch that read a value of the device on their own, to check it or to size their result.

Which do was measured (tests/rules/cuda_waits.txt): their names do not tell.
"""

from __future__ import annotations

import ast

from syncscope.model.fact import Fact
from syncscope.model.ops import Op
from syncscope.tensors.call import Call
from syncscope.tensors.facts import HOST, SCALAR, TENSOR

# By their last word: functions and methods alike.
INSIDE = frozenset(
    """histc cov corrcoef istft norm matrix_norm clamp clip masked_fill masked_fill_ matrix_power narrow normal
    gaussian_nll_loss grouped_mm""".split()
)
_SPREADS = {"normal": (1, "std"), "gaussian_nll_loss": (2, "var")}  # what must not be negative: where it is a tensor
_SPECTRAL = (2, -2, "nuc")  # orders of a matrix norm that are made of singular values


def read_inside(call: Call, held: Fact | None, shift: int) -> None:
    """Emit what such a call reads; `shift` is 1 for a method, whose tensor is not among its arguments."""
    if held is None or held.device is HOST:
        return
    word = call.word
    at = call.at if shift else call.node_of(0, "input")
    if word in ("clamp", "clip"):
        _bounds(call, 1 - shift)
    elif word in ("masked_fill", "masked_fill_"):
        _filling(call, 2 - shift)
    elif word == "narrow":
        if call.given(2 - shift, "start").kind is TENSOR:
            call.emit(Op.SCALAR_SLOT, call.node_of(2 - shift, "start"), held)
    elif word == "matrix_power":
        if _is_negative(call.node_of(1 - shift, "n")):  # the inverse is made first
            call.emit(Op.LINALG_CHECK, at, held, 2)
    elif word in _SPREADS:
        position, name = _SPREADS[word]
        if shift == 0 and call.given(position, name).kind is TENSOR:
            call.emit(Op.LIBRARY_READ, call.node_of(position, name), held)
    elif word in ("norm", "matrix_norm"):
        if _spectral(call, held, 1 - shift):
            call.emit(Op.LINALG_CHECK, at, held, 2)
    elif word == "grouped_mm":
        call.emit(Op.LIBRARY_READ, call.node_of(2, "offs"), held, 1)  # of other dtypes than bfloat16 group by group
    elif word != "histc" or not _range_given(call, 2 - shift):
        call.emit(Op.LIBRARY_READ, at, held)


def _bounds(call: Call, first: int) -> None:
    """`torch.clamp(x, 0, high)`: beside a number a tensor is taken for one, too."""
    bounds = [(call.node_of(at, name), call.given(at, name)) for at, name in enumerate(("min", "max"), first)]
    for (at, fact), (_, other) in (bounds, bounds[::-1]):
        if fact.kind is TENSOR and other.kind is SCALAR:
            call.emit(Op.SCALAR_SLOT, at, fact)


def _filling(call: Call, position: int) -> None:
    """`x.masked_fill(m, t)`: PyTorch fills with a number, for which it asks a tensor of the device (masked_fill__cuda)."""
    fact = call.given(position, "value")
    if fact.kind is TENSOR:
        call.emit(Op.SCALAR_SLOT, call.node_of(position, "value"), fact)


def _spectral(call: Call, held: Fact, position: int) -> bool:
    order = call.node_of(position, "ord", "p")
    negative = isinstance(order, ast.UnaryOp) and isinstance(order.op, ast.USub)
    value = order.operand if isinstance(order, ast.UnaryOp) else order
    if not isinstance(value, ast.Constant):
        return False
    number = -value.value if negative and isinstance(value.value, int) else value.value
    if number == "nuc":
        return True
    of_matrix = call.word == "matrix_norm" or (held.ndim == 2 and all(k.arg != "dim" for k in call.node.keywords))
    return call.name.startswith("torch.linalg") and number in _SPECTRAL and of_matrix


def _is_negative(node: ast.expr | None) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)


def _range_given(call: Call, first: int) -> bool:
    """`torch.histc(x, bins, min, max)`: only without a range, or with an empty one, the values are asked for it."""
    low, high = (
        ast.unparse(call.node_of(at, name) or ast.Constant(0)) for at, name in ((first, "min"), (first + 1, "max"))
    )
    return low != high
