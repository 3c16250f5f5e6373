"""Convolutions as matrix products, for strides and dilation; without them the register-blocked kernels are faster."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from syncscope.kernels import queue, storage
from syncscope.kernels.ops.matmul import gemm, multiply
from syncscope.kernels.programs import C_TYPE, kernel

Ints = Sequence[int]
_LARGEST = 1 << 28  # elements of a matrix of what every pixel sees; beyond, the direct kernels need no such memory


def fits(image: Tensor, made: Tensor, weight: Tensor) -> bool:
    """Whether there is anything to do, and room to do it; `image` is what the convolution reads, `made` what it makes."""
    taps = weight.shape[1] * weight.shape[2] * weight.shape[3]
    return bool(image.numel()) and made.shape[0] * made.shape[2] * made.shape[3] * taps <= _LARGEST


def _geometry(image: Tensor, made: Tensor, weight: Tensor, stride: Ints, padding: Ints, dilation: Ints) -> list[int]:
    return [*image.shape[1:], *made.shape[2:], *weight.shape[2:], *stride, *padding, *dilation]


def _seen(
    image: Tensor, made: Tensor, weight: Tensor, taps_are_rows: bool, *rest: Ints
) -> tuple[Tensor, tuple[int, ...]]:
    """The panels, with their offset and steps as `gemm` takes them."""
    taps, pixels = weight.shape[1] * weight.shape[2] * weight.shape[3], made.shape[2] * made.shape[3]
    rows, columns = (taps, pixels) if taps_are_rows else (pixels, taps)
    count = -(-columns // 8)
    panels = storage.empty([image.shape[0], count, rows, 8], image.dtype)
    total = image.shape[0] * count * rows
    queue.launch(
        kernel("conv", "conv2d_im2col", T=C_TYPE[image.dtype]), (-(-total // 64) * 64,), (64,),
        storage.buffer(image), image.storage_offset(), storage.buffer(panels), int(taps_are_rows),
        *_geometry(image, made, weight, *rest), total,
    )  # fmt: skip
    return panels, (0, count * rows * 8, 8, rows * 8)


def forward(image: Tensor, weight: Tensor, bias: Tensor | None, out: Tensor, *rest: Ints) -> Tensor:
    """out[n] = weight (made channels x taps) @ what each pixel sees (taps x pixels)."""
    panels, where = _seen(image, out, weight, True, *rest)
    taps, pixels = weight[0].numel(), out.shape[2] * out.shape[3]
    size = (weight.shape[0], pixels, taps, image.shape[0])
    gemm(weight, (0, taps, 1), panels, where, True, bias, (0, 1, 0), out, size)  # type: ignore[arg-type]  # of four
    return out


def backward_input(grad: Tensor, weight: Tensor, out: Tensor, *rest: Ints) -> Tensor:
    """What each tap should have seen, weight transposed @ gradient, summed where it was seen."""
    n, _, oh, ow = grad.shape
    taps = weight[0].numel()
    columns = storage.empty([n, taps, oh * ow], grad.dtype)
    across = weight.view(weight.shape[0], taps).t().unsqueeze(0).expand(n, taps, weight.shape[0])
    multiply(across, grad.view(n, grad.shape[1], oh * ow), None, 1, 0, columns)
    total = out.numel()
    queue.launch(
        kernel("conv", "conv2d_col2im", T=C_TYPE[grad.dtype]), (-(-total // 64) * 64,), (64,),
        storage.buffer(columns), storage.buffer(out), *_geometry(out, grad, weight, *rest), total,
    )  # fmt: skip
    return out


def backward_weight(image: Tensor, grad: Tensor, weight: Tensor, *rest: Ints) -> Tensor:
    """Sum over images of gradient (made channels x pixels) @ what each pixel sees (pixels x taps)."""
    n, made, oh, ow = grad.shape
    taps, pixels = weight[0].numel(), oh * ow
    panels, where = _seen(image, grad, weight, False, *rest)
    parts = storage.empty([n, made, taps], grad.dtype)
    steps = (made * pixels, pixels, 1)
    gemm(grad, steps, panels, where, True, None, (0, 0, 0), parts, (made, taps, pixels, n))  # type: ignore[arg-type]  # of four
    return parts.sum(0).view(weight.shape)
