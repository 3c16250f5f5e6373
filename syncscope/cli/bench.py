"""syncscope bench: networks timed on several devices, side by side."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import click

from syncscope.cli._console import echo
from syncscope.errors import UserError

if TYPE_CHECKING:
    from syncscope.bench.results import Results

PASSES = {"train": "training", "forward": "inference", "backward": "backward pass"}


@click.command(short_help="Networks timed on several devices, side by side.")
@click.argument("networks", nargs=-1, metavar="[NETWORK|FILE.py:FUNCTION]...")
@click.option("--device", "devices", default="ocl,cpu", show_default=True, metavar="LIST", help="Of ocl, cuda and cpu.")
@click.option("--batch", "batches", default="1,8,64", show_default=True, metavar="LIST", help="Batch sizes.")
@click.option(
    "--pass", "which", type=click.Choice(list(PASSES)), default="train", show_default=True, help="What is timed."
)
@click.option("--pixels", default=224, show_default=True, metavar="N", help="Side of the images.")
@click.option(
    "--seconds", default=3.0, show_default=True, metavar="S", help="Time for each row, at least three iterations."
)
@click.option("--operators", is_flag=True, help="Also time each operator alone, and list where most is lost.")
@click.option(
    "--read", "files", multiple=True, metavar="FILE", help="Show what --format json wrote instead; may be given often."
)
@click.option("--against", metavar="FILE", help="Compare with an earlier run's JSON.")
@click.option(
    "--gate",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SHARE",
    help="Exit with 1 below this share of speed.",
)
@click.option(
    "--format", "format_", type=click.Choice(["terminal", "markdown", "json"]), default="terminal", show_default=True
)
def command(
    networks: tuple[str, ...], devices: str, batches: str, which: str, pixels: int, seconds: float, operators: bool,
    files: tuple[str, ...], against: str | None, gate: float | None, format_: str,
) -> int:  # fmt: skip
    """Milliseconds of one iteration on each device, and the speed of the first beside the second.

    A NETWORK is one of torchvision's, or unet, gpt2, lstm, dcgan; with random weights, in float32 without TF32, no dropout. A
    FUNCTION of yours takes what it names of `device` and `batch`, and is one iteration, or gives a function that is. A
    comprehension is called with random inputs, whose first size is the batch.

    Every device has a process of its own. Times are of the host's clock, each iteration waited for: the median, with the
    quartiles in JSON; `-` is out of memory. `bound by` says which is used most: arithmetic or memory, against what a product of
    matrices and a copy reach there in float32, or the host, by the part of the step that it needs to enqueue it all where the
    queue has room: waiting for room in a full queue is the device's time.

    \b
    syncscope bench resnet50 --device ocl,cuda --batch 1,8,64
    syncscope bench train.py:step --device ocl,cpu --batch 8
    syncscope bench resnet50 --device ocl --format json > new.json
    syncscope bench --read new.json --against old.json --gate 0.9
    """
    from syncscope.bench import results

    found = results.Results()
    for file in files:
        part = results.Results.read(file)
        found.devices |= part.devices
        found.rows += part.rows
    if not files:
        if not networks:
            raise UserError(
                "no network is named", "syncscope bench resnet50, or train.py:step for a function of your own"
            )
        request = {
            "networks": list(networks), "batches": _numbers(batches), "pass": which, "pixels": pixels, "seconds": seconds,
            "operators": operators,
        }  # fmt: skip
        for device in devices.split(","):
            _measure({**request, "device": device.strip()}, found)
        found.judge()
    before = results.Results.read(against) if against else None
    if format_ == "json":
        echo(found.text())
    else:
        for line in lines(found, before, markdown=format_ == "markdown"):
            echo(line)
    return _gated(found, before, gate) if gate is not None else 0


def _numbers(text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise UserError(f"{text!r} is no list of batch sizes", "such as --batch 1,8,64") from None


def _measure(request: dict[str, Any], found: Results) -> None:
    """Adds what the process of one device says, as it comes.

    Raises:
        UserError: the device is not here, a network is not known, or the process ended early.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as complaints:
        child = subprocess.Popen(
            [sys.executable, "-m", "syncscope.bench.measure", json.dumps(request)],
            stdout=subprocess.PIPE, stderr=complaints, text=True, encoding="utf-8",
        )  # fmt: skip
        with child:
            for line in child.stdout or ():
                if not line.startswith('{"'):
                    continue  # what the user's own file prints
                said = json.loads(line)
                if "error" in said:
                    raise UserError(*said["error"])
                if "device" in said:
                    found.devices[request["device"]] = said["device"]
                else:
                    found.rows.append(said["row"])
                    echo(_progress(said["row"]), err=True)
        complaints.seek(0)
        complaint = complaints.read()
    if child.returncode:
        last = complaint.strip().splitlines()[-1:] or [f"it ended with code {child.returncode}"]
        raise UserError(
            f"measuring on {request['device']} failed: {last[0]}",
            f"the same in one process tells more: python -m syncscope.bench.measure '{json.dumps(request)}'",
        )


