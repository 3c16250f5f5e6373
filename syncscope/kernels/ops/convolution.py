"""Convolutions: stride 1 through register-blocked kernels on padded images, strides and dilation as matrix products,
the rest one element per item."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from syncscope.kernels import fallback, queue, storage
from syncscope.kernels.device import device
from syncscope.kernels.operators import op
from syncscope.kernels.ops import _conv_gemm
from syncscope.kernels.ops.copying import dense
from syncscope.kernels.programs import C_TYPE, kernel, supported

Ints = Sequence[int]
_FLAT = (64,)
_TILE = (8, 4, 1)


def _round(n: int, step: int) -> int:
    return -(-n // step) * step


def _native(*tensors: Tensor | None) -> bool:
    given = [t for t in tensors if t is not None]
    return all(
        supported(t.dtype) and t.dtype.is_floating_point and t.dtype == given[0].dtype and t.numel() for t in given
    )


def _is_half(*tensors: Tensor | None) -> bool:
    return all(t is None or t.dtype in (torch.float16, torch.bfloat16) for t in tensors)


@op("convolution_overrideable")
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
    """Convolution of one or two dimensions, also transposed; three dimensions and integers go to the CPU."""
    rest = (transposed, output_padding, groups)
    if _is_half(input, weight, bias):
        wide = None if bias is None else bias.float()
        whole = convolution(input.float(), weight.float(), wide, stride, padding, dilation, *rest)
        return whole.to(input.dtype)
    if weight.dim() == 3 and input.dim() == 3:
        flat = convolution(
            input.unsqueeze(2), weight.unsqueeze(2), bias, (1, *stride), (0, *padding), (1, *dilation),
            transposed, (0, *output_padding), groups,
        )  # fmt: skip
        return flat.squeeze(2)
    if weight.dim() != 4 or input.dim() != 4 or not _native(input, weight, bias):
        result: Tensor = fallback.on_cpu(
            torch.ops.aten.convolution.default, input, weight, bias, stride, padding, dilation, *rest
        )
        return result
    input, weight = dense(input), dense(weight)
    bias = None if bias is None else dense(bias)
    if transposed:
        shape = [
            (input.shape[d] - 1) * stride[d - 2]
            - 2 * padding[d - 2]
            + dilation[d - 2] * (weight.shape[d] - 1)
            + output_padding[d - 2]
            + 1
            for d in (2, 3)
        ]
        out = storage.empty([input.shape[0], weight.shape[1] * groups, *shape], input.dtype)
        return _backward_input_direct(input, weight, bias, out, stride, padding, dilation, groups)
    shape = [
        (input.shape[d] + 2 * padding[d - 2] - dilation[d - 2] * (weight.shape[d] - 1) - 1) // stride[d - 2] + 1
        for d in (2, 3)
    ]
    out = storage.empty([input.shape[0], weight.shape[0], *shape], input.dtype)
    plain = _simple(stride, dilation)
    if not plain and groups == 1 and _conv_gemm.fits(input, out, weight):
        return _conv_gemm.forward(input, weight, bias, out, stride, padding, dilation)
    if plain and groups == 1:
        kh, kw = weight.shape[2:]
        return _convolve(
            "conv2d_forward", input, weight, weight.storage_offset(), weight.stride(), bias, out, padding, (kh, kw)
        )
    return _forward_direct(input, weight, bias, out, stride, padding, dilation, groups)


@op("convolution_backward_overrideable")
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
    if _is_half(grad_output, input, weight):
        wide = convolution_backward(
            grad_output.float(), input.float(), weight.float(), stride, padding, dilation, *rest
        )
        return tuple(None if g is None else g.to(input.dtype) for g in wide)  # type: ignore[return-value]  # of three
    if weight.dim() == 3 and input.dim() == 3:
        gi, gw, gb = convolution_backward(
            grad_output.unsqueeze(2), input.unsqueeze(2), weight.unsqueeze(2), (1, *stride), (0, *padding), (1, *dilation),
            transposed, (0, *output_padding), groups, output_mask,
        )  # fmt: skip
        return None if gi is None else gi.squeeze(2), None if gw is None else gw.squeeze(2), gb
    if weight.dim() != 4 or input.dim() != 4 or not _native(grad_output, input, weight):
        sizes = [grad_output.shape[1]] if output_mask[2] else None
        result: tuple[Tensor, Tensor, Tensor] = fallback.on_cpu(
            torch.ops.aten.convolution_backward.default,
            grad_output, input, weight, sizes, stride, padding, dilation, *rest,
        )  # fmt: skip
        return result
    grad, input, weight = dense(grad_output), dense(input), dense(weight)
    grad_input = grad_weight = None
    geometry = (stride, padding, dilation)
    plain = _simple(stride, dilation)
    as_product = not (transposed or plain) and groups == 1 and _conv_gemm.fits(input, grad, weight)
    if output_mask[0]:
        grad_input = storage.empty(input.shape, input.dtype)
        back = [weight.shape[d] - 1 - padding[d - 2] for d in (2, 3)]
        if transposed:
            _forward_direct(grad, weight, None, grad_input, *geometry, groups)
        elif as_product:
            _conv_gemm.backward_input(grad, weight, grad_input, *geometry)
        elif plain and groups == 1 and min(back) >= 0:
            co, ci, y, x = weight.stride()
            last = weight.storage_offset() + (weight.shape[2] - 1) * y + (weight.shape[3] - 1) * x
            size = (weight.shape[2], weight.shape[3])
            _convolve("conv2d_backward_input", grad, weight, last, (ci, co, -y, -x), None, grad_input, back, size)
        else:
            _backward_input_direct(grad, weight, None, grad_input, *geometry, groups)
    if output_mask[1]:
        if transposed:
            grad_weight = _backward_weight_direct(grad, input, weight, *geometry, groups)
        elif as_product:
            grad_weight = _conv_gemm.backward_weight(input, grad, weight, *geometry)
        elif plain and groups == 1 and weight.shape[2] * weight.shape[3] <= 25:
            grad_weight = _backward_weight(input, grad, weight, padding)
        else:
            grad_weight = _backward_weight_direct(input, grad, weight, *geometry, groups)
    return grad_input, grad_weight, grad.sum((0, 2, 3)) if output_mask[2] else None


def _simple(stride: Ints, dilation: Ints) -> bool:
    return all(s == 1 for s in (*stride, *dilation))


def _pad(image: Tensor, top: int, left: int, height: int, width: int) -> Tensor:
    n, c, h, w = image.shape
    if (top, left, height, width) == (0, 0, h, w) and not image.storage_offset():
        return image
    out = storage.empty([n, c, height, width], image.dtype)
    queue.launch(
        kernel("conv", "conv2d_pad", T=C_TYPE[image.dtype]), (_round(out.numel(), 256),), (256,),
        storage.buffer(image), image.storage_offset(), storage.buffer(out), h, w, top, left, height, width, out.numel(),
    )  # fmt: skip
    return out


def _convolve(
    name: str,
    image: Tensor,
    weight: Tensor,
    weight_at: int,
    weight_stride: Ints,
    bias: Tensor | None,
    out: Tensor,
    padding: Ints,
    size: tuple[int, int],
) -> Tensor:
    """Stride 1 from a padded image; strides of the weight are in the order (channel made, channel read, y, x)."""
    n, ci = image.shape[:2]
    _, co, oh, ow = out.shape
    kh, kw = size
    height, width = oh + kh - 1, _round(ow, 8) + kw - 1
    padded = _pad(image, padding[0], padding[1], height, width)
    block = min((5, 4, 3, 2, 1), key=lambda b: (_round(co, b), -b)) if co < 16 else 4
    tile = _TILE
    t = C_TYPE[image.dtype]
    queue.launch(
        kernel("conv", name, T=t, KH=kh, KW=kw, CO_BLOCK=block),
        (_round(-(-ow // 8), tile[0]), _round(oh, tile[1]), n * -(-co // block)), tile,
        storage.buffer(padded), storage.buffer(weight), storage.buffer(weight if bias is None else bias), storage.buffer(out),
        weight_at, *weight_stride, int(bias is not None), 0 if bias is None else bias.storage_offset(),
        ci, co, height, width, oh, ow,
    )  # fmt: skip
    return out


def _backward_weight(image: Tensor, grad: Tensor, weight: Tensor, padding: Ints) -> Tensor:
    n, ci = image.shape[:2]
    _, co, oh, ow = grad.shape
    kh, kw = weight.shape[2:]
    height, width = oh + kh - 1, _round(ow, 8) + kw - 1
    padded = _pad(image, padding[0], padding[1], height, width)
    wide = _pad(grad, 0, 0, oh, _round(ow, 8))
    shares = max(1, min(n * oh, -(-64 * device.max_compute_units // (co * ci))))
    parts = storage.empty([shares, *weight.shape], weight.dtype)
    total = shares * co * ci
    queue.launch(
        kernel("conv", "conv2d_backward_weight", T=C_TYPE[image.dtype], KH=kh, KW=kw, CO_BLOCK=1), (_round(total, 8),), (8,),
        storage.buffer(padded), storage.buffer(wide), storage.buffer(parts),
        ci, co, height, width, oh, _round(ow, 8), n * oh, shares, total,
    )  # fmt: skip
    return parts.sum(0) if shares > 1 else parts[0]


def _geometry(
    image: Tensor, made: Tensor, weight: Tensor, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Ints:
    return (
        image.shape[1], made.shape[1], *image.shape[2:], *made.shape[2:], *weight.shape[2:],
        *stride, *padding, *dilation, groups, image.shape[0],
    )  # fmt: skip


def _direct(name: str, total: int, dtype: torch.dtype, *arguments: object) -> None:
    queue.launch(kernel("conv", name, T=C_TYPE[dtype]), (_round(total, _FLAT[0]),), _FLAT, *arguments)


def _forward_direct(
    image: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    out: Tensor,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Tensor:
    _direct(
        "conv2d_forward_direct", out.numel(), out.dtype,
        storage.buffer(image), image.storage_offset(), storage.buffer(weight), weight.storage_offset(),
        storage.buffer(weight if bias is None else bias), 0 if bias is None else bias.storage_offset(), int(bias is not None),
        storage.buffer(out), *_geometry(image, out, weight, stride, padding, dilation, groups),
    )  # fmt: skip
    return out


def _backward_input_direct(
    grad: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    out: Tensor,
    stride: Ints,
    padding: Ints,
    dilation: Ints,
    groups: int,
) -> Tensor:
    _direct(
        "conv2d_backward_input_direct", out.numel(), out.dtype,
        storage.buffer(grad), grad.storage_offset(), storage.buffer(weight), weight.storage_offset(),
        storage.buffer(weight if bias is None else bias), 0 if bias is None else bias.storage_offset(), int(bias is not None),
        storage.buffer(out), *_geometry(out, grad, weight, stride, padding, dilation, groups),
    )  # fmt: skip
    return out


def _backward_weight_direct(
    image: Tensor, grad: Tensor, weight: Tensor, stride: Ints, padding: Ints, dilation: Ints, groups: int
) -> Tensor:
    out = storage.empty(weight.shape, weight.dtype)
    _direct(
        "conv2d_backward_weight_direct", out.numel(), out.dtype,
        storage.buffer(image), image.storage_offset(), storage.buffer(grad), grad.storage_offset(),
        storage.buffer(out), *_geometry(image, grad, weight, stride, padding, dilation, groups),
    )  # fmt: skip
    return out
