"""What the host loses after a copy besides its call, and after reads of a value: one small training step with each and without.

    python benchmarks/after_copies.py --device cuda

An upload from pageable memory stands beside one from pinned memory, and so does the latter with a copy from host to host
(`staging`: what a driver does with pageable memory, without a driver); a download beside a wait, reads beside nothing.
What is lost is the difference of the steps less that of the calls, the median of eight pairs of blocks, with its quartiles.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable
from statistics import median, quantiles
from time import perf_counter
from typing import Any

SIZES = (1 << 12, 1 << 16, 1 << 19, 3 << 19, 1 << 22, 1 << 23)  # bytes
STEPS, PAIRS = 25, 8
Call = Callable[[int], Any]


def small_step(torch: Any, device: Any) -> Callable[[], Any]:
    """A training step that the host bounds; returns its loss."""
    torch.manual_seed(0)
    layers = [m for _ in range(4) for m in (torch.nn.Linear(128, 128), torch.nn.ReLU())]
    net, x = torch.nn.Sequential(*layers).to(device), torch.randn(64, 128).to(device)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)

    def step() -> Any:
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def compared(step: Callable[[], Any], synchronize: Callable[[], object], one: Call, other: Call) -> str:
    """A line: the step with one call and with the other, ms, what the calls take of it, and what else differs, us."""

    def block(call: Call) -> tuple[float, float]:
        inside = 0.0
        for number in range(-3, STEPS):
            if number == 0:
                synchronize()
                begin, inside = perf_counter(), 0.0
            step()
            called = perf_counter()
            call(number)
            inside += perf_counter() - called
        synchronize()
        return 1e3 * (perf_counter() - begin) / STEPS, 1e3 * inside / STEPS

    rows = []
    for _ in range(PAIRS):
        found = [block(call) for call in (one, other, other, one)]
        rows.append(
            [(a + b) / 2 for a, b in (*zip(found[0], found[3], strict=True), *zip(found[1], found[2], strict=True))]
        )
    lost = [1e3 * ((with_it - call) - (without - instead)) for with_it, call, without, instead in rows]
    low, middle, high = quantiles(lost, n=4)
    with_it, call, without, instead = (median(column) for column in zip(*rows, strict=True))
    steps = f"{with_it:.2f} ms (call {call:.3f}), {without:.2f} (call {instead:.3f})"
    return f"{steps}: {middle:+.0f} us besides ({low:+.0f} to {high:+.0f})"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="cuda")
    given = options.parse_args()
    import torch

    device = torch.device(given.device)
    step, synchronize = small_step(torch, device), getattr(torch, device.type).synchronize
    gc.disable()
    kept: list[Any] = [None]
    for size in SIZES:
        host = [torch.rand(size // 4) for _ in range(4)]
        pinned = [one.pin_memory() for one in host] if device.type == "cuda" else host
        there, stage = torch.rand(size // 4).to(device), torch.empty(size // 4)

        def upload(number: int, host: list[Any] = host) -> None:
            kept[0] = host[number % 4].to(device)

        def from_pinned(number: int, pinned: list[Any] = pinned) -> None:
            kept[0] = pinned[number % 4].to(device, non_blocking=True)

        def staging(number: int, host: list[Any] = host, stage: Any = stage, fetch: Call = from_pinned) -> None:
            fetch(number)
            stage.copy_(host[number % 4])

        def download(_: int, there: Any = there) -> None:
            kept[0] = there.cpu()

        print(f"{size:,} bytes")
        for call, instead in ((upload, from_pinned), (staging, from_pinned), (download, lambda _: synchronize())):
            print(f"  {call.__name__:9}", compared(step, synchronize, call, instead), flush=True)
    loss = step()
    for count in (1, 4, 16):

        def reads(_: int, count: int = count) -> None:
            for _ in range(count):
                loss.item()

        print(f"{count} reads  ", compared(step, synchronize, reads, lambda _: None), flush=True)


if __name__ == "__main__":
    main()
