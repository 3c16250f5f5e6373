"""Every network of `syncscope bench` trained on `ocl` beside the same in float64: `python benchmarks/networks.py [NETWORK...]`.

Prints, for each, the largest relative deviation of the losses from float64, that of float32 on the reference device, fallbacks
to the CPU and launches of a step. Random weights; each device and dtype in a process of its own.

    --steps 20 --batch 2 --pixels 224    how much
    --reference cpu                      where float64 runs; cuda where there is one
    --tf32                               precision as PyTorch comes: convolutions in TF32
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from typing import Any

Row = dict[str, Any]


def child(device: str, dtype: str, names: list[str], steps: int, batch: int, pixels: int, tf32: bool) -> None:
    """Trains in this process, and prints a line of JSON for each network."""
    import torch

    from syncscope.bench import measure, networks

    synchronize, _ = measure.prepare(device, tf32)
    for name in names:
        start = time.perf_counter()
        task: networks.Task | None = None
        made: Row
        try:
            task = networks.task(name, device, batch, pixels, getattr(torch, dtype), dropout=False)
            losses = [task.step().detach() for _ in range(steps - 1)]
            before = measure._counts(device)
            losses.append(task.step().detach())
            after = measure._counts(device)
            synchronize()
            made = {"losses": [float(x) for x in losses]} | {key: after[key] - before[key] for key in after}
        except Exception as error:  # one network must not end the table
            made = {"error": f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"[:90]}
        print(json.dumps({"network": name, "seconds": round(time.perf_counter() - start, 1), **made}), flush=True)
        task = None
        if device == "ocl":
            torch.ocl.empty_cache()


def gathered(device: str, dtype: str, options: argparse.Namespace) -> dict[str, Row]:
    """What a process of that device and dtype says, by network."""
    flags = [f"--steps={options.steps}", f"--batch={options.batch}", f"--pixels={options.pixels}"]
    flags += ["--tf32"] * options.tf32
    command = [sys.executable, __file__, *options.networks, "--child", device, dtype, *flags]
    made = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return {row["network"]: row for row in map(json.loads, made.splitlines()) if isinstance(row, dict)}


def apart(row: Row, exact: Row) -> str:
    """The largest relative difference of the losses."""
    if "losses" not in row or "losses" not in exact:
        return str(row.get("error") or exact.get("error", ""))
    pairs = zip(row["losses"], exact["losses"], strict=True)
    return f"{max(abs(a - b) / max(abs(b), 1e-3) for a, b in pairs):.1e}"


def main() -> int:
    from syncscope.bench.networks import LIST

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=LIST)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--pixels", type=int, default=224)
    parser.add_argument("--reference", default="cpu")
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        device, dtype = options.child
        child(device, dtype, options.networks, options.steps, options.batch, options.pixels, options.tf32)
        return 0
    ours = gathered("ocl", "float32", options)
    exact, plain = (gathered(options.reference, dtype, options) for dtype in ("float64", "float32"))
    print(
        f"{options.steps} steps of SGD, batch {options.batch}, {options.pixels} pixels, against {options.reference} in float64"
    )
    print(
        f"{'network':<20} {'ocl':>9} {options.reference + ' float32':>14} {'fallbacks':>9} {'launches':>8}   last loss"
    )
    for name in options.networks:
        row = ours.get(name, {"error": "its process ended"})
        facts = f"{row.get('fallbacks', ''):>9} {row.get('launches', ''):>8}   {row.get('losses', [0])[-1]:.5g}"
        print(
            f"{name:<20} {apart(row, exact.get(name, {})):>9} {apart(plain.get(name, {}), exact.get(name, {})):>14} {facts}"
        )
    return int(any("losses" not in each.get(name, {}) for name in options.networks for each in (ours, exact, plain)))


if __name__ == "__main__":
    sys.exit(main())
