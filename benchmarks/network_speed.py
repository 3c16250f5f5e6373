"""Steps of every network of `syncscope bench`, and of an MLP of four layers of 4,096, on one device after another.

    python benchmarks/network_speed.py --devices ocl,cuda --batch 64,1 [NETWORK...]

Networks train as people run them: with dropout, and in the precision that PyTorch comes with, which is TF32 for convolutions;
`--no-dropout` does without, `--precision comes,float32` trains in both, one after the other. First every network trains two
steps in processes side by side, so that the driver's cache has the kernels (`--workers 0` leaves that to first steps); then
each is timed with nothing else running, in a process of its own that had made the device ready.
`--turns` times the devices one after the other again and again, for machines that others work on, and `--ahead 0` imports
nothing meanwhile, for devices that are the processor itself:

    python benchmarks/network_speed.py --devices ocl,cpu --batch 4,16 --turns 3 --ahead 0 --workers 1 [NETWORK...]

Prints milliseconds of a step (median and quartiles), those of the host alone, the first device's speed as a share of the
second's, launches, fallbacks, and how far the losses of three steps are apart; last the mean share of each batch.

`network_speed.json` beside this file holds the last table of each GPU. What the first device takes more than a tenth longer for
than there is printed at the end, and makes the exit code 1; `--keep` puts the new times in its place, network by network.
`--operators FILE` appends what each operator takes where it is waited for, on every device, as a line of JSON.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import copy
import gc
import itertools
import json
import os
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
EXACT = "float32"  # the precision without TF32
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


def child(name: str, device: str, options: argparse.Namespace) -> None:
    """Prints a row of JSON for each batch and precision that a line asks for; with no seconds it only trains two steps. What is
    asked for again is timed again."""
    import torch

    from syncscope.bench import OWN, measure, networks, work

    synchronize, about = measure.prepare(device)
    half = getattr(torch, options.half) if options.half else None

    def made(batch: int) -> Task:
        if name == "mlp4096":
            return mlp(device, batch)
        return networks.task(name, device, batch, options.pixels, half=half, dropout=not options.no_dropout)

    def trained(task: Task, batch: int) -> Row:
        begin = time.perf_counter()
        losses = [task.step().detach()]
        synchronize()
        first = time.perf_counter() - begin
        losses += [task.step().detach() for _ in range(2 if options.seconds else 1)]
        synchronize()
        before = measure._counts(device)
        if options.seconds:
            task.step()
        counts = {key: after - before[key] for key, after in measure._counts(device).items()}
        facts = {"batch": batch, "about": about["name"], "first": first, "losses": [float(x) for x in losses]}
        if options.operators:
            facts["operators"] = work.operators(task.step, synchronize)
        return facts | counts

    if name not in {"mlp4096", *OWN}:
        networks.torchvision_models()
    torch.zeros(1, device=device)
    task: Task | None = made(options.batches[0])  # while another is timed
    synchronize()
    print("ready", flush=True)
    at: Row = {}
    facts: Row = {}
    for text in sys.stdin:
        asked = json.loads(text)
        if asked != at:
            if at:
                task = None
                gc.collect()
            torch.backends.cudnn.allow_tf32 = asked["precision"] != EXACT
            task = task or made(asked["batch"])
            at, facts = asked, trained(task, asked["batch"])
        row = dict(facts)
        if options.seconds and task is not None:
            step = torch.ocl.capture(task.step).replay if options.captured and device == "ocl" else task.step
            whole, host = measure.timed(lambda: step, synchronize, options.seconds)  # noqa: B023 - called here
            low, median, high = statistics.quantiles(whole, n=4)
            row |= {"ms": median, "low": low, "high": high, "host": statistics.median(host)}
        print(json.dumps(row), flush=True)


def started(name: str, device: str, options: argparse.Namespace, seconds: float) -> subprocess.Popen[str]:
    """A process that imports, and then waits to be asked for a batch."""
    flags = [f"--pixels={options.pixels}", f"--seconds={seconds}", f"--batch={options.batch}"]
    flags += ["--no-dropout"] * options.no_dropout + ["--captured"] * options.captured
    flags += ([f"--half={options.half}"] if options.half else []) + (["--operators=-"] if options.operators else [])
    command = [sys.executable, "-W", "ignore", __file__, name, "--child", device, *flags]
    # these are processes beside each other already
    env = os.environ | ({} if seconds else {"SYNCSCOPE_OCL_BUILDS": "ahead"})
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)


def asked(process: subprocess.Popen[str], batch: int, precision: str) -> Row | None:
    """What it says of a batch in a precision; None where it ended, and its own words stand on standard error."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps({"batch": batch, "precision": precision}) + "\n")
        process.stdin.flush()
    except BrokenPipeError:
        return None
    said = process.stdout.readline()
    if said == "ready\n":
        said = process.stdout.readline()
    return json.loads(said) if said else None


def trained_aside(name: str, options: argparse.Namespace) -> None:
    """Trains two steps of each batch and precision, for the driver's cache."""
    process = started(name, "ocl", options, 0)
    for batch, precision in itertools.product(options.batches, options.precisions):
        asked(process, batch, precision)
    process.communicate()


