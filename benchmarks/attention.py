"""What attention of halves takes, and how far it is from float64, on each device.

    python benchmarks/attention.py --devices ocl,cuda --reference cuda

Prints milliseconds forward and backward (best of five runs of twenty calls, waited for once), and the relative deviation,
by norm, of the result and of the gradients of query, key and value. Every device, and float64 on the reference, in a process
of its own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from beside_float64 import keep, main, off
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

# Batch, heads, length, width of a head, and whether a query sees only what came before.
CASES = {
    "ViT-B/16": (64, 12, 197, 64, False),
    "GPT-2, 256 words": (64, 12, 256, 64, True),
    "1,024 words, 128 wide": (8, 16, 1024, 128, True),
    "512 words, 96 wide": (16, 12, 512, 96, False),
    "512 words, 32 wide": (32, 16, 512, 32, False),
}
CALLS = 20


def best(call: Callable[[], object], synchronize: Callable[[], object]) -> float:
    """Milliseconds of a call."""
    times = []
    for _ in range(5):
        synchronize()
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        synchronize()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times) / CALLS


def child(device: str, folder: Path, exact: bool) -> None:
    """Computes all cases; in float64 it keeps them, else it compares."""
    from syncscope.bench import measure

    synchronize, _ = measure.prepare(device)
    for number, (name, (batch, heads, length, width, causal)) in enumerate(CASES.items()):
        for dtype in (torch.float16, torch.bfloat16):
            torch.manual_seed(0)
            drawn = [torch.randn(batch, length, heads, width).to(dtype).transpose(1, 2) for _ in range(4)]
            q, k, v, slope = (x.to(device, torch.float64 if exact else dtype) for x in drawn)
            given = [x.requires_grad_() for x in (q, k, v)]
            forward = partial(F.scaled_dot_product_attention, q, k, v, is_causal=causal)
            y = forward()
            backward = partial(torch.autograd.grad, y, given, slope, retain_graph=True)
            made, file = (y, *backward()), folder / f"{number}{dtype}.pt"
            if exact:
                keep(made, file)
                continue
            times = f"{best(forward, synchronize):.3f} + {best(backward, synchronize):.3f} ms"
            print(
                f"{device:5} {name:22} {str(dtype).removeprefix('torch.'):9} {times}, off {off(made, file)}", flush=True
            )


if __name__ == "__main__":
    sys.exit(main(__doc__, child))
