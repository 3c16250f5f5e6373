"""Products and convolutions on the device `ocl` beside PyTorch's own devices, in fp32 with TF32 off, synchronised:

    python benchmarks/device_speed.py --devices ocl,cuda --batch 64

A convolution is its forward and both gradients. `--dtype float16` has all tensors in half precision. `tinygrad` and `clblast`
are devices, too, for products alone, in float32 (`peers.py`). Each device runs in a process of its own, by turns. Prints the
median and the quartiles of each, and the ratio to the last device named. `syncscope bench` does whole networks.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from peers import PEERS

Call = Callable[[], object]
Row = dict[str, Any]


def quartiles(times: list[float]) -> dict[str, float]:
    low, middle, high = statistics.quantiles(times, n=4) if len(times) > 1 else times * 3
    return {"ms": middle * 1e3, "low": low * 1e3, "high": high * 1e3}


def measure(step: Call, wait: Call, seconds: float) -> dict[str, float]:
    for _ in range(3):
        step()
    wait()
    begin = time.perf_counter()
    step()
    wait()
    again = max(1, min(50, int(0.02 / (time.perf_counter() - begin))))
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 100):
        begin = time.perf_counter()
        for _ in range(again):
            step()
        wait()
        times.append((time.perf_counter() - begin) / again)
    return quartiles(times)


def product(size: int, device: str, dtype: torch.dtype) -> Call:
    torch.manual_seed(0)
    a, b = (torch.randn(size, size).to(device, dtype) for _ in range(2))
    out = torch.empty(size, size, device=device, dtype=dtype)
    return lambda: torch.mm(a, b, out=out)


def convolution(read: int, made: int, side: int, taps: int, batch: int, device: str, dtype: torch.dtype) -> Call:
    torch.manual_seed(0)
    shapes = (batch, read, side, side), (made, read, taps, taps), (batch, made, side, side)
    image, weight, grad = (torch.randn(shape).to(device, dtype) for shape in shapes)
    rest = (1, 1), (taps // 2,) * 2, (1, 1), False, (0, 0), 1

    def step() -> None:
        torch.ops.aten.convolution(image, weight, None, *rest)
        torch.ops.aten.convolution_backward(grad, image, weight, None, *rest, (True, True, False))

    return step


def child(device: str, options: argparse.Namespace) -> None:
    if device in PEERS:
        for size in options.products:
            step, wait = PEERS[device](size)
            row = measure(step, wait, options.seconds)
            print(json.dumps({"what": f"product {size}", "device": device, **row}), flush=True)
        return
    wait = lambda: None  # noqa: E731 - PyTorch's CPU is there when it returns
    if device == "cuda":
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        wait = torch.cuda.synchronize
    elif device == "ocl":
        import syncscope.kernels  # noqa: F401 - registers the device

        wait = torch.ocl.synchronize
    for size in options.products:
        row = measure(product(size, device, options.dtype), wait, options.seconds)
        print(json.dumps({"what": f"product {size}", "device": device, **row}), flush=True)
    for shape in options.convolutions:
        read, made, side, taps = shape
        step = convolution(read, made, side, taps, options.batch, device, options.dtype)
        row = measure(step, wait, options.seconds)
        what = f"{taps} x {taps}, {read} to {made}, {side} px"
        print(json.dumps({"what": what, "device": device, **row}), flush=True)


def table(rows: list[Row], devices: list[str]) -> None:
    peer = devices[-1]
    print(f"{'ms, median (quartiles)':26}" + "".join(f"{device:>28}" for device in devices) + f"   of {peer}'s speed")
    for what in dict.fromkeys(row["what"] for row in rows):
        of = {row["device"]: row for row in rows if row["what"] == what and "ms" in row}
        cells = [f"{of[d]['ms']:.4g} ({of[d]['low']:.4g} .. {of[d]['high']:.4g})" if d in of else "-" for d in devices]
        ratio = f"{of[peer]['ms'] / of[devices[0]]['ms']:.0%}" if peer in of and devices[0] in of else "-"
        print(f"{what:26}" + "".join(f"{cell:>28}" for cell in cells) + f"   {ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="ocl,cuda" if torch.cuda.is_available() else "ocl,cpu")
    parser.add_argument("--products", default="1024,2048,4096", type=lambda x: [int(n) for n in x.split(",") if n])
    parser.add_argument(
        "--convolutions", default="64x64x56x3,128x128x28x3,256x256x14x3,512x512x7x3,256x64x56x1",
        metavar="READxMADExSIDExTAPS,...",
        type=lambda x: [tuple(map(int, shape.split("x"))) for shape in x.split(",") if shape],
    )  # fmt: skip
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--dtype", type=lambda name: getattr(torch, name), default=torch.float32)
    parser.add_argument("--seconds", type=float, default=3, help="for each measurement")
    parser.add_argument("--rounds", type=int, default=1, help="how often the devices take turns; the best round counts")
    parser.add_argument("--json", type=Path, help="where to write the rows")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options)
        return
    devices = options.devices.split(",")
    best: dict[tuple[str, str], Row] = {}
    for device in devices * options.rounds:
        command = [sys.executable, __file__, *sys.argv[1:], "--child", device]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stderr[-2000:], file=sys.stderr)
        for row in map(json.loads, done.stdout.splitlines()):
            key = row["what"], row["device"]
            if key not in best or row.get("ms", 1e9) < best[key].get("ms", 1e9):
                best[key] = row
    rows = list(best.values())
    table(rows, devices)
    if options.json:
        options.json.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
