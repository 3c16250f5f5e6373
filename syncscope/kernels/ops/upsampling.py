"""Resizing images: nearest and bilinear, forward and backward."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from syncscope.kernels import queue, storage
from syncscope.kernels.operators import NotNative, op
from syncscope.kernels.ops.copying import dense
from syncscope.kernels.programs import C_TYPE, kernel, supported

Ints = Sequence[int]
Scales = Callable[[Ints, Ints, float | None, float | None], tuple[float, float]]


def _scale(size: int, made: int, given: float | None, corners: bool) -> float:
    """Source pixels per pixel of the result."""
    if corners:
        return (size - 1) / (made - 1) if made > 1 else 0.0
    return 1 / given if given else size / made


def _run(name: str, x: Tensor, out: Tensor, small: Ints, large: Ints, scales: tuple[float, float], mode: int) -> Tensor:
    """`small` is the size before resizing and `large` after it, whichever of the two the kernel makes."""
    if not out.dtype.is_floating_point or not supported(out.dtype) or x.dtype != out.dtype:
        raise NotNative
    if out.numel():
        x, made = dense(x), storage.empty(out.shape, out.dtype)
        queue.launch(
            kernel("upsample", name, T=C_TYPE[out.dtype]), (-(-out.numel() // 64) * 64,), (64,),
            storage.buffer(x), x.storage_offset(), storage.buffer(made), *small, *large, *scales, mode, out.numel(),
        )  # fmt: skip
        out.copy_(made)
    return out


def _scales(
    small: Ints, large: Ints, height: float | None, width: float | None, corners: bool = False
) -> tuple[float, float]:
    return _scale(small[0], large[0], height, corners), _scale(small[1], large[1], width, corners)


def _nearest_scales(small: Ints, large: Ints, height: float | None, width: float | None) -> tuple[float, float]:
    """As `_scales`, but equal and double sizes are taken at their word, as PyTorch does: the given scale does not count."""
    height, width = (
        None if o in (n, 2 * n) else given for n, o, given in zip(small, large, (height, width), strict=True)
    )
    return _scales(small, large, height, width)


def _declare_nearest(name: str, scales_of: Scales, centred: int) -> None:
    """Each pixel of the result takes the pixel that it, or its centre, falls on; its gradient comes from those that took it."""

    @op(f"{name}.out")
    def forward(
        self: Tensor, output_size: Ints, scales_h: float | None = None, scales_w: float | None = None, *, out: Tensor
    ) -> Tensor:
        small, large = self.shape[2:], out.shape[2:]
        return _run("upsample_nearest2d", self, out, small, large, scales_of(small, large, scales_h, scales_w), centred)

    @op(f"{name}_backward.grad_input")
    def backward(
        grad_output: Tensor,
        output_size: Ints,
        input_size: Ints,
        scales_h: float | None = None,
        scales_w: float | None = None,
        *,
        grad_input: Tensor,
    ) -> Tensor:
        small, large = input_size[2:], grad_output.shape[2:]
        scales = scales_of(small, large, scales_h, scales_w)
        return _run("upsample_nearest2d_backward", grad_output, grad_input, small, large, scales, centred)


_declare_nearest("upsample_nearest2d", _nearest_scales, 0)
_declare_nearest("_upsample_nearest_exact2d", _scales, 1)


@op("upsample_bilinear2d.out")
def bilinear(
    self: Tensor,
    output_size: Ints,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
    *,
    out: Tensor,
) -> Tensor:
    """Each pixel of the result mixes the four around it."""
    small, large = self.shape[2:], out.shape[2:]
    scales = _scales(small, large, scales_h, scales_w, align_corners)
    return _run("upsample_bilinear2d", self, out, small, large, scales, int(not align_corners))


@op("upsample_bilinear2d_backward.grad_input")
def bilinear_backward(
    grad_output: Tensor,
    output_size: Ints,
    input_size: Ints,
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
    *,
    grad_input: Tensor,
) -> Tensor:
    """Each pixel's share of the gradients of those that mixed it."""
    small, large = input_size[2:], grad_output.shape[2:]
    scales = _scales(small, large, scales_h, scales_w, align_corners)
    return _run("upsample_bilinear2d_backward", grad_output, grad_input, small, large, scales, int(not align_corners))
