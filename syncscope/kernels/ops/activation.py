"""Pointwise operators whose arguments choose between expressions."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.types import Number

from syncscope.kernels import storage
from syncscope.kernels.elementwise import Operand, Pointwise, apply
from syncscope.kernels.operators import NotNative, native, op
from syncscope.kernels.walks import result_shape

_GELU = {
    "none": Pointwise("gelu", "self * normal_cdf(self)", ("self",), kind="floating"),
    "tanh": Pointwise("gelu_tanh", "gelu_tanh(self)", ("self",), kind="floating"),
}
_GELU_BACKWARD = {
    "none": Pointwise("gelu_backward", "g * gelu_slope(self)", ("g", "self"), kind="floating"),
    "tanh": Pointwise("gelu_tanh_backward", "g * gelu_tanh_slope(self)", ("g", "self"), kind="floating"),
}
_DIVIDE = {
    "floor": Pointwise("floor_divide", "floor_quotient(self, other)", ("self", "other")),
    "trunc": Pointwise("trunc_divide", "cut_quotient(self, other)", ("self", "other")),
}
_CLAMP = Pointwise(
    "clamp",
    "self != self ? self : low != low ? low : high != high ? high : (self < low ? low : self) > high ? high : "
    "self < low ? low : self",
    ("self", "low", "high"),
)
_WHOLE_POWERS = {  # of any type
    1: Pointwise("itself", "self", ("self",)),
    2: Pointwise("square", "self * self", ("self",)),
    3: Pointwise("cube", "self * self * self", ("self",)),
}
_POWERS = {  # as PyTorch's own
    0.5: Pointwise("sqrt", "sqrt(self)", ("self",), kind="floating"),
    -0.5: Pointwise("rsqrt", "1 / sqrt(self)", ("self",), kind="floating"),
    -1: Pointwise("reciprocal", "1 / self", ("self",), kind="floating"),
    -2: Pointwise("reciprocal_square", "1 / (self * self)", ("self",), kind="floating"),
}
_NOT = {
    True: Pointwise("logical_not", "self == 0", ("self",)),
    False: Pointwise("bitwise_not", "~self", ("self",), kind="integer"),
}
_NAN_TO_NUM = Pointwise(
    "nan_to_num", "self != self ? nan_ : self > high ? posinf : self < low ? neginf : self", ("self",),
    ("nan_", "posinf", "neginf", "high", "low"),
)  # fmt: skip


def _fits(out: Tensor, *inputs: Operand) -> Tensor:
    shape = result_shape(inputs)
    return out if out.shape == shape else storage.resize(out, shape)


@op("gelu.out")
def gelu(self: Tensor, *, approximate: str = "none", out: Tensor) -> Tensor:
    """The input times the normal distribution function of it."""
    return apply(_GELU[approximate], _fits(out, self), (self,))


@op("gelu_backward.grad_input")
def gelu_backward(grad_output: Tensor, self: Tensor, *, approximate: str = "none", grad_input: Tensor) -> Tensor:
    """Gradient of gelu."""
    return apply(_GELU_BACKWARD[approximate], _fits(grad_input, grad_output, self), (grad_output, self))


@op("div.out_mode")
def div_mode(self: Operand, other: Operand, *, rounding_mode: str | None, out: Tensor) -> Tensor:
    """Division rounded down or towards zero."""
    if rounding_mode is None:
        return native["div.out"](self, other, out=out)
    return apply(_DIVIDE[rounding_mode], _fits(out, self, other), (self, other))


@op("clamp.out", "clamp.Tensor_out")
def clamp(self: Tensor, min: Number | None = None, max: Number | None = None, *, out: Tensor) -> Tensor:
    """Values below `min` become `min`, above `max` become `max`, which wins."""
    if min is None:
        return native["clamp_max.Tensor_out"](self, max, out=out)
    if max is None:
        return native["clamp_min.Tensor_out"](self, min, out=out)
    return apply(_CLAMP, _fits(out, self, min, max), (self, min, max))


@op("pow.Tensor_Scalar_out")
def pow_scalar(self: Tensor, exponent: Number, *, out: Tensor) -> Tensor:
    """Powers; those that networks and optimizers take without `pow`, which costs twenty multiplications."""
    powers = _WHOLE_POWERS | _POWERS if out.dtype.is_floating_point else _WHOLE_POWERS
    if out.dtype == self.dtype and (power := powers.get(exponent)):
        return apply(power, _fits(out, self), (self,))
    return native["pow.Tensor_Tensor_out"](self, exponent, out=out)


@op("bitwise_not.out")
def bitwise_not(self: Tensor, *, out: Tensor) -> Tensor:
    """Every bit turned; of a bool, its opposite."""
    return apply(_NOT[self.dtype == torch.bool], _fits(out, self), (self,))


@op("nan_to_num.out")
def nan_to_num(
    self: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None, *, out: Tensor
) -> Tensor:
    """NaN and infinities replaced by numbers, by default the largest of the tensor's own dtype."""
    if not self.dtype.is_floating_point:
        raise NotNative
    largest = torch.finfo(self.dtype).max
    numbers = (
        nan or 0.0,
        largest if posinf is None else posinf,
        -largest if neginf is None else neginf,
        largest,
        -largest,
    )
    return apply(_NAN_TO_NUM, _fits(out, self), (self,), numbers)


_PRELU_TO_INPUT = Pointwise("prelu_backward", "self > 0 ? g : weight * g", ("g", "self", "weight"))
_PRELU_TO_WEIGHT = Pointwise("prelu_backward_weight", "self > 0 ? 0 : self * g", ("g", "self"))


@op("_prelu_kernel_backward")
def prelu_backward(grad_output: Tensor, self: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of input and slopes, both in the input's shape: PyTorch sums the latter."""
    to_input = apply(_PRELU_TO_INPUT, storage.empty(self.shape, self.dtype), (grad_output, self, weight))
    return to_input, apply(_PRELU_TO_WEIGHT, storage.empty(self.shape, self.dtype), (grad_output, self))


_LOG_SIGMOID = Pointwise("log_sigmoid", "-softplus(-self)", ("self",), kind="floating")
_LOG_SIGMOID_BACKWARD = Pointwise("log_sigmoid_backward", "g * sigmoid(-self)", ("g", "self"), kind="floating")


@op("log_sigmoid_forward")
def log_sigmoid(self: Tensor) -> tuple[Tensor, Tensor]:
    """Logarithm of the sigmoid; the buffer that the CPU keeps for its gradient stays empty."""
    return apply(_LOG_SIGMOID, storage.empty(self.shape, self.dtype), (self,)), storage.empty([0], self.dtype)


@op("log_sigmoid_backward")
def log_sigmoid_backward(grad_output: Tensor, self: Tensor, buffer: Tensor) -> Tensor:
    """Gradient of the logarithm of the sigmoid."""
    return apply(_LOG_SIGMOID_BACKWARD, storage.empty(self.shape, self.dtype), (grad_output, self))
