"""Comprehensions on the device `ocl` beside the same by eager operators on `ocl`, and by eager and compiled torch on CUDA, in
fp32 with TF32 off:

    python benchmarks/comprehensions.py --devices ocl,cuda --tune 3
    python benchmarks/comprehensions.py --devices ocl,cpu --small          what PoCL can be asked for

Every device has a process of its own. A row `with gradients` is forward and backward, to all inputs of floating point. Times
are milliseconds of a call, as the median (low-high) of measurements, each of many calls in a row that are waited for together.
`launches` are kernels of a call, by operators and as a comprehension; `first` is the first call, with compiling. `error` is the
largest deviation from float64, as a share of the largest element. The table is printed as markdown.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

import torch
from compared_comprehensions import CASES, Case, randn


def arguments(case: Case, sizes: dict[str, int], device: str) -> list[Any]:
    torch.manual_seed(0)
    made = [x.to(device) if isinstance(x, torch.Tensor) else x for x in case.make(randn, sizes)]
    return [
        x.requires_grad_() if case.train and isinstance(x, torch.Tensor) and x.dtype.is_floating_point else x
        for x in made
    ]


def tensors(result: Any) -> tuple[torch.Tensor, ...]:
    return result if isinstance(result, tuple) else (result,)


def call(case: Case, function: Callable[..., Any], args: list[Any]) -> Callable[[], tuple[torch.Tensor, ...]]:
    inputs = [x for x in args if isinstance(x, torch.Tensor) and x.requires_grad]
    given: list[torch.Tensor] = []

    def run() -> tuple[torch.Tensor, ...]:
        results = tensors(function(*args))
        if not case.train:
            return results
        if not given:
            given.extend(torch.ones_like(x) / x.numel() for x in results)
        return (*results, *torch.autograd.grad(results, inputs, given))

    return run


def milliseconds(run: Callable[[], Any], wait: Callable[[], None], seconds: float) -> tuple[float, float, float]:
    """Of a call: the median of several measurements between the tenth and the ninetieth of a hundred, low and high."""
    run()
    run()
    wait()
    begin = time.perf_counter()
    run()
    wait()
    again = max(1, min(100, int(0.02 / (time.perf_counter() - begin))))
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 60):
        begin = time.perf_counter()
        for _ in range(again):
            run()
        wait()
        times.append((time.perf_counter() - begin) / again * 1e3)
    times.sort()
    return times[len(times) // 10], times[len(times) // 2], times[len(times) - 1 - len(times) // 10]


def deviation(case: Case, sizes: dict[str, int], run: Callable[[], tuple[torch.Tensor, ...]]) -> float:
    """From float64 on the CPU, at the small sizes."""
    args = [
        x.detach().double() if isinstance(x, torch.Tensor) and x.dtype.is_floating_point else x
        for x in arguments(case, sizes, "cpu")
    ]
    args = [
        x.requires_grad_() if case.train and isinstance(x, torch.Tensor) and x.dtype.is_floating_point else x
        for x in args
    ]
    right = [x.detach() for x in call(case, case.torch, args)()]
    found = [x.detach().cpu().double().reshape(y.shape) for x, y in zip(run(), right, strict=True)]
    return max(float((x - y).abs().max() / y.abs().max().clamp(min=1e-30)) for x, y in zip(found, right, strict=True))


def on_device(device: str, cases: list[Case], small: bool, seconds: float, tuning: float, compiles: bool) -> None:
    """Prints a line of JSON for each case."""
    if device != "cuda":
        import syncscope.kernels
        from syncscope.kernels import comprehension

    waits: dict[str, Callable[[], None]] = {"cuda": torch.cuda.synchronize, "cpu": lambda: None}
    wait = waits[device] if device != "ocl" else torch.ocl.synchronize
    compiled: dict[str, Callable[[], object]] = {}
    for case in cases if compiles else []:
        with contextlib.suppress(Exception):
            run = call(case, torch.compile(case.torch), arguments(case, case.small if small else case.sizes, device))
            run()
            compiled[case.name] = run
    x = torch.ones(1, requires_grad=True)
    torch.autograd.grad(x * 2, x, torch.ones(1))  # the first of a process imports sympy, on any device
    if device == "cuda":
        sys.stdin.readline()
    for case in cases:
        row: dict[str, Any] = {"name": case.name, "device": device}
        sizes = case.small if small else case.sizes
        try:
            args = arguments(case, sizes, device)
            eager = call(case, case.torch, args)
            if device == "ocl":
                function = comprehension(case.text)
                run = call(case, function, args)
                begin = time.perf_counter()
                run()
                wait()
                row["first"] = time.perf_counter() - begin
                for key, one in (("launches", run), ("launches eager", eager)):
                    one()
                    before = syncscope.kernels.queue.launches
                    one()
                    row[key] = syncscope.kernels.queue.launches - before
                row["error"] = deviation(case, case.small, call(case, function, arguments(case, case.small, device)))
                row["ms"] = milliseconds(run, wait, seconds)
                plan = function.made(args).plan
                row["kernels"] = [] if plan is None else [ready.kernel for ready in plan.units]
                if tuning and not case.train:
                    row["tuned"] = function.tune(*args, seconds=tuning, quiet=True)
                    row["ms tuned"] = milliseconds(run, wait, seconds)
                    row["explain"] = function.explain(*args)
            if case.name in compiled:
                row["ms compiled"] = milliseconds(compiled.pop(case.name), wait, seconds)
            row["ms eager"] = milliseconds(eager, wait, seconds)
        except Exception as error:  # one that fails must not take the others along
            row["failed"] = f"{type(error).__name__}: {error}"
            traceback.print_exc()
        print(json.dumps(row), flush=True)


def table(rows: list[dict[str, Any]], devices: list[str]) -> None:
    found = {(row["name"], row["device"]): row for row in rows}
    other = next((d for d in devices if d != "ocl"), "")
    columns = ("comprehension", "tuned", "eager ocl", f"eager {other}", "compiled", "x ocl", f"x {other}", "x compiled")
    print("| " + " | ".join(("", "launches", "first s", "error", *columns)) + " |")
    print("| --- " * (len(columns) + 4) + "|")
    for case in CASES:
        a, b = found.get((case.name, "ocl"), {}), found.get((case.name, other), {})
        if not a:
            continue
        measured = [a.get("ms"), a.get("ms tuned"), a.get("ms eager"), b.get("ms eager"), b.get("ms compiled")]
        own = min((x for x in measured[:2] if x is not None), key=lambda x: x[1], default=None)
        cells = [case.name, f"{a.get('launches eager', '-')} to {a.get('launches', '-')}"]
        cells += ["-" if a.get(key) is None else f"{a[key]:.2g}" for key in ("first", "error")]
        cells += ["-" if x is None else f"{x[1]:.3g} ({x[0]:.3g}-{x[2]:.3g})" for x in measured]
        cells += ["-" if own is None or x is None else f"{x[1] / own[1]:.2f}" for x in measured[2:]]
        print("| " + " | ".join(cells) + " |" + (f"  {a['failed']}" if "failed" in a else ""))


def start(device: str, stdin: int) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--here", device, *sys.argv[1:]]
    return subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE, text=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="ocl,cpu")
    parser.add_argument("--small", action="store_true", help="sizes for a CPU")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    parser.add_argument("--tune", type=float, default=0.0, help="seconds for each comprehension, on ocl")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--eager", action="store_true", help="without torch.compile, which takes minutes for all cases")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    args = parser.parse_args()
    cases = [case for case in CASES if args.only in case.name]
    if args.here:
        on_device(args.here, cases, args.small, args.seconds, args.tune, args.here == "cuda" and not args.eager)
        return 0
    rows = []
    devices = args.devices.split(",")
    # torch.compile works on the host while another device is measured; then CUDA is told to begin.
    begun = {device: start(device, subprocess.PIPE) for device in devices if device == "cuda"}
    for device in devices:
        child = begun.get(device) or start(device, subprocess.DEVNULL)
        if child.stdin:
            with contextlib.suppress(BrokenPipeError):
                child.stdin.write("\n")
                child.stdin.flush()
        for line in child.stdout or ():
            if line.startswith('{"name"'):
                rows.append(json.loads(line))
                print(line.strip(), file=sys.stderr, flush=True)
        child.wait()
    table(rows, devices)
    return int(len(rows) < len(devices) * len(cases) or any("failed" in row for row in rows))


if __name__ == "__main__":
    sys.exit(main())
