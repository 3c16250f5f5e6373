"""syncscope bench: networks timed on several devices, side by side."""

from __future__ import annotations

import importlib.util
import itertools
import json
import signal
import subprocess
import tempfile
from typing import TYPE_CHECKING, Any

import click

from syncscope import interpreters
from syncscope.cli._console import echo
from syncscope.cli._number import FiniteNumber
from syncscope.errors import UserError

if TYPE_CHECKING:
    from syncscope.bench.comparison import SideBySide
    from syncscope.bench.results import Results

PASSES = ("train", "forward", "backward")
# A fifth of what the import of torch takes is spent on looking for garbage, of which there is none.
_MEASURE = "import gc; gc.disable(); from syncscope.bench.measure import main; gc.enable(); sys.exit(main(sys.argv[1]))"


@click.command(short_help="Networks timed on several devices, side by side.")
@click.argument("networks", nargs=-1, metavar="[NETWORK|FILE.py:FUNCTION]...")
@click.option("--device", "devices", default="ocl,cpu", show_default=True, metavar="LIST", help="Of ocl, cuda and cpu.")
@click.option("--batch", "batches", default="1,8,64", show_default=True, metavar="LIST", help="Batch sizes.")
@click.option("--pass", "which", type=click.Choice(PASSES), default="train", show_default=True, help="What is timed.")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "float16", "bfloat16"]),
    default="float32",
    show_default=True,
    help="The halves by autocast; float16 with a GradScaler.",
)
@click.option(
    "--no-tf32", is_flag=True, help="All in float32's precision; else as PyTorch comes: convolutions in TF32."
)
@click.option("--no-dropout", is_flag=True, help="Without dropout and dropped paths.")
@click.option("--pixels", default=224, show_default=True, metavar="N", help="Side of the images.")
@click.option(
    "--seconds",
    type=FiniteNumber(min=0),
    default=3.0,
    show_default=True,
    metavar="S",
    help="Time for what is timed of each row, at least three iterations. One of "
    "long iterations takes that of nine: three whose losses are compared, two that count, three, and one by its parts.",
)
@click.option("--operators", is_flag=True, help="Also time each operator alone, and list where most is lost.")
@click.option(
    "--read", "files", multiple=True, metavar="FILE", help="Show what --format json wrote instead; may be given often."
)
@click.option("--against", metavar="FILE", help="Compare with an earlier run's JSON.")
@click.option(
    "--gate",
    type=FiniteNumber(min=0, min_open=True),
    metavar="SHARE",
    help="Exit with 1 below this share of speed.",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["terminal", "markdown", "json", "html"]),
    default="terminal",
    show_default=True,
)
def command(
    networks: tuple[str, ...], devices: str, batches: str, which: str, dtype: str, no_tf32: bool, no_dropout: bool, pixels: int,
    seconds: float, operators: bool, files: tuple[str, ...], against: str | None, gate: float | None, format_: str,
) -> int:  # fmt: skip
    """Milliseconds of one iteration on each device, and the speed of the first beside the second.

    A NETWORK is one of torchvision's, or unet, gpt2, lstm, dcgan; with random weights, else as people run it. A
    FUNCTION of yours takes what it names of `device` and `batch`, and is one iteration, or gives a function that is. A
    comprehension is called with random inputs, whose first size is the batch.

    Every device has a process of its own. Times are of the host's clock, each iteration waited for: the median, with the
    quartiles in JSON; `-` is out of memory. `bound by` says which is used most: arithmetic, memory, or the host. Arithmetic and
    memory are held against what a product of matrices and a copy reach there in that dtype. The host's is the part of the step
    in which it enqueues; waiting for room in a full queue is the device's time.

    \b
    syncscope bench resnet50 --device ocl,cuda --batch 1,8,64
    syncscope bench train.py:step --device ocl,cpu --batch 8
    syncscope bench resnet50 --device ocl --format json > new.json
    syncscope bench --read new.json --format html > new.html
    syncscope bench --read new.json --against old.json --gate 0.9
    """
    from syncscope.bench import OWN, comparison, page, results

    found, stopped = results.Results(), 0
    for file in files:
        part = results.Results.read(file)
        found.devices |= part.devices
        found.rows += part.rows
    if not files:
        if not networks:
            raise UserError(
                "no network is named", "syncscope bench resnet50, or train.py:step for a function of your own"
            )
        foreign = [name for name in networks if ":" not in name and name not in OWN]
        if foreign and importlib.util.find_spec("torchvision") is None:  # said before a process has started torch
            raise UserError(
                f"{foreign[0]} is no network of ours, and torchvision, which may have it, is not installed",
                f"there are {', '.join(OWN)}; for more, pip install torchvision in the version that fits your torch",
            )
        request = {
            "networks": list(networks), "batches": _numbers(batches), "pass": which, "pixels": pixels, "seconds": seconds,
            "operators": operators, "dtype": dtype, "tf32": not no_tf32, "dropout": not no_dropout,
        }  # fmt: skip
        try:
            for device in devices.split(","):
                _measure({**request, "device": device.strip()}, found)
        except KeyboardInterrupt:
            echo("stopped: what was measured until here follows", err=True)
            stopped = 130
        found.judge()
    before = results.Results.read(against) if against else None
    if format_ == "json":
        echo(found.text())
    elif format_ == "html":
        echo(page.page(found, before), nl=False)
    else:
        for line in lines(comparison.compared(found, before), markdown=format_ == "markdown"):
            echo(line)
    return stopped or (_gated(found, before, gate) if gate is not None else 0)


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
    sizes = ", ".join(map(str, request["batches"]))
    echo(f"{', '.join(request['networks'])} on {request['device']}, batch {sizes}: begun", err=True)
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as complaints:
        child = subprocess.Popen(
            interpreters.command(_MEASURE, json.dumps(request)),
            stdout=subprocess.PIPE, stderr=complaints, text=True, encoding="utf-8",
        )  # fmt: skip
        with child:
            try:
                for line in child.stdout or ():
                    _told(line, request["device"], found)
            except BaseException:
                child.kill()
                raise
        complaints.seek(0)
        complaint = complaints.read()
    if child.returncode == -signal.SIGKILL:  # as systems do when memory runs out
        done = {(row["network"], row["batch"]) for row in found.rows if row["device"] == request["device"]}
        for network, batch in itertools.product(request["networks"], request["batches"]):
            if (network, batch) not in done:
                row = {"network": network, "device": request["device"], "batch": batch, "pass": request["pass"]}
                error = "not measured: the system killed the process, out of memory perhaps"
                found.rows.append({**row, "dtype": request["dtype"], "ms": None, "error": error})
                echo(_progress(found.rows[-1]), err=True)
    elif child.returncode:
        last = complaint.strip().splitlines()[-1:] or [f"it ended with code {child.returncode}"]
        raise UserError(
            f"measuring on {request['device']} failed: {last[0]}",
            f"the same in one process tells more: python -m syncscope.bench.measure '{json.dumps(request)}'",
        )