def _progress(row: dict[str, Any]) -> str:
    took = f"{row['ms']:.2f} ms" if row["ms"] else row.get("error", "-")
    return f"{row['network']} on {row['device']}, batch {row['batch']}: {took}"


def lines(found: Results, before: Results | None, markdown: bool) -> list[str]:
    """The comparison as text: a table, then what each device is, and where the first loses to the second."""
    from syncscope.bench.results import SAME, apart, lost, mean, speed

    devices = list(dict.fromkeys(row["device"] for row in found.rows))
    first, second = (devices[0], devices[1] if len(devices) > 1 else "") if devices else ("", "")
    passes = list(dict.fromkeys(row["pass"] for row in found.rows))
    heads = ["network", "batch", *devices]
    heads += (
        [f"{first}/{second}"] * bool(second)
        + ["before"] * bool(before)
        + ["forward/backward/optimizer", "reaches", "bound by"]
    )
    earlier = {(n, p, b): rows for n, p, b, rows in before.cases()} if before else {}
    table, notes, ratios = [], [], []
    for network, which, batch, rows in found.cases():
        cells = [network if len(passes) == 1 else f"{network}, {PASSES[which]}", str(batch)]
        cells += [_ms(rows.get(device)) for device in devices]
        if second:
            ratio = speed(rows.get(first), rows.get(second))
            ratios.append(ratio)
            cells.append(_share(ratio))
        old = earlier.get((network, which, batch), {})
        cells += [_share(speed(rows.get(first), old.get(first)))] * bool(before)
        mine = rows.get(first, {})
        cells.append(" / ".join(f"{mine[part]:.3g}" for part in ("forward", "backward", "optimizer") if part in mine))
        cells.append(", ".join(f"{name} {share:.0%}" for name, share in mine.get("reached", {}).items()))
        cells.append(mine.get("bound_by", ""))
        table.append(cells)
        other = rows.get(second, {})
        if (off := apart(mine, other)) > SAME:
            notes.append(f"{network} {batch}: the first losses of {first} and {second} differ by {off:.1e}")
        for name, ms, theirs in lost(mine, other):
            notes.append(f"{network} {batch}: {name} takes {ms:.3g} ms on {first}, {theirs:.3g} on {second}")
        if mine.get("fallbacks"):
            notes.append(f"{network} {batch}: {mine['fallbacks']} fallbacks to the CPU in a step")
    title = f"{', '.join(PASSES[p] for p in passes)}, ms an iteration"
    text = [title, "", *(_markdown(heads, table) if markdown else _aligned(heads, table))]
    if (middle := mean(ratios)) is not None and len(ratios) > 1:
        text += [
            "",
            f"{first} has {middle:.0%} of the speed of {second} (geometric mean of {sum(r is not None for r in ratios)})",
        ]
    about = [
        f"{name}: {d.get('name')} ({d.get('about')})"
        + (f"; reaches {d['flops'] / 1e12:.3g} TFLOPS, {d['bandwidth'] / 1e9:,.0f} GB/s" if "flops" in d else "")
        for name, d in found.devices.items()
    ]
    return [*text, "", *about, *notes]


def _ms(row: dict[str, Any] | None) -> str:
    return "" if row is None else f"{row['ms']:.4g}" if row.get("ms") else "-"


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _markdown(heads: list[str], table: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(cells) + " |" for cells in (heads, ["---"] * len(heads), *table)]


def _aligned(heads: list[str], table: list[list[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in [heads, *table]) for i in range(len(heads))]
    left = {0, len(heads) - 1}
    return [
        "  ".join(
            cell.ljust(w) if i in left else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [heads, *table]
    ]


def _gated(found: Results, before: Results | None, gate: float) -> int:
    """1 if a row of the first device has less than this share of the second's speed, or, with `before`, of its own then."""
    from syncscope.bench.results import speed

    devices = list(dict.fromkeys(row["device"] for row in found.rows))
    earlier = {(n, p, b): rows for n, p, b, rows in before.cases()} if before else {}
    if len(devices) < 2 and not before:
        raise UserError("--gate needs something to compare with", "name two devices, or --against an earlier run")
    slow = []
    for network, which, batch, rows in found.cases():
        other = earlier.get((network, which, batch), {}).get(devices[0]) if before else rows.get(devices[1])
        reached = speed(rows.get(devices[0]), other)
        if reached is not None and reached < gate:
            slow.append(f"{network} {batch}: {reached:.0%}")
    if slow:
        echo(f"below {gate:.0%}: {', '.join(slow)}", err=True)
    return int(bool(slow))
