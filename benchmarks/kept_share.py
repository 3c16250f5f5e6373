"""From which share of kept rows on a loss over all rows pays: `python benchmarks/kept_share.py`.

    F.cross_entropy(out[mask], y[mask])            as written: waits, then computes what was kept
    F.cross_entropy(out, y.where(mask, -100))      as fixed: waits for nothing, and computes every row

Wants a CUDA device. Printed are, for each shape, the microseconds that the device takes for forward and backward of both,
and the share from which on it has no more to do as fixed: there the rewrite pays even where the wait cost nothing. Below it
the rewrite pays where the wait cost more than the difference in the last column, which is the largest one: at a share of 5 %.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import torch
from torch.autograd import DeviceType
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

SHAPES = [(2708, 7), (16384, 10), (262144, 21), (4096, 128), (2048, 1000), (8192, 1000), (2048, 8000), (2048, 32000)]
SHARES = (0.05, 0.15, 0.3, 0.4, 0.5, 0.6, 0.75, 0.95)
TIMES = 10


def busy(step: Callable[[], torch.Tensor], out: torch.Tensor) -> float:
    """The microseconds of the device for one step and its gradient: the median of some."""
    spent = []
    for _ in range(TIMES + 2):
        out.grad = None
        with profile(activities=[ProfilerActivity.CUDA]) as recorded:
            step().backward()
            torch.cuda.synchronize()
        events = [e for e in recorded.events() if e.device_type == DeviceType.CUDA]
        spent.append(float(sum(e.device_time_total for e in events)))
    return sorted(spent[2:])[TIMES // 2]


def loss(out: torch.Tensor, y: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
    return functional.cross_entropy(*((out, y) if mask is None else (out[mask], y[mask])))


def measured(rows: int, classes: int) -> tuple[float, list[float]]:
    """The device's time of the loss over all rows, and of the loss of each of `SHARES`."""
    out = torch.randn(rows, classes, device="cuda", requires_grad=True)
    y = torch.randint(0, classes, (rows,), device="cuda")
    order = torch.rand(rows, device="cuda")
    over_all = busy(partial(loss, out, y.where(order < 0.5, -100), None), out)
    kept = [busy(partial(loss, out, y, order < share), out) for share in SHARES]
    return over_all, kept


def even(over_all: float, kept: list[float]) -> str:
    """The share from which on all rows take no longer: between two of them by a straight line."""
    if kept[0] >= over_all:
        return "any"
    for at in range(1, len(kept)):
        if kept[at] >= over_all:
            low, high, below, above = SHARES[at - 1], SHARES[at], kept[at - 1], kept[at]
            return f"{100 * (low + (high - low) * (over_all - below) / (above - below)):.0f} %"
    return "none"


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("there is no CUDA device: this compares times of its kernels")
    print(
        f"{torch.cuda.get_device_name()}, torch {torch.__version__}: microseconds of the device, forward and backward"
    )
    shares = " ".join(f"{100 * s:>5.0f} %" for s in SHARES)
    print(f"{'rows':>7} {'classes':>7} {'all':>8} | kept {shares} | pays from, else costs")
    for rows, classes in SHAPES:
        over_all, kept = measured(rows, classes)
        times, most = " ".join(f"{k:>7.0f}" for k in kept), max(0, over_all - kept[0])
        print(
            f"{rows:>7} {classes:>7} {over_all:>8.0f} |     {times} | {even(over_all, kept):>9} {most:>8.0f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