def _told(line: str, device: str, found: Results) -> None:
    if not line.startswith('{"'):
        return  # what the user's own file prints
    said = json.loads(line)
    if "error" in said:
        raise UserError(*said["error"])
    if "device" in said:
        found.devices[device] = said["device"]
    else:
        found.rows.append(said["row"])
        echo(_progress(said["row"]), err=True)


def _progress(row: dict[str, Any]) -> str:
    took = f"{row['ms']:.2f} ms" if row["ms"] else row.get("error", "-")
    return f"{row['network']} on {row['device']}, batch {row['batch']}: {took}"


def lines(comparison: SideBySide, markdown: bool) -> list[str]:
    """The comparison as text: a table, then what each device is, and where the first loses to the second."""
    table = (_markdown if markdown else _aligned)(comparison.heads, comparison.table)
    verdict = ["", comparison.verdict] if comparison.verdict else []
    return [comparison.title, "", *table, *verdict, "", *comparison.devices, *comparison.notes]


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
    earlier = dict(before.cases()) if before else {}
    if len(devices) < 2 and not before:
        raise UserError("--gate needs something to compare with", "name two devices, or --against an earlier run")
    slow = []
    for case, rows in found.cases():
        other = earlier.get(case, {}).get(devices[0]) if before else rows.get(devices[1])
        reached = speed(rows.get(devices[0]), other)
        if reached is not None and reached < gate:
            slow.append(f"{case.network} {case.batch}: {reached:.0%}")
    if slow:
        echo(f"below {gate:.0%}: {', '.join(slow)}", err=True)
    return int(bool(slow))
