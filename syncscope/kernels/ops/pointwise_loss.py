"""Losses made element by element and then reduced: one line of C for the loss and one for its slope in `self`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor

from syncscope.kernels import storage
from syncscope.kernels.elementwise import Pointwise, apply, promoted
from syncscope.kernels.operators import NotNative, into_out, native
from syncscope.kernels.walks import result_shape

_NONE, _MEAN = 0, 1


class Loss(NamedTuple):
    """The loss of an element, its slope, and the name of its number, if it has one."""

    loss: str
    slope: str
    number: str = ""
    default: float = 1.0


_LOSSES = {
    "mse_loss": Loss("(self - target) * (self - target)", "2 * (self - target)"),
    "smooth_l1_loss": Loss(
        "fabs(self - target) < beta ? (T)0.5 * (self - target) * (self - target) / beta : fabs(self - target) - (T)0.5 * beta",
        "fabs(self - target) < beta ? (self - target) / beta : sign(self - target)",
        "beta",
    ),
    "huber_loss": Loss(
        "fabs(self - target) <= delta ? (T)0.5 * (self - target) * (self - target) : "
        "delta * (fabs(self - target) - (T)0.5 * delta)",
        "fabs(self - target) <= delta ? self - target : delta * sign(self - target)",
        "delta",
    ),
}
_OF_PROBABILITIES = Loss(  # logarithms end at -100, as torch's do
    "(target - 1) * (log1p(-self) < -100 ? (T)-100 : log1p(-self)) - target * (log(self) < -100 ? (T)-100 : log(self))",
    "(self - target) / fmax((1 - self) * self, (T)1e-12)",
)


def _forward(name: str, loss: Loss) -> Callable[..., Tensor]:
    numbers = (loss.number,) if loss.number else ()
    op = Pointwise(name, loss.loss, ("self", "target"), numbers, "floating")

    def run(self: Tensor, target: Tensor, reduction: int = _MEAN, *number: float) -> Tensor:
        given = number or (loss.default,) * len(numbers)
        each = storage.empty(result_shape((self, target)), promoted(op, (self, target)))
        apply(op, each, (self, target), given)
        return each if reduction == _NONE else each.mean() if reduction == _MEAN else each.sum()

    return run


def _backward(name: str, loss: Loss) -> Callable[..., Tensor]:
    numbers = (loss.number,) if loss.number else ()
    op = Pointwise(
        f"{name}_backward", f"scale * g * ({loss.slope})", ("g", "self", "target"), ("scale", *numbers), "floating"
    )

    def run(grad_output: Tensor, self: Tensor, target: Tensor, reduction: int, *number: float) -> Tensor:
        out = storage.empty(result_shape((grad_output, self, target)), promoted(op, (grad_output, self, target)))
        scale = 1 / max(out.numel(), 1) if reduction == _MEAN else 1.0
        return apply(op, out, (grad_output, self, target), (scale, *number))

    return run


def _into(kernel: Callable[..., Tensor], output: str) -> Callable[..., Tensor]:
    plain = into_out(kernel)
    return lambda *args, **kwargs: plain(*args, out=kwargs[output])


for _name, _loss in _LOSSES.items():
    _run, _slope = _forward(_name, _loss), _backward(_name, _loss)
    native[f"{_name}.out"] = into_out(_run)
    if _name == "huber_loss":
        native[_name] = _run
        native["huber_loss_backward.out"] = _into(_slope, "grad_input")
    else:
        native[f"{_name}_backward.grad_input"] = _into(_slope, "grad_input")
    if _name == "mse_loss":
        native["mse_loss_backward"] = _slope


_entropy = _forward("binary_cross_entropy", _OF_PROBABILITIES)
_slope_of_entropy = _backward("binary_cross_entropy", _OF_PROBABILITIES)


def _binary_cross_entropy(self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = _MEAN) -> Tensor:
    if weight is not None:
        raise NotNative
    return _entropy(self, target, reduction)


def _binary_cross_entropy_backward(
    grad_output: Tensor, self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = _MEAN
) -> Tensor:
    if weight is not None:
        raise NotNative
    return _slope_of_entropy(grad_output, self, target, reduction)


native["binary_cross_entropy"] = _binary_cross_entropy
native["binary_cross_entropy.out"] = into_out(_binary_cross_entropy)
native["binary_cross_entropy_backward"] = _binary_cross_entropy_backward
native["binary_cross_entropy_backward.grad_input"] = _into(_binary_cross_entropy_backward, "grad_input")
