"""What one iteration has to do, and what each of its operators takes, seen from above every device alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode


class _Bytes(TorchDispatchMode):
    """The least that must move: every operator reads its tensors once and writes its results once; views are free."""

    def __init__(self) -> None:
        super().__init__()
        self.moved = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if not func.is_view:
            self.moved += sum(
                x.numel() * x.element_size() for x in tree_leaves((args, kwargs, made)) if isinstance(x, torch.Tensor)
            )
        return made


def _linear_backward(rows: torch.Size, grad: torch.Size, weight: torch.Size, mask: list[bool], **_: Any) -> int:
    """Of the device `ocl`; PyTorch's own formulas do not know it."""
    return int(2 * rows.numel() * weight[0] * sum(mask[:2]))


def work(iteration: Callable[[], Any]) -> tuple[float, float]:
    """Floating-point operations and bytes of one iteration; operations are those of products and convolutions."""
    own = {torch.ops.aten.linear_backward: _linear_backward}
    with _Bytes() as moved, FlopCounterMode(display=False, custom_mapping=own) as counted:
        iteration()
    return float(counted.get_total_flops()), float(moved.moved)


class _Clocked(TorchDispatchMode):
    def __init__(self, synchronize: Callable[[], None]) -> None:
        super().__init__()
        self.synchronize = synchronize
        self.seconds: dict[str, float] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        start = time.perf_counter()
        made = func(*args, **(kwargs or {}))
        self.synchronize()
        shapes = [tuple(x.shape) for x in tree_leaves(args) if isinstance(x, torch.Tensor)][:3]
        words = " ".join("x".join(map(str, shape)) for shape in shapes if shape)
        name = f"{func.overloadpacket.__name__} {words}".strip()
        self.seconds[name] = self.seconds.get(name, 0) + time.perf_counter() - start
        return made


def operators(iteration: Callable[[], Any], synchronize: Callable[[], None]) -> dict[str, float]:
    """Milliseconds of each operator with its shapes in one iteration, each waited for: to compare devices by."""
    synchronize()
    with _Clocked(synchronize) as clock:
        iteration()
    return {name: 1e3 * seconds for name, seconds in clock.seconds.items()}


ROOM = 100  # operators, of a few launches each: a driver's queue holds about a thousand


class _Drained(TorchDispatchMode):
    """Empties the queue before it can be full, and clocks the waits."""

    def __init__(self, synchronize: Callable[[], None]) -> None:
        super().__init__()
        self.synchronize = synchronize
        self.operators = 0
        self.waited = 0.0  # seconds

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.operators += 1
        if not self.operators % ROOM:
            start = time.perf_counter()
            self.synchronize()
            self.waited += time.perf_counter() - start
        return func(*args, **(kwargs or {}))


def enqueueing(call: Callable[[], Any], synchronize: Callable[[], None]) -> float:
    """Milliseconds in which the host enqueues, at most: it never waits for room in the queue, but being watched takes time."""
    synchronize()
    start = time.perf_counter()
    drained = _Drained(synchronize)
    with drained:
        call()
    return 1e3 * (time.perf_counter() - start - drained.waited)


def ceilings(device: str, synchronize: Callable[[], None], dtype: torch.dtype, tf32: bool) -> tuple[float, float]:
    """Operations and bytes per second that a product of matrices in this dtype and a copy reach on this device. With `tf32` a
    product may be made in TF32, as PyTorch's convolutions are."""
    side, size = (1024, 1 << 25) if device == "cpu" else (4096, 1 << 30)
    if device == "ocl":
        from syncscope.kernels.device import info

        if info().kind == "CPU":
            side, size = 1024, 1 << 25
    a, b = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    source = torch.zeros(size // 4, device=device)
    target = torch.empty_like(source)
    matmul = torch.backends.cuda.matmul
    before, matmul.allow_tf32 = matmul.allow_tf32, tf32
    flops = 2 * side**3 / _best(lambda: torch.mm(a, b), synchronize)
    matmul.allow_tf32 = before
    bandwidth = 2 * size / _best(lambda: target.copy_(source), synchronize)
    return flops, bandwidth


def _best(call: Callable[[], Any], synchronize: Callable[[], None]) -> float:
    best = float("inf")
    for _ in range(8):
        synchronize()
        start = time.perf_counter()
        call()
        synchronize()
        best = min(best, time.perf_counter() - start)
    return best
