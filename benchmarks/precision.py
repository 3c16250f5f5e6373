"""How far products and convolutions are from float64, in float32's precision and in TF32, and what they take, on each device.

    python benchmarks/precision.py --devices ocl,cuda --reference cuda

Prints milliseconds forward and backward (best of five), and the relative deviation of the result and of the gradients of input
and weight, by norm. Every device, and float64 on the reference, in a process of its own.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import torch
from beside_float64 import keep, main, off
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

# Shapes of both operands; of convolutions also stride and padding.
CASES = {
    "product 4096 x 4096 x 4096": ((4096, 4096), (4096, 4096), None),
    "product 64 x 9216 x 4096": ((64, 9216), (9216, 4096), None),
    "convolution 64 -> 64, 3 x 3, 56 px": ((64, 64, 56, 56), (64, 64, 3, 3), (1, 1)),
    "convolution 256 -> 256, 3 x 3, 14 px": ((64, 256, 14, 14), (256, 256, 3, 3), (1, 1)),
    "convolution 512 -> 512, 3 x 3, 28 px": ((64, 512, 28, 28), (512, 512, 3, 3), (1, 1)),
    "convolution 256 -> 64, 1 x 1, 56 px": ((64, 256, 56, 56), (64, 256, 1, 1), (1, 0)),
    "convolution 3 -> 64, 7 x 7 by 2, 224 px": ((64, 3, 224, 224), (64, 3, 7, 7), (2, 3)),
    "convolution 64 -> 192, 5 x 5, 27 px": ((64, 64, 27, 27), (192, 64, 5, 5), (1, 2)),
    "convolution 3 -> 64, 11 x 11 by 4, 224 px": ((64, 3, 224, 224), (64, 3, 11, 11), (4, 2)),
}


def computed(a: Tensor, b: Tensor, how: tuple[int, int] | None) -> Tensor:
    return a @ b if how is None else F.conv2d(a, b, stride=how[0], padding=how[1])


def child(device: str, folder: Path, exact: bool) -> None:
    """Computes all cases; in float64 it keeps them, else it compares."""
    from syncscope.bench import measure

    synchronize, _ = measure.prepare(device)
    for name, (first, second, how) in CASES.items():
        torch.manual_seed(0)
        drawn = torch.randn(first), torch.randn(second)
        a, b = (x.to(device, torch.float64 if exact else torch.float32).requires_grad_() for x in drawn)
        said = f"{device:5} {name:42}"
        for tf32 in (False,) if exact else (False, True):
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
            times = [float("inf"), float("inf")]
            for _ in range(1 if exact else 5):
                synchronize()
                begin = time.perf_counter()
                y = computed(a, b, how)
                synchronize()
                middle = time.perf_counter()
                made = (y, *torch.autograd.grad(y, (a, b), torch.ones_like(y)))
                synchronize()
                times = [min(times[0], middle - begin), min(times[1], time.perf_counter() - middle)]
            file = folder / f"{abs(hash(first + second))}.pt"
            if exact:
                keep(made, file)
                continue
            kind = "TF32" if tf32 else "float32"
            said += f" | {kind} {1e3 * times[0]:.3f} + {1e3 * times[1]:.3f} ms, off {off(made, file)}"
        if not exact:
            print(said, flush=True)


if __name__ == "__main__":
    sys.exit(main(__doc__, child))
