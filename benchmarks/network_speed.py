"""Steps of every network of `syncscope bench`, and of an MLP of four layers of 4,096, on one device after another.

    python benchmarks/network_speed.py --devices ocl,cuda --batch 64,1 [NETWORK...]

Networks train as people run them: with dropout, and in the precision that PyTorch comes with, which is TF32 for convolutions;
`--no-dropout` and `--no-tf32` do without. First every network trains two steps in processes side by side, so that the driver's
cache has the kernels; then each is timed with nothing else running, in a process of its own that had imported torch before.
Prints milliseconds of a step (median and quartiles), those of the host alone, the first device's speed as a share of the
second's, launches, fallbacks, and how far the losses of three steps are apart; last the mean share of each batch.

`network_speed.json` beside this file holds the last table of each GPU. What the first device takes more than a tenth longer for
than there is printed at the end, and makes the exit code 1; `--keep` puts the new times in its place.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import gc
import itertools
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from syncscope.bench.networks import Task

Row = dict[str, Any]

AHEAD = 6  # processes that import while another is timed
SLOWER = 1.1  # times the time of the last table is told of, where the quartiles do not reach it
LAST = Path(__file__).with_suffix(".json")


def mlp(device: str, batch: int) -> Task:
    """Four layers of 4,096 with SGD: nothing but products and the host's calls."""
    import torch
    from torch import nn

    from syncscope.bench.networks import Task

    torch.manual_seed(0)
    layers = itertools.chain.from_iterable((nn.Linear(4096, 4096), nn.ReLU()) for _ in range(4))
    model = nn.Sequential(*list(layers)[:-1]).to(device)
    inputs, target = torch.randn(batch, 4096).to(device), torch.randint(0, 4096, (batch,)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    return Task(model, (inputs,), lambda y: nn.functional.cross_entropy(y, target), optimizer)


def child(name: str, device: str, batches: list[int], options: argparse.Namespace) -> None:
    """Waits for a line, then prints a row of JSON for each batch; with no seconds it only trains two steps."""
    from syncscope.bench import measure, networks

    synchronize, about = measure.prepare(device, not options.no_tf32)

    def task(batch: int) -> Task:
        if name == "mlp4096":
            return mlp(device, batch)
        return networks.task(name, device, batch, options.pixels, dropout=not options.no_dropout)

    def trained(batch: int) -> Row:
        begin = time.perf_counter()
        made = task(batch)
        losses = [made.step().detach()]
        synchronize()
        first = time.perf_counter() - begin
        losses += [made.step().detach() for _ in range(2 if options.seconds else 1)]
        synchronize()
        if not options.seconds:
            return {"first": first}
        before = measure._counts(device)
        made.step()
        counts = {key: after - before[key] for key, after in measure._counts(device).items()}
        whole, host = measure.timed(lambda: made.step, synchronize, options.seconds)
        low, median, high = statistics.quantiles(whole, n=4)
        times = {"ms": median, "low": low, "high": high, "host": statistics.median(host), "first": first}
        return {**times, **counts, "losses": [float(x) for x in losses]}

    print("ready", flush=True)
    sys.stdin.readline()
    for batch in batches:
        print(json.dumps({"batch": batch, "about": about["name"], **trained(batch)}), flush=True)
        gc.collect()


def started(name: str, device: str, options: argparse.Namespace, seconds: float) -> subprocess.Popen[str]:
    """A process that imports, and then waits to be told to begin."""
    flags = [f"--batch={options.batch}", f"--pixels={options.pixels}", f"--seconds={seconds}"]
    flags += ["--no-tf32"] * options.no_tf32 + ["--no-dropout"] * options.no_dropout
    command = [sys.executable, "-W", "ignore", __file__, name, "--child", device, *flags]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def rows_of(process: subprocess.Popen[str]) -> dict[int, Row]:
    """What it says once it is told to begin, by batch."""
    said = process.communicate("\n")[0].splitlines()
    return {row["batch"]: row for row in map(json.loads, said[1:])}


def line(name: str, batch: int, of: dict[str, Row], devices: list[str]) -> tuple[str, float | None]:
    """What is printed of one network and batch, and the first device's speed as a share of the second's."""
    text, share = f"{name:18} {batch:>3}", None
    for device, row in of.items():
        counts = "".join(f", {row[key]} {key}" for key in ("launches", "fallbacks") if row.get(key))
        text += f"  {device} {row['ms']:.2f} ({row['low']:.2f}-{row['high']:.2f}), host {row['host']:.2f}{counts}"
        text += f", first step {row['first']:.1f} s"
    if len(of) == len(devices) > 1:
        first, second = (of[device] for device in devices[:2])
        share = second["ms"] / first["ms"]
        pairs = zip(first["losses"], second["losses"], strict=True)
        apart = max(abs(a - b) / max(abs(b), 1e-3) for a, b in pairs)
        text += f"  {share:.0%}, losses {apart:.1e} apart"
    return text, share


def case(name: str, batch: int, options: argparse.Namespace) -> str:
    """What a row of the table is called: all that is asked for beside the device."""
    size = f", {options.pixels} pixels" if options.pixels != 224 else ""
    return f"{name} {batch}{size}{', no TF32' * options.no_tf32}{', no dropout' * options.no_dropout}"


def slower(device: str, rows: dict[str, Row], table: dict[str, Any]) -> list[str]:
    """What takes longer than in the last table of the same GPU, in words."""
    found = []
    for name, row in rows.items():
        before = table.get(row["about"], {}).get(device, {}).get(name)
        if before and row["ms"] > SLOWER * before["ms"] and row["low"] > before["high"]:
            found.append(f"{name}: {row['ms']:.2f} ms, {row['ms'] / before['ms'] - 1:.0%} more than {before['ms']:.2f}")
    return found


def kept(rows: dict[str, dict[str, Row]], table: dict[str, Any]) -> str:
    """The table with these rows (by device, then by case) in the place of the old ones, as JSON."""
    for device, of in rows.items():
        for name, row in of.items():
            times = {key: round(row[key], 3) for key in ("ms", "low", "high", "host", "first")}
            counts = {key: row[key] for key in ("launches", "fallbacks") if key in row}
            table.setdefault(row["about"], {}).setdefault(device, {})[name] = times | counts
    gpus = (
        f' "{gpu}": {{\n'
        + ",\n".join(
            f'  "{device}": {{\n'
            + ",\n".join(f"   {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(of.items()))
            + "\n  }"
            for device, of in devices.items()
        )
        + "\n }"
        for gpu, devices in table.items()
    )
    return "{\n" + ",\n".join(gpus) + "\n}\n"


def main() -> int:
    from syncscope.bench.networks import LIST

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=["mlp4096", *LIST])
    parser.add_argument(
        "--devices", default="ocl,cuda", help="separated by commas: the first is compared with the second"
    )
    parser.add_argument("--batch", default="64", help="separated by commas")
    parser.add_argument("--pixels", type=int, default=224)
    parser.add_argument("--seconds", type=float, default=0.6, help="for each network, batch and device")
    parser.add_argument("--workers", type=int, default=12, help="processes that compile side by side")
    parser.add_argument("--no-tf32", action="store_true", help="all in float32's precision")
    parser.add_argument("--no-dropout", action="store_true")
    parser.add_argument("--keep", metavar="FILE", nargs="?", const=str(LAST), help="put the times into the table")
    parser.add_argument("--child", metavar="DEVICE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    batches = [int(batch) for batch in options.batch.split(",")]
    if options.child:
        child(options.networks[0], options.child, batches, options)
        return 0
    devices = options.devices.split(",")
    began = time.perf_counter()
    if "ocl" in devices:
        with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
            list(pool.map(lambda name: rows_of(started(name, "ocl", options, 0)), options.networks))
        print(f"kernels compiled in {time.perf_counter() - began:.0f} s", flush=True)
    jobs = list(itertools.product(options.networks, devices))
    ahead = [started(*job, options, options.seconds) for job in jobs[:AHEAD]]
    shares: dict[int, list[float]] = {batch: [] for batch in batches}
    rows: dict[str, dict[str, Row]] = {device: {} for device in devices}
    for number, name in enumerate(options.networks):
        found: dict[str, dict[int, Row]] = {}
        for place, device in enumerate(devices, number * len(devices)):
            found[device] = rows_of(ahead.pop(0))
            ahead += [started(*job, options, options.seconds) for job in jobs[place + AHEAD : place + AHEAD + 1]]
            rows[device] |= {case(name, batch, options): row for batch, row in found[device].items()}
        for batch in batches:
            text, share = line(name, batch, {d: rows[batch] for d, rows in found.items() if batch in rows}, devices)
            print(text, flush=True)
            shares[batch] += [] if share is None else [share]
    for batch, of in shares.items():
        if of:
            print(
                f"mean of {len(of)} networks, batch {batch}: {statistics.mean(of):.0%}, least {min(of):.0%}, "
                f"geometric {statistics.geometric_mean(of):.0%}"
            )
    table = json.loads(LAST.read_text(encoding="utf-8")) if LAST.exists() else {}
    lost = slower(devices[0], rows[devices[0]], table)
    for text in lost:
        print(f"slower than in {LAST.name}: {text}")
    if options.keep:
        Path(options.keep).write_text(kept(rows, table), encoding="utf-8")
    return int(bool(lost))


if __name__ == "__main__":
    sys.exit(main())
