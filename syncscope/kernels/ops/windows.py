"""Windows of images as columns, and back (`F.unfold`, `F.fold`); the largest of so many windows (`AdaptiveMaxPool2d`)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from syncscope.kernels import storage
from syncscope.kernels.operators import NotNative, op

Ints = Sequence[int]


@op("im2col")
def im2col(self: Tensor, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Tensor:
    """Each window as a column: a view of what is padded, copied."""
    counts = _counts(self.shape[-2:], kernel_size, dilation, padding, stride)
    if self.dim() not in (3, 4) or not self.numel() or min(counts) < 1 or min(padding) < 0:
        raise NotNative
    padded = self
    if any(padding):
        padded = torch.constant_pad_nd(self, [padding[1], padding[1], padding[0], padding[0]])
    *outer, row, pixel = padded.stride()
    windows = padded.as_strided(
        (*self.shape[:-2], *kernel_size, *counts),
        (*outer, dilation[0] * row, dilation[1] * pixel, stride[0] * row, stride[1] * pixel),
        padded.storage_offset(),
    )
    columns = self.shape[-3] * kernel_size[0] * kernel_size[1]
    return windows.contiguous().view(*self.shape[:-3], columns, counts[0] * counts[1])


@op("col2im")
def col2im(self: Tensor, output_size: Ints, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> Tensor:
    """The sum of all windows that a pixel lies in: one launch for each place of a window."""
    counts = _counts(output_size, kernel_size, dilation, padding, stride)
    places = kernel_size[0] * kernel_size[1]
    fits = self.dim() in (2, 3) and self.shape[-1] == counts[0] * counts[1] and self.shape[-2] % places == 0
    if not fits or not self.numel() or min(padding) < 0:
        raise NotNative
    outer = (*self.shape[:-2], self.shape[-2] // places)
    windows = self.reshape(*outer, *kernel_size, *counts)
    made = self.new_zeros(*outer, output_size[0] + 2 * padding[0], output_size[1] + 2 * padding[1])
    for i in range(kernel_size[0]):
        for j in range(kernel_size[1]):
            rows = slice(i * dilation[0], i * dilation[0] + (counts[0] - 1) * stride[0] + 1, stride[0])
            pixels = slice(j * dilation[1], j * dilation[1] + (counts[1] - 1) * stride[1] + 1, stride[1])
            made[..., rows, pixels] += windows[..., i, j, :, :]
    inner = made[..., padding[0] : padding[0] + output_size[0], padding[1] : padding[1] + output_size[1]]
    return inner.contiguous()


def _counts(size: Ints, kernel_size: Ints, dilation: Ints, padding: Ints, stride: Ints) -> tuple[int, int]:
    """How many windows there are, down and across."""
    first, second = (
        (size[d] + 2 * padding[d] - dilation[d] * (kernel_size[d] - 1) - 1) // stride[d] + 1 for d in (0, 1)
    )
    return first, second


@op("adaptive_max_pool2d.out")
def adaptive_max_pool2d(self: Tensor, output_size: Ints, *, out: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """The largest pixel of each of so many windows of one size, and its place in its image."""
    size = [self.shape[d] // max(output_size[d], 1) for d in (-2, -1)]
    if not out.numel() or any(self.shape[d] != size[d] * output_size[d] for d in (-2, -1)):
        raise NotNative
    torch.ops.aten.max_pool2d_with_indices.out(self, size, out=out, indices=indices)
    return out, indices


@op("adaptive_max_pool2d_backward.grad_input")
def adaptive_max_pool2d_backward(grad_output: Tensor, self: Tensor, indices: Tensor, *, grad_input: Tensor) -> Tensor:
    """The gradient goes where the largest pixel was."""
    if not grad_output.numel():
        raise NotNative
    images = grad_output.shape[:-2]
    made = storage.empty((*images, self.shape[-2] * self.shape[-1]), self.dtype).zero_()
    made.scatter_add_(-1, indices.reshape(*images, -1), grad_output.reshape(*images, -1))
    return grad_input.copy_(made.view(self.shape))
