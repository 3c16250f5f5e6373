"""What tracing costs on a GPU, as ratios of one run: each mode beside the untraced step, in turn, several times.

    python benchmarks/trace_overhead_cuda.py

A recording on CUDA holds one of torch.profiler's: what it costs more than that is ours. A figure is the median over the
turns, with the quartiles, of wall time, synchronised before each reading of the clock.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import syncscope

sys.path.insert(0, str(Path(__file__).parents[1] / "samples"))
import segmentation as sample

TURNS = 5
Step = Callable[[], Any]


def small_operators(device: torch.device) -> Step:
    x = torch.randn(64, 64, device=device)

    def step() -> Any:
        y = x
        for _ in range(100):
            y = (y * 1.01).relu()
        return y.sum().item()

    return step


def segmentation(device: torch.device) -> Step:
    net = sample.network().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
    images, labels = next(iter(torch.utils.data.DataLoader(sample.crops(8, 256), batch_size=8)))
    images, labels = images.to(device), labels.to(device)

    def step() -> None:
        optimizer.zero_grad()
        sample.loss_as_written(net(images), labels).backward()
        optimizer.step()

    return step


def transformer(device: torch.device) -> Step:
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
    net = torch.nn.TransformerEncoder(layer, 6).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    x = torch.randn(32, 256, 512, device=device)

    def step() -> Any:
        optimizer.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


@contextlib.contextmanager
def profiler(stacks: bool) -> Iterator[None]:
    which = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[which.CPU, which.CUDA], with_stack=stacks, acc_events=True):
        yield


STEPS = {
    "200 small operators": (small_operators, 40),
    "segmentation": (segmentation, 20),
    "transformer": (transformer, 10),
}
MODES: dict[str, Callable[[], Any]] = {
    "untraced": contextlib.nullcontext,
    "watch": syncscope.watch,
    "trace": syncscope.trace,
    "torch.profiler": lambda: profiler(False),
    "with stacks": lambda: profiler(True),
}


def main() -> None:
    if not torch.cuda.is_available():
        raise SystemExit("no CUDA device here")
    device = torch.device("cuda")
    torch.manual_seed(0)
    table = Table("times the untraced step", *MODES, title=torch.cuda.get_device_name())
    for name, (make, count) in STEPS.items():
        step = make(device)
        for _ in range(10):
            step()
        ratios: dict[str, list[float]] = {mode: [] for mode in MODES}
        bare: list[float] = []
        for _ in range(TURNS):
            for mode, recording in MODES.items():
                with recording():
                    step()
                    torch.cuda.synchronize()
                    began = time.perf_counter()
                    for _ in range(count):
                        step()
                    torch.cuda.synchronize()
                    taken = (time.perf_counter() - began) / count
                if mode == "untraced":
                    bare.append(taken)
                ratios[mode].append(taken / bare[-1])
        cells = [f"{median(bare) * 1e3:.2f} ms"]
        for mode in list(MODES)[1:]:
            low, _, high = quantiles(ratios[mode], n=4)
            cells.append(f"{median(ratios[mode]):.3f} ({low:.3f}-{high:.3f})")
        table.add_row(name, *cells)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
