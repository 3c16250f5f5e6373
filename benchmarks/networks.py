"""Every network of `syncscope bench` trained on `ocl` beside the same in float64: `python benchmarks/networks.py [NETWORK...]`.

Prints, for each, the largest relative deviation of the losses from float64, that of float32 on the reference device, fallbacks
to the CPU and launches of a step. Random weights; each device and dtype in a process of its own.

    --steps 20 --batch 2 --pixels 224    how much
    --reference cpu                      where float64 runs; cuda where there is one
    --tf32                               precision as PyTorch comes: convolutions in TF32
    --jobs 6                             how many train beside each other
    --keep                               put the rows into network_losses.json beside this file, which docs/measured.md shows
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]
KEPT = Path(__file__).with_name("network_losses.json")


def child(device: str, dtype: str, names: list[str], steps: int, batch: int, pixels: int, tf32: bool) -> None:
    """Trains in this process, and prints a line of JSON for each network."""
    import torch

    from syncscope.bench import measure, networks

    synchronize, about = measure.prepare(device, tf32)
    for name in names:
        start = time.perf_counter()
        task: networks.Task | None = None
        made: Row
        try:
            task = networks.task(name, device, batch, pixels, getattr(torch, dtype), dropout=False)
            losses = [task.step().detach() for _ in range(steps - 1)]
            synchronize()  # else steps may wait for kernels that are being built, and their launches with them
            before = measure._counts(device)
            losses.append(task.step().detach())
            after = measure._counts(device)
            synchronize()
            made = {"losses": [float(x) for x in losses]} | {key: after[key] - before[key] for key in after}
        except Exception as error:  # one network must not end the table
            made = {"error": f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"[:90]}
        made["device"] = about["name"]
        print(json.dumps({"network": name, "seconds": round(time.perf_counter() - start, 1), **made}), flush=True)
        task = None
        if device == "ocl":
            torch.ocl.empty_cache()


def gathered(device: str, dtype: str, name: str, options: argparse.Namespace) -> Row:
    """What a process of that device and dtype says of a network."""
    flags = [f"--steps={options.steps}", f"--batch={options.batch}", f"--pixels={options.pixels}"]
    flags += ["--tf32"] * options.tf32
    command = [sys.executable, __file__, name, "--child", device, dtype, *flags]
    lines = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout.splitlines()
    row: Row = json.loads(lines[-1]) if lines else {"error": "its process ended"}
    return row


def apart(row: Row, exact: Row) -> str:
    """The largest relative difference of the losses."""
    if "losses" not in row or "losses" not in exact:
        return str(row.get("error") or exact.get("error", ""))
    pairs = zip(row["losses"], exact["losses"], strict=True)
    return f"{max(abs(a - b) / max(abs(b), 1e-3) for a, b in pairs):.1e}"


def table(kept: dict[str, dict[str, Row]]) -> Iterator[str]:
    """The rows that `--keep` left, as Markdown."""
    for how, rows in kept.items():
        yield f"{how}:\n"
        yield "| network | ocl | the reference | times as far | fallbacks |\n| --- | --- | --- | --- | --- |"
        for name, row in rows.items():
            times = float(row["ocl"]) / max(float(row["reference"]), 1e-8)
            yield f"| {name} | {row['ocl']} | {row['reference']} | {times:.1f} | {row['fallbacks']} |"
        yield ""


def main() -> int:
    from syncscope.bench.networks import LIST

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=LIST)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--pixels", type=int, default=224)
    parser.add_argument("--reference", default="cpu")
    parser.add_argument("--tf32", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        device, dtype = options.child
        child(device, dtype, options.networks, options.steps, options.batch, options.pixels, options.tf32)
        return 0
    reference = options.reference
    precision = "TF32 where PyTorch has it" if options.tf32 else "float32"
    how = (
        f"ocl, {reference} in {precision}, {options.steps} steps of SGD, batch {options.batch}, {options.pixels} pixels"
    )
    print(f"{how}: the largest relative deviation of a loss from {reference} in float64")
    print(f"{'network':<20} {'ocl':>9} {reference:>9} {'fallbacks':>9} {'launches':>8}   last loss", flush=True)
    failed = False
    runs = (("ocl", "float32"), (reference, "float64"), (reference, "float32"))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        rows = {
            name: [pool.submit(gathered, device, dtype, name, options) for device, dtype in runs]
            for name in options.networks
        }
        for name, made in rows.items():
            ours, exact, plain = (one.result() for one in made)
            wrong = any("losses" not in each for each in (ours, exact, plain))
            failed = failed or wrong
            row = {"ocl": apart(ours, exact), "reference": apart(plain, exact)}
            row["fallbacks"] = ours.get("fallbacks", "")
            facts = f"{row['fallbacks']:>9} {ours.get('launches', ''):>8}   {ours.get('losses', [0])[-1]:.5g}"
            print(f"{name:<20} {row['ocl']:>9} {row['reference']:>9} {facts}", flush=True)
            if options.keep and not wrong:
                kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
                kept.setdefault(f"{how}, on {exact['device']}", {})[name] = row
                KEPT.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
