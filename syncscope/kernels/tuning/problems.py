"""What the tuner looks at where it is told nothing else: products and convolutions as common networks have them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from syncscope.kernels import winograd
from syncscope.kernels.channels_last import rounded, suits
from syncscope.kernels.generate.convolutions import Geometry, backward_input, backward_weight, forward
from syncscope.kernels.generate.ir import Access, Contraction, Index, Ints

_BATCH = 64
# rows, columns and depth; each also with the transposes that its gradients take
_PRODUCTS = (
    (1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (64, 4096, 4096), (64, 4096, 9216), (64, 1000, 2048),
    (64, 4096, 25088), (1024, 4096, 4096), (12608, 768, 768), (12608, 3072, 768), (512, 512, 512), (256, 256, 256),
    (64, 2048, 512), (64, 512, 2048),  # a step of an LSTM
)  # fmt: skip
# channels read and made, pixels along a side of what is read, taps along a side, stride, groups
_CONVOLUTIONS = (
    (64, 64, 56, 3, 1, 1), (128, 128, 28, 3, 1, 1), (256, 256, 14, 3, 1, 1), (512, 512, 7, 3, 1, 1),  # ResNets
    (64, 64, 224, 3, 1, 1), (128, 128, 112, 3, 1, 1), (256, 256, 56, 3, 1, 1), (512, 512, 28, 3, 1, 1),  # VGG
    (512, 512, 14, 3, 1, 1), (64, 128, 112, 3, 1, 1), (128, 256, 56, 3, 1, 1), (256, 512, 28, 3, 1, 1),
    (64, 128, 56, 3, 2, 1), (128, 256, 28, 3, 2, 1), (256, 512, 14, 3, 2, 1), (3, 64, 224, 7, 2, 1), (3, 64, 224, 3, 1, 1),
    (64, 64, 56, 1, 1, 1), (64, 256, 56, 1, 1, 1), (256, 64, 56, 1, 1, 1), (512, 128, 28, 1, 1, 1), (128, 512, 28, 1, 1, 1),
    (1024, 256, 14, 1, 1, 1), (256, 1024, 14, 1, 1, 1), (2048, 512, 7, 1, 1, 1), (512, 2048, 7, 1, 1, 1),
    (256, 512, 56, 1, 2, 1), (512, 1024, 28, 1, 2, 1), (1024, 2048, 14, 1, 2, 1), (256, 512, 56, 1, 1, 1),
    (256, 128, 56, 1, 1, 1), (128, 256, 56, 1, 1, 1), (512, 256, 28, 1, 1, 1), (256, 512, 28, 1, 1, 1),
    (1024, 512, 14, 1, 1, 1), (512, 1024, 14, 1, 1, 1), (2048, 1024, 7, 1, 1, 1), (1024, 2048, 7, 1, 1, 1),
    (1024, 1024, 7, 3, 1, 1),  # wide ResNet
    (64, 192, 27, 5, 1, 1), (192, 384, 13, 3, 1, 1), (3, 64, 224, 11, 4, 1),  # AlexNet
    (32, 16, 112, 1, 1, 1), (16, 96, 112, 1, 1, 1), (96, 24, 56, 1, 1, 1), (24, 144, 56, 1, 1, 1), (144, 32, 28, 1, 1, 1),
    (32, 192, 28, 1, 1, 1), (384, 64, 14, 1, 1, 1), (64, 384, 14, 1, 1, 1), (576, 96, 14, 1, 1, 1), (960, 160, 7, 1, 1, 1),
    (160, 960, 7, 1, 1, 1), (3, 32, 224, 3, 2, 1),  # MobileNet
)  # fmt: skip


ALIGNED = (True, True, True)  # both operands and the result begin at a multiple of a vector


@dataclass(frozen=True, slots=True)
class Problem:
    """A contraction with words for people, and which way a convolution comes to it: made directly, or by Winograd's."""

    said: str
    c: Contraction
    convolution: Geometry | None = None  # that this is a pass of, made directly
    channels_last: Contraction | None = None  # the same pass of copies with channels innermost
    by_winograd: bool = False

    def made_in(self, dtype: torch.dtype, tf32: bool) -> Contraction:
        """What is multiplied in that precision: of a convolution perhaps such copies."""
        g, last = self.convolution, self.channels_last
        if g is None or last is None or not suits(g, [self.c], ALIGNED, dtype, tf32):
            return self.c
        return rounded(last) if tf32 else last


def problems() -> Iterator[Problem]:
    """The most usual first."""
    for size in _PRODUCTS:
        yield from _products(*size)
    for shape in _CONVOLUTIONS:
        yield from _passes(*shape)


def product(m: int, n: int, k: int, a: Ints, b: Ints) -> Contraction:
    """A product of matrices with the given steps of a row and a column, into a row-major one."""
    access_a, access_b = Access(Index(0, m=a[:1], k=a[1:])), Access(Index(0, k=b[:1], n=b[1:]))
    return Contraction("gemm", (1,), (m,), (n,), (k,), access_a, access_b, Index(0, m=(n,), n=(1,)))


def _products(m: int, n: int, k: int) -> Iterator[Problem]:
    said = f"product {m} x {k} x {n}"
    yield Problem(said, product(m, n, k, (k, 1), (n, 1)))
    yield Problem(f"{said}, right transposed", product(m, n, k, (k, 1), (1, k)))
    yield Problem(f"{said}, left transposed", product(m, n, k, (1, m), (n, 1)))


def _geometry(read: int, made: int, side: int, taps: int, stride: int, groups: int) -> Geometry:
    padding = 2 if taps == 11 else taps // 2
    out = (side + 2 * padding - taps) // stride + 1
    return Geometry(
        (_BATCH, read, side, side), (made, read // groups, taps, taps), (_BATCH, made, out, out),
        (stride,) * 2, (padding,) * 2, (1, 1), groups,
    )  # fmt: skip


def _passes(read: int, made: int, side: int, taps: int, stride: int, groups: int) -> Iterator[Problem]:
    g = _geometry(read, made, side, taps, stride, groups)
    said = f"convolution {read} -> {made}, {taps} x {taps}" + (f" by {stride}" if stride > 1 else "") + f", {side} px"
    plain, last = (forward(g, "conv_forward", False, last=x) for x in (False, True))
    yield Problem(said, plain, g, last)
    if winograd.possible(g) and read >= 64:
        for which in (winograd.PASSES[0], winograd.PASSES[2]):
            yield Problem(f"{said}, Winograd's {which}", winograd.product(g, which), by_winograd=True)
    if read > 3:
        both = (backward_input(g, "conv_backward_input", False, last=x) for x in (False, True))
        for plain, last in zip(*both, strict=True):
            if plain.size("k"):
                yield Problem(f"{said}, to input", plain, g, last)
    plain, last = (backward_weight(g, "conv_backward_weight", last=x) for x in (False, True))
    yield Problem(f"{said}, to weight", plain, g, last)
