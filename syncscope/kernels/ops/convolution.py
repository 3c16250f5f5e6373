"""Convolutions of one to three dimensions, also transposed, grouped, strided and dilated: contractions, and depthwise ones."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from syncscope.kernels import channels_last, fallback, precision, queue, storage, winograd
from syncscope.kernels.channels_last import Copies
from syncscope.kernels.device import device, is_gpu
from syncscope.kernels.fold import fold
from syncscope.kernels.generate import convolutions, run
from syncscope.kernels.generate.convolutions import Geometry, Lying
from syncscope.kernels.generate.ir import Contraction
from syncscope.kernels.operators import op
from syncscope.kernels.ops.copying import dense
from syncscope.kernels.programs import computed, elements, floating, kernel

Ints = Sequence[int]
_GROUP = 64
_LARGEST = 64  # taps of a depthwise convolution that are written out


def _native(*tensors: Tensor | None) -> bool:
    given = [t for t in tensors if t is not None]
    return all(floating(t.dtype) and t.dtype == given[0].dtype and t.numel() for t in given)


@op("convolution_overrideable", asks=precision.convolutions)
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
) -> Tensor:
    """Convolution of one to three dimensions, also transposed; integers go to the CPU."""
    rest = (transposed, output_padding, groups)
    if not _native(input, weight, bias):
        result: Tensor = fallback.on_cpu(
            torch.ops.aten.convolution.default, input, weight, bias, stride, padding, dilation, *rest
        )
        return result
    input, weight = dense(input), dense(weight)
    bias = None if bias is None else dense(bias)
    taps = [e * (k - 1) + 1 for e, k in zip(dilation, weight.shape[2:], strict=True)]
    lengths = zip(input.shape[2:], stride, padding, taps, output_padding, strict=True)
    if transposed:
        made = [(x - 1) * s - 2 * p + k + more for x, s, p, k, more in lengths]
        out = storage.empty([input.shape[0], weight.shape[1] * groups, *made], input.dtype)
        return _backward_input(
            _geometry(out, weight, input, stride, padding, dilation, groups), input, weight, bias, out
        )
    made = [(x + 2 * p - k) // s + 1 for x, s, p, k, _ in lengths]
    out = storage.empty([input.shape[0], weight.shape[0], *made], input.dtype)
    return _forward(_geometry(input, weight, out, stride, padding, dilation, groups), input, weight, bias, out)


@op("convolution_backward_overrideable", asks=precision.convolutions)
def convolution_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of input, weight and bias, each where the mask asks for it."""
    rest = (transposed, output_padding, groups, output_mask)
    if not _native(grad_output, input, weight):
        sizes = [grad_output.shape[1]] if output_mask[2] else None
        result: tuple[Tensor, Tensor, Tensor] = fallback.on_cpu(
            torch.ops.aten.convolution_backward.default,
            grad_output, input, weight, sizes, stride, padding, dilation, *rest,
        )  # fmt: skip
        return result
    grad, input, weight = dense(grad_output), dense(input), dense(weight)
    image, made = (grad, input) if transposed else (input, grad)
    g = _geometry(image, weight, made, stride, padding, dilation, groups)
    grad_input = grad_weight = None
    copies = Copies()
    if output_mask[0]:
        grad_input = storage.empty(input.shape, input.dtype)
        (_forward if transposed else _backward_input)(g, grad, weight, None, grad_input, copies)
    if output_mask[1]:
        grad_weight = _backward_weight(g, image, made, storage.empty(weight.shape, weight.dtype), copies)
    over = (0, *range(2, grad.dim()))
    return grad_input, grad_weight, grad.sum(over) if output_mask[2] else None


