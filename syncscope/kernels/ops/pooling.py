"""Pooling of images: largest, average, and average to a given size; forward and backward."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from syncscope.kernels import queue, storage
from syncscope.kernels.generate.text import divided
from syncscope.kernels.operators import NotNative, op
from syncscope.kernels.ops.copying import dense
from syncscope.kernels.programs import computed, elements, floating, kernel

Ints = Sequence[int]
_GROUP = (64,)
_LOWEST = {torch.float32: "-INFINITY", torch.float64: "-(double)INFINITY"}  # of what is computed in


def _pair(values: Ints, default: Ints = ()) -> tuple[int, int]:
    values = values or default
    return (values[0], values[-1])


_NO_WINDOW = dict.fromkeys("KH KW SH SW PH PW DH DW".split(), 1)  # where it is given as arguments


def _run(name: str, total: int, dtype: torch.dtype, *arguments: queue.Argument, **window: int) -> None:
    program = kernel("pool", name, LOWEST=_LOWEST[computed(dtype)], **elements(dtype), **window or _NO_WINDOW)
    queue.launch(program, (-(-total // _GROUP[0]) * _GROUP[0],), _GROUP, *arguments)


def _check(*tensors: Tensor) -> None:
    if not floating(*(t.dtype for t in tensors)):
        raise NotNative


def _plain(out: Tensor) -> Tensor:
    return out if out.is_contiguous() else storage.empty(out.shape, out.dtype)


@op("max_pool2d_with_indices.out")
def max_pool2d(
    self: Tensor,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Ints = (0,),
    dilation: Ints = (1,),
    ceil_mode: bool = False,
    *,
    out: Tensor,
    indices: Tensor,
) -> tuple[Tensor, Tensor]:
    """Largest pixel of each window, and its place in its image."""
    _check(self)
    if out.numel():
        x, made, places = dense(self), _plain(out), _plain(indices)
        size = _pair(kernel_size)
        _run(
            "max_pool2d_forward", out.numel(), x.dtype, storage.buffer(x), x.storage_offset(),
            storage.buffer(made), made.storage_offset(), storage.buffer(places), places.storage_offset(), out.numel(),
            *x.shape[-2:], *out.shape[-2:], *size, *_pair(stride, size), *_pair(padding), *_pair(dilation),
        )  # fmt: skip
        if made is not out:
            out.copy_(made)
        if places is not indices:
            indices.copy_(places)
    return out, indices


@op("max_pool2d_with_indices_backward.grad_input")
def max_pool2d_backward(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    ceil_mode: bool,
    indices: Tensor,
    *,
    grad_input: Tensor,
) -> Tensor:
    """Each pixel's gradient from the windows that chose it."""
    _check(self)
    if not grad_input.numel():
        return grad_input
    grad, places, size = dense(grad_output), dense(indices), _pair(kernel_size)
    made = _plain(grad_input)
    height, width = self.shape[-2:]
    if made.numel() >= 1 << 31 or height * width >= 1 << 31:
        raise NotNative
    window = (*size, *_pair(stride, size), *_pair(padding), *_pair(dilation))
    macros = dict(zip("KH KW SH SW PH PW DH DW".split(), window, strict=True))
    _run(
        "max_pool2d_backward", made.numel(), self.dtype, storage.buffer(grad), grad.storage_offset(),
        storage.buffer(places), places.storage_offset(), storage.buffer(made), made.storage_offset(), made.numel(),
        height, width, *grad.shape[-2:], *divided(height), *divided(width), **macros,
    )  # fmt: skip
    return grad_input if made is grad_input else grad_input.copy_(made)


@op("avg_pool2d.out")
def avg_pool2d(
    self: Tensor,
    kernel_size: Ints,
    stride: Ints = (),
    padding: Ints = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Tensor,
) -> Tensor:
    """Average of each window."""
    _check(self)
    if out.numel():
        x, made, size = dense(self), _plain(out), _pair(kernel_size)
        _run(
            "avg_pool2d_forward", out.numel(), x.dtype, storage.buffer(x), x.storage_offset(),
            storage.buffer(made), made.storage_offset(), out.numel(), *x.shape[-2:], *out.shape[-2:],
            *size, *_pair(stride, size), *_pair(padding), int(count_include_pad), divisor_override or 0,
        )  # fmt: skip
        if made is not out:
            out.copy_(made)
    return out


@op("avg_pool2d_backward.grad_input")
def avg_pool2d_backward(
    grad_output: Tensor,
    self: Tensor,
    kernel_size: Ints,
    stride: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
    *,
    grad_input: Tensor,
) -> Tensor:
    """Each pixel's share of the gradients of its windows."""
    _check(self)
    if not grad_input.numel():
        return grad_input
    grad, size, made = dense(grad_output), _pair(kernel_size), _plain(grad_input)
    _run(
        "avg_pool2d_backward", made.numel(), self.dtype, storage.buffer(grad), grad.storage_offset(),
        storage.buffer(made), made.storage_offset(), made.numel(), *self.shape[-2:], *grad.shape[-2:],
        *size, *_pair(stride, size), *_pair(padding), int(count_include_pad), divisor_override or 0,
    )  # fmt: skip
    return grad_input if made is grad_input else grad_input.copy_(made)


@op("_adaptive_avg_pool2d")
def adaptive_avg_pool2d(self: Tensor, output_size: Ints) -> Tensor:
    """Average over as many windows as the output has pixels."""
    _check(self)
    x = dense(self)
    out = storage.empty([*self.shape[:-2], *output_size], self.dtype)
    if out.numel():
        _run(
            "adaptive_avg_pool2d_forward", out.numel(), x.dtype, storage.buffer(x), x.storage_offset(),
            storage.buffer(out), out.numel(), *x.shape[-2:], *output_size,
        )  # fmt: skip
    return out


@op("_adaptive_avg_pool2d_backward")
def adaptive_avg_pool2d_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    """Each pixel's share of the gradients of its windows."""
    _check(self)
    grad = dense(grad_output)
    out = storage.empty(self.shape, self.dtype)
    if out.numel():
        _run(
            "adaptive_avg_pool2d_backward", out.numel(), self.dtype, storage.buffer(grad), grad.storage_offset(),
            storage.buffer(out), out.numel(), *self.shape[-2:], *grad.shape[-2:],
        )  # fmt: skip
    return out
