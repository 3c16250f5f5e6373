"""Batch and layer normalization, written in the device's own reductions and pointwise operators.

Statistics of half precision are kept in float.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from syncscope.kernels.operators import NotNative, op
from syncscope.kernels.programs import supported


def _wide(x: Tensor) -> Tensor:
    if x.dtype in (torch.float16, torch.bfloat16):
        return x.float()
    if not supported(x.dtype) or not x.dtype.is_floating_point:
        raise NotNative
    return x


def _per_channel(x: Tensor, rank: int) -> Tensor:
    return x.view([1, -1, *[1] * (rank - 2)])


@op("native_batch_norm")
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalizes each channel by its own, or the running, mean and variance; gives the mean and 1 / deviation it used."""
    x = _wide(input)
    dims = [0, *range(2, x.dim())]
    if training:
        var, mean = torch.var_mean(x, dims, correction=0)
        if running_mean is not None:
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
        if running_var is not None:
            count = x.numel() // max(x.shape[1], 1)
            running_var.lerp_((var * (count / max(count - 1, 1))).to(running_var.dtype), momentum)
        saved = mean, (var + eps).rsqrt()
        mean, scale = saved
    else:
        if running_mean is None or running_var is None:
            raise NotNative
        mean, scale = running_mean.to(x.dtype), (running_var.to(x.dtype) + eps).rsqrt()
        saved = x.new_empty(0), x.new_empty(0)
    if weight is not None:
        scale = scale * weight
    shift = -mean * scale
    if bias is not None:
        shift = shift + bias
    out = torch.addcmul(_per_channel(shift, x.dim()), x, _per_channel(scale, x.dim()))
    return out.to(input.dtype), *saved


@op("native_batch_norm_backward")
def batch_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_invstd: Tensor | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of input, weight and bias."""
    x, grad = _wide(input), _wide(grad_out)
    rank, dims = x.dim(), [0, *range(2, x.dim())]
    if train:
        if save_mean is None or save_invstd is None:
            raise NotNative
        mean, invstd = save_mean, save_invstd
    else:
        if running_mean is None or running_var is None:
            raise NotNative
        mean, invstd = running_mean.to(x.dtype), (running_var.to(x.dtype) + eps).rsqrt()
    centred = x - _per_channel(mean, rank)
    to_bias = grad.sum(dims)
    projected = (grad * centred).sum(dims)
    to_input = None
    if output_mask[0]:
        scale = invstd if weight is None else invstd * weight
        if train:
            count = x.numel() // max(x.shape[1], 1)
            slope = projected * invstd * invstd / count
            inner = grad - _per_channel(to_bias / count, rank) - centred * _per_channel(slope, rank)
            to_input = (inner * _per_channel(scale, rank)).to(input.dtype)
        else:
            to_input = (grad * _per_channel(scale, rank)).to(input.dtype)
    to_weight = projected * invstd if output_mask[1] else None
    return to_input, to_weight, to_bias if output_mask[2] else None


@op("native_layer_norm")
def layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalizes the last dimensions by their own mean and variance; gives the mean and 1 / deviation."""
    x = _wide(input)
    dims = list(range(x.dim() - len(normalized_shape), x.dim()))
    var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    invstd = (var + eps).rsqrt()
    out = (x - mean) * invstd
    if weight is not None:
        out = out * weight
    if bias is not None:
        out = out + bias
    return out.to(input.dtype), mean, invstd


@op("native_layer_norm_backward")
def layer_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of input, weight and bias."""
    x, grad = _wide(input), _wide(grad_out)
    inner = list(range(x.dim() - len(normalized_shape), x.dim()))
    outer = list(range(x.dim() - len(normalized_shape)))
    normal = (x - mean) * rstd
    to_input = to_weight = to_bias = None
    if output_mask[0]:
        scaled = grad if weight is None else grad * weight
        count = math.prod(normalized_shape)
        along = (scaled * normal).sum(inner, keepdim=True) / count
        to_input = ((scaled - scaled.sum(inner, keepdim=True) / count - normal * along) * rstd).to(input.dtype)
    if output_mask[1] and weight is not None:
        to_weight = (grad * normal).sum(outer).to(weight.dtype) if outer else (grad * normal).to(weight.dtype)
    if output_mask[2] and bias is not None:
        to_bias = grad.sum(outer).to(bias.dtype) if outer else grad.to(bias.dtype)
    return to_input, to_weight, to_bias


@op("native_group_norm_backward")
def group_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    N: int,  # noqa: N803 - PyTorch's names
    C: int,  # noqa: N803
    HxW: int,  # noqa: N803
    group: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of input, weight and bias."""
    x, grad = _wide(input).reshape(N, group, C // group, HxW), _wide(grad_out).reshape(N, group, C // group, HxW)
    mean, rstd = mean.to(x.dtype).view(N, group, 1, 1), rstd.to(x.dtype).view(N, group, 1, 1)
    normal = (x - mean) * rstd
    to_input = None
    if output_mask[0]:
        scaled = grad if weight is None else grad * weight.to(x.dtype).view(1, group, C // group, 1)
        count = C // group * HxW
        along = (scaled * normal).sum((2, 3), keepdim=True) / count
        to_input = (scaled - scaled.sum((2, 3), keepdim=True) / count - normal * along) * rstd
        to_input = to_input.view(input.shape).to(input.dtype)
    to_weight = (grad * normal).sum((0, 3)).view(C).to(input.dtype) if output_mask[1] else None
    to_bias = grad.sum((0, 3)).view(C).to(input.dtype) if output_mask[2] else None
    return to_input, to_weight, to_bias