def _geometry(
    image: Tensor, weight: Tensor, made: Tensor, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Geometry:
    shapes = tuple(image.shape), tuple(weight.shape), tuple(made.shape)
    return Geometry(*shapes, tuple(stride), tuple(padding), tuple(dilation), groups)


def _forward(
    g: Geometry, image: Tensor, weight: Tensor, bias: Tensor | None, out: Tensor, copies: Copies | None = None
) -> Tensor:
    if _is_depthwise(g):
        return _depthwise("conv_depthwise", g, image, weight, bias, out)
    tf32 = _tf32(out)
    if not tf32 and winograd.pays("conv_forward", g, out.dtype):
        return winograd.forward(g, image, weight, bias, out)
    where = run.aligned(weight, image, out)
    plans, lying = _plans("conv_forward", g, bias is not None, out.dtype, where, run.SHAPE, tf32)
    first, second = _lying(lying, weight, image, copies)
    for plan in plans:
        plan(first, second, bias, out)
    return out


def _backward_input(
    g: Geometry, grad: Tensor, weight: Tensor, bias: Tensor | None, out: Tensor, copies: Copies | None = None
) -> Tensor:
    """Also the forward of a transposed convolution, which has a bias."""
    if _is_depthwise(g):
        return _depthwise("conv_depthwise_backward_input", g, grad, weight, bias, out)
    tf32 = _tf32(out)
    if not tf32 and winograd.pays("conv_backward_input", g, out.dtype):
        return winograd.backward_input(g, grad, weight, bias, out)
    where = run.aligned(weight, grad, out)
    plans, lying = _plans("conv_backward_input", g, bias is not None, out.dtype, where, run.SHAPE, tf32)
    copies = copies or Copies()
    if lying is _LAST:
        first, second = copies.of_weight(weight), copies.of(grad)
    else:
        first, second = weight, _padded(grad, lying)
    for plan in plans:
        plan(first, second, bias, out)
    return out


def _backward_weight(g: Geometry, image: Tensor, grad: Tensor, out: Tensor, copies: Copies) -> Tensor:
    if _is_depthwise(g):
        taps = math.prod(g.weight[2:])
        pixels = g.made[0] * math.prod(g.made[2:])
        shares = max(1, min(_round(pixels // 64, 32), 1024)) if is_gpu else device.max_compute_units
        parts = storage.empty([shares, g.made[1], taps], computed(out.dtype))
        queue.launch(
            _depthwise_kernel("conv_depthwise_backward_weight", g, out.dtype), (shares, g.made[1]), (min(shares, 32), 1),
            storage.buffer(image), image.storage_offset(), storage.buffer(grad), grad.storage_offset(),
            storage.buffer(parts), g.made[0],
        )  # fmt: skip
        fold("sum", parts, [0], out.view(g.made[1], taps), parts.dtype)
        return out
    tf32 = _tf32(out)
    if not tf32 and winograd.pays("conv_backward_weight", g, out.dtype):
        return winograd.backward_weight(g, image, grad, out)
    where = run.aligned(grad, image, out)
    plans, lying = _plans("conv_backward_weight", g, False, out.dtype, where, run.SHAPE, tf32)
    first, second = _lying(lying, grad, image, copies)
    for plan in plans:
        plan(first, second, None, out)
    return out


def _tf32(out: Tensor) -> bool:
    """Whether it is made in TF32, and then directly: Winograd's way would lose more of its eleven bits."""
    return out.dtype is torch.float32 and precision.convolutions()


_LAST = Lying((), ())  # in copies with channels innermost


@functools.lru_cache(4096)
def _plans(
    name: str, g: Geometry, bias: bool, dtype: torch.dtype, aligned: tuple[bool, ...], shape: str, tf32: bool
) -> tuple[list[run.Plan], Lying | None]:
    """What makes a pass, and how the operands must lie: with margins, or as `_LAST` says."""
    lying = None
    if shape == "cpu" and len(g.stride) == 2 and convolutions.columns(name, g) >= 8:
        backward = name == "conv_backward_input"
        lying = convolutions.margins_made(g) if backward else convolutions.margins(g)
        if lying.shape == (g.made if backward else g.image):
            lying = None
        else:
            aligned = (True, True, True)
    contractions = _contractions(name, g, bias, lying)
    if channels_last.suits(g, contractions, aligned, dtype, tf32):
        contractions = _contractions(name, g, bias, None, last=True)
        if tf32:
            contractions = [channels_last.rounded(c) for c in contractions]
        lying, aligned = _LAST, (True, True, aligned[2])
    return [run.plan(c, dtype, aligned, tf32=tf32) for c in contractions], lying


def _contractions(name: str, g: Geometry, bias: bool, lying: Lying | None, last: bool = False) -> list[Contraction]:
    if name == "conv_backward_input":
        return list(convolutions.backward_input(g, name, bias, lying, last))
    if name == "conv_forward":
        return [convolutions.forward(g, name, bias, lying, last)]
    return [convolutions.backward_weight(g, name, lying, last)]


def _lying(lying: Lying | None, first: Tensor, second: Tensor, copies: Copies | None) -> tuple[Tensor, Tensor]:
    """Both operands as they must lie; it is the second that gets margins."""
    if lying is _LAST:
        copies = copies or Copies()
        return copies.of(first), copies.of(second)
    return first, _padded(second, lying)


def _padded(image: Tensor, lying: Lying | None) -> Tensor:
    if lying is None:
        return image
    out = storage.empty(lying.shape, image.dtype)
    rows = math.prod(lying.shape[:-1])
    queue.launch(
        kernel("conv", "conv_pad", **elements(image.dtype), ROUND=0), (_round(rows, 4),), (4,),
        storage.buffer(image), image.storage_offset(), storage.buffer(out),
        *image.shape[2:], *lying.first, *lying.shape[2:], rows,
    )  # fmt: skip
    return out


def _is_depthwise(g: Geometry) -> bool:
    return g.weight[1] == 1 and len(g.stride) == 2 and g.groups > 1 and math.prod(g.weight[2:]) <= _LARGEST


def _depthwise_kernel(name: str, g: Geometry, dtype: torch.dtype) -> object:
    names = "C OH OW H W KH KW SY SX PY PX DY DX TIMES".split()
    sizes = (*g.made[1:], *g.image[2:], *g.weight[2:], *g.stride, *g.padding, *g.dilation, g.made[1] // g.groups)
    macros: dict[str, str | int] = dict(zip(names, sizes, strict=True))
    return kernel("depthwise", name, **elements(dtype), **macros)


def _depthwise(name: str, g: Geometry, image: Tensor, weight: Tensor, bias: Tensor | None, out: Tensor) -> Tensor:
    planes, pixels = out.shape[0] * out.shape[1], out.shape[2] * out.shape[3]
    queue.launch(
        _depthwise_kernel(name, g, out.dtype), (_round(pixels, _GROUP), planes), (_GROUP, 1),
        storage.buffer(image), image.storage_offset(), storage.buffer(weight), weight.storage_offset(),
        storage.buffer(weight if bias is None else bias), 0 if bias is None else bias.storage_offset(), int(bias is not None),
        storage.buffer(out),
    )  # fmt: skip
    return out


def _round(n: int, step: int) -> int:
    return -(-n // step) * step
