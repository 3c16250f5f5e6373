"""In what arithmetic the kernels of an operator multiply, and how many tensors they touch, as their names say."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum


class Arithmetic(StrEnum):
    """What products are made in, as its value in words."""

    FLOAT32 = "float32"
    TF32 = "TF32"
    THRICE = "float32 by three products in TF32"
    HALF = "16 bits"


THRICE = re.compile(r"tf32x3|3xtf32|x3tf32", re.IGNORECASE)
HALF = re.compile(r"(?:^|[^a-z0-9])(?:bf16|fp16|f16)|s16816|__half|bfloat", re.IGNORECASE)
CORES = re.compile(r"tf32|tensorop|s168[48]", re.IGNORECASE)  # instructions of tensor cores: float32 is TF32 there
FEWER = {"winograd": "Winograd", "fft": "Fourier"}  # what a kernel's name has, and whose way to convolve that is
# of tensors that a pointwise kernel of PyTorch is given
POINTERS = re.compile(r"elementwise_kernel<.*Array<char\s*\*, (\d+)>")


def arithmetic_of(kernels: Iterable[tuple[str, int]], narrow: bool) -> Arithmetic:
    """What an operator whose operands are `narrow`, or in 32 bits, multiplies in: as most of the time of its kernels."""
    if narrow:
        return Arithmetic.HALF
    times = dict.fromkeys(Arithmetic, 0)
    for name, ns in kernels:
        times[_of_kernel(name)] += ns
    return max(times, key=times.__getitem__)


def _of_kernel(name: str) -> Arithmetic:
    if THRICE.search(name):
        return Arithmetic.THRICE
    if not CORES.search(name):
        return Arithmetic.FLOAT32
    return Arithmetic.HALF if HALF.search(name) and "tf32" not in name.lower() else Arithmetic.TF32


def tensors_of(kernels: Iterable[str]) -> int | None:
    """How many tensors the kernel of a pointwise operator is given, the one that it makes among them; None where that is not
    known, or it runs several."""
    found = [POINTERS.search(name) for name in kernels]
    return int(found[0][1]) if len(found) == 1 and found[0] is not None else None


def fewer_operations(kernels: Iterable[str]) -> str:
    """Whose way to convolve takes fewer operations than a convolution is counted with; "" where none is known of these."""
    names = [name.lower() for name in kernels]
    return next((whose for part, whose in FEWER.items() if any(part in name for name in names)), "")
