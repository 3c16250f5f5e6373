"""Negative log likelihood, for lists and for images, forward and backward."""

from __future__ import annotations

import pyopencl as cl
import torch
from torch import Tensor

from syncscope.kernels import programs, queue, storage
from syncscope.kernels.operators import NotNative, op
from syncscope.kernels.ops.copying import dense
from syncscope.kernels.programs import C_TYPE, kernel, supported

_NONE, _MEAN, _SUM = 0, 1, 2
_GROUP = (64,)
_LEAST, _MOST = 1024, 1024  # targets of a work-group at least; work-groups at most


def _check(self: Tensor, target: Tensor, weight: Tensor | None) -> None:
    if not self.dtype.is_floating_point or not supported(self.dtype) or target.dtype != torch.int64:
        raise NotNative
    if weight is not None and weight.dtype != self.dtype:
        raise NotNative


def _shape(self: Tensor) -> tuple[int, int]:
    """Classes, and pixels of one image (1 for a list)."""
    return self.shape[max(self.dim() - 3, 0) if self.dim() == 4 else self.dim() - 1], (
        self.shape[2] * self.shape[3] if self.dim() == 4 else 1
    )


def _forward(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore: int, out: Tensor, total: Tensor
) -> tuple[Tensor, Tensor]:
    """Losses into `out`, or their sum or mean; the sum of the weights into `total`."""
    _check(self, target, weight)
    if not target.numel():
        raise NotNative
    self, target = dense(self), dense(target)
    weight = None if weight is None else dense(weight)
    classes, pixels = _shape(self)
    where = (
        storage.buffer(self), self.storage_offset(), storage.buffer(target), target.storage_offset(),
        storage.buffer(self if weight is None else weight), 0 if weight is None else weight.storage_offset(),
        int(weight is not None),
    )  # fmt: skip
    if reduction == _NONE:
        losses = storage.empty(target.shape, self.dtype)
        queue.launch(
            _kernel("nll_loss_each", self.dtype), (-(-target.numel() // 64) * 64,), _GROUP, *where, storage.buffer(losses),
            target.numel(), classes, pixels, ignore,
        )  # fmt: skip
        return out.copy_(losses), total.zero_()
    length = max(-(-target.numel() // _MOST), _LEAST)
    groups = -(-target.numel() // length)
    parts = storage.empty([2 * groups if groups > 1 else 0], self.dtype)
    results = (storage.buffer(out), out.storage_offset(), storage.buffer(total), total.storage_offset())
    mean = int(reduction == _MEAN)
    team = (programs.GROUP,)
    queue.launch(
        _kernel("nll_loss_forward", self.dtype), (groups * programs.GROUP,), team,
        *where, storage.buffer(parts), *results, mean, target.numel(), length, classes, pixels, ignore,
    )  # fmt: skip
    if groups > 1:
        queue.launch(_kernel("nll_loss_total", self.dtype), team, team, storage.buffer(parts), groups, *results, mean)
    return out, total


def _kernel(name: str, dtype: torch.dtype) -> cl.Kernel:
    return kernel("loss", name, T=C_TYPE[dtype], GROUP=programs.GROUP, LANES=programs.GROUP, V=1)


def _backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore: int,
    total_weight: Tensor,
    out: Tensor,
) -> Tensor:
    _check(self, target, weight)
    target, grad_output = dense(target), dense(grad_output)
    weight = None if weight is None else dense(weight)
    classes, pixels = _shape(self)
    made = out if out.is_contiguous() and not out.storage_offset() else storage.empty(self.shape, self.dtype)
    if made.numel():
        queue.launch(
            _kernel("nll_loss_backward", self.dtype), (-(-made.numel() // 64) * 64,), _GROUP,
            storage.buffer(grad_output), grad_output.storage_offset(), int(reduction == _NONE),
            storage.buffer(target), target.storage_offset(),
            storage.buffer(made if weight is None else weight), 0 if weight is None else weight.storage_offset(),
            int(weight is not None), storage.buffer(total_weight), total_weight.storage_offset(), int(reduction == _MEAN),
            storage.buffer(made), made.numel(), classes, pixels, ignore,
        )  # fmt: skip
    return out if made is out else out.copy_(made)


@op("nll_loss_forward.output")
def nll_loss_forward(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    *,
    output: Tensor,
    total_weight: Tensor,
) -> tuple[Tensor, Tensor]:
    """Loss of a list of predictions."""
    return _forward(self, target, weight, reduction, ignore_index, output, total_weight)


@op("nll_loss_backward.grad_input")
def nll_loss_backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
    *,
    grad_input: Tensor,
) -> Tensor:
    """Gradient of the loss of a list."""
    return _backward(grad_output, self, target, weight, reduction, ignore_index, total_weight, grad_input)


@op("nll_loss2d_forward")
def nll_loss2d_forward(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Loss of images of predictions."""
    out, total = storage.empty(target.shape if reduction == _NONE else [], self.dtype), storage.empty([], self.dtype)
    return _forward(self, target, weight, reduction, ignore_index, out, total)


@op("nll_loss2d_backward")
def nll_loss2d_backward(
    grad_output: Tensor,
    self: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    """Gradient of the loss of images."""
    out = storage.empty(self.shape, self.dtype)
    return _backward(grad_output, self, target, weight, reduction, ignore_index, total_weight, out)