def compared(
    processes: dict[str, subprocess.Popen[str]], batch: int, precision: str, turns: int
) -> tuple[dict[str, Row], list[float]]:
    """A row of each device, timed in turns, each of its times the median over them; and the first device's speed as a share of
    the second's, turn for turn."""
    found: dict[str, list[Row]] = {device: [] for device in processes}
    for _ in range(turns):
        for device, process in processes.items():
            row = asked(process, batch, precision)
            found[device] += [] if row is None else [row]
    times = ("ms", "low", "high", "host")
    rows = {
        device: of[0] | {key: statistics.median(row[key] for row in of) for key in times}
        for device, of in found.items()
        if of
    }
    first, *second = list(found.values())[:2]
    # one that has ended has fewer rows, and its turns are left out
    return rows, [b["ms"] / a["ms"] for a, b in zip(first, *second, strict=False)] if second else []


def line(name: str, of: dict[str, Row], shares: list[float]) -> str:
    """What is printed of one case."""
    text = f"{name:22}"
    for device, row in of.items():
        counts = "".join(f", {row[key]} {key}" for key in ("launches", "fallbacks") if row.get(key))
        text += f"  {device} {row['ms']:.2f} ({row['low']:.2f}-{row['high']:.2f}), host {row['host']:.2f}{counts}"
        text += f", first step {row['first']:.1f} s"
    if shares and len(of) > 1:
        first, second = list(of.values())[:2]
        pairs = zip(first["losses"], second["losses"], strict=True)
        apart = max(abs(a - b) / max(abs(b), 1e-3) for a, b in pairs)
        spread = f" ({min(shares):.0%}-{max(shares):.0%})" if len(shares) > 1 else ""
        text += f"  {statistics.median(shares):.0%}{spread}, losses {apart:.1e} apart"
    return text


def case(name: str, batch: int, precision: str, options: argparse.Namespace) -> str:
    """What a row of the table is called: all that is asked for beside the device."""
    size = f", {options.pixels} pixels" if options.pixels != 224 else ""
    how = ", no TF32" * (precision == EXACT) + ", no dropout" * options.no_dropout + ", captured" * options.captured
    return f"{name} {batch}{size}{how}{f', {options.half}' if options.half else ''}"


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
    parser.add_argument("--precision", default="comes", help=f"comes, {EXACT} (without TF32), or both with a comma")
    parser.add_argument("--no-dropout", action="store_true")
    parser.add_argument("--half", choices=("float16", "bfloat16"), help="train under autocast, float16 with a scaler")
    parser.add_argument("--captured", action="store_true", help="ocl replays a captured step; other devices do not")
    parser.add_argument("--keep", metavar="FILE", nargs="?", const=str(LAST), help="put the times into the table")
    parser.add_argument("--turns", type=int, default=1, help="how often the devices are timed, one after the other")
    parser.add_argument("--operators", metavar="FILE", help="append a line of JSON for each case")
    parser.add_argument("--ahead", type=int, default=AHEAD, help="processes that import while another is timed")
    parser.add_argument("--child", metavar="DEVICE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    batches = options.batches = [int(batch) for batch in options.batch.split(",")]
    options.precisions = options.precision.split(",")
    if wrong := set(options.precisions) - {"comes", EXACT}:
        parser.error(f"there is no precision {', '.join(sorted(wrong))}: say comes, {EXACT}, or both")
    if options.child:
        child(options.networks[0], options.child, options)
        return 0
    devices = options.devices.split(",")
    began = time.perf_counter()
    if "ocl" in devices and options.workers:
        with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
            list(pool.map(lambda name: trained_aside(name, options), options.networks))
        print(f"kernels compiled in {time.perf_counter() - began:.0f} s", flush=True)
    jobs = list(itertools.product(options.networks, devices))
    ahead: list[subprocess.Popen[str]] = []
    cases = list(itertools.product(batches, options.precisions))
    shares: dict[tuple[int, str], list[float]] = {each: [] for each in cases}
    table = json.loads(LAST.read_text(encoding="utf-8")) if LAST.exists() else {}
    last = copy.deepcopy(table)
    rows: dict[str, dict[str, Row]] = {device: {} for device in devices}
    for name in options.networks:
        for job in jobs[: max(options.ahead, len(devices)) - len(ahead)]:
            ahead.append(started(*job, options, options.seconds))
            jobs.remove(job)
        processes = {device: ahead.pop(0) for device in devices}
        for batch, precision in cases:
            found, in_turns = compared(processes, batch, precision, options.turns)
            called = case(name, batch, precision, options)
            for device, row in found.items():
                rows[device][called] = row
            print(line(called, found, in_turns), flush=True)
            shares[batch, precision] += [statistics.median(in_turns)] if in_turns else []
            if options.operators:
                with open(options.operators, "a", encoding="utf-8") as file:
                    each = {device: row["operators"] for device, row in found.items()}
                    file.write(json.dumps({"case": called} | each) + "\n")
        if options.keep:
            Path(options.keep).write_text(kept(rows, table), encoding="utf-8")
        for process in processes.values():
            process.communicate()
    for (batch, precision), of in shares.items():
        if of:
            print(
                f"mean of {len(of)} networks, batch {batch}, {precision}: {statistics.mean(of):.0%}, least {min(of):.0%}, "
                f"geometric {statistics.geometric_mean(of):.0%}"
            )
    lost = slower(devices[0], rows[devices[0]], last)
    for text in lost:
        print(f"slower than in {LAST.name}: {text}")
    return int(bool(lost))


if __name__ == "__main__":
    sys.exit(main())
