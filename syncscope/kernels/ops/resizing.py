"""Images resized by weights of many pixels, bicubic and antialiased: rows and columns are each multiplied by a matrix.

The weights of one direction are what the CPU makes of the identity, once for each pair of sizes; so they are PyTorch's own.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from syncscope.kernels import storage
from syncscope.kernels.memo import Memo
from syncscope.kernels.operators import NotNative, op

Ints = Sequence[int]
_weights: Memo[Tensor] = Memo()


def _matrix(name: str, before: int, after: int, align_corners: bool, scale: float | None, dtype: torch.dtype) -> Tensor:
    """The weight of each pixel before (columns) in each one after (rows), on the device."""
    key = (name, before, after, align_corners, scale, dtype)
    found = _weights.get(key)
    if found is None:
        resize = getattr(torch.ops.aten, name).default
        identity = torch.eye(before, dtype=dtype, device="cpu")[None, None]
        found = _weights[key] = storage.upload(resize(identity, [after, before], align_corners, scale, None)[0, 0])
    return found


def _declare(name: str) -> None:
    def matrices(x: Tensor, before: Ints, after: Ints, align_corners: bool, *scales: float | None) -> list[Tensor]:
        if x.dtype not in (torch.float32, torch.float64) or not x.numel():
            raise NotNative
        scale = (*scales, None, None)
        return [_matrix(name, before[k - 2], after[k], align_corners, scale[k], x.dtype) for k in (0, 1)]

    @op(f"{name}.out", keep=False)
    def forward(
        self: Tensor,
        output_size: Ints,
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
        *,
        out: Tensor,
    ) -> Tensor:
        rows, columns = matrices(self, self.shape, output_size, align_corners, scales_h, scales_w)
        return out.copy_(rows @ self @ columns.T)

    @op(f"{name}_backward.grad_input", keep=False)
    def backward(
        grad_output: Tensor,
        output_size: Ints,
        input_size: Ints,
        align_corners: bool,
        scales_h: float | None = None,
        scales_w: float | None = None,
        *,
        grad_input: Tensor,
    ) -> Tensor:
        rows, columns = matrices(grad_output, input_size, output_size, align_corners, scales_h, scales_w)
        return grad_input.copy_(rows.T @ grad_output @ columns)


for _name in ("upsample_bicubic2d", "_upsample_bicubic2d_aa", "_upsample_bilinear2d_aa"):
    _declare(_name)
