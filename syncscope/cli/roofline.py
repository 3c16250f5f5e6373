"""syncscope roofline: how much of the device each operator reaches."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from syncscope.errors import UserError

if TYPE_CHECKING:
    from syncscope.analysis.roofline import Ceilings, Roofline

# GB/s and TFLOPS of dense matrix arithmetic in 16 bits, from the vendors' data sheets
SHEETS = {
    "V100": (900, 125),
    "A100": (1555, 312),
    "H100": (3350, 989),
    "H200": (4800, 989),
    "B200": (8000, 2250),
    "MI250": (3277, 362),
    "MI300X": (5300, 1307),
}
SHOWN = 20


@click.command()
@click.argument("file", metavar="FILE")
@click.option("--bandwidth", type=click.FloatRange(min=0, min_open=True), metavar="GB/S", help="The device's memory.")
@click.option("--flops", type=click.FloatRange(min=0, min_open=True), metavar="TFLOPS", help="The device's arithmetic.")
@click.option("--format", "format_", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True)
def command(file: str, bandwidth: float | None, flops: float | None, format_: str) -> int:
    """How much of the device's bandwidth and arithmetic each operator reaches, and which of the two bounds it.

    FILE is a recording with shapes (torch.profiler with record_shapes=True). The ceilings are those given, else those of the
    data sheet of the GPU it names, else they are measured once on this machine's OpenCL device and kept.
    """
    from syncscope import kineto
    from syncscope.analysis.roofline import roofline

    trace = kineto.read(file)
    ceilings, source = limits(trace.meta.get("devices") or [], bandwidth, flops)
    found = roofline(trace, ceilings)
    if format_ == "json":
        click.echo(json.dumps({"ceilings": asdict(ceilings), "ceilings_from": source} | asdict(found), indent=2))
        return 0
    show(found, ceilings, source)
    return 0


def limits(devices: list[Any], bandwidth: float | None, flops: float | None) -> tuple[Ceilings, str]:
    """The ceilings and where they come from.

    Raises:
        UserError: nothing is known of the device, and it cannot be measured here.
    """
    from syncscope.analysis.roofline import Ceilings

    if bandwidth is not None and flops is not None:
        return Ceilings(bandwidth * 1e9, flops * 1e12), "given"
    name = str(devices[0].get("name", "")) if devices and isinstance(devices[0], dict) else ""
    known = next((sheet for key, sheet in SHEETS.items() if key in name), None)
    if known is not None:
        return Ceilings(
            (bandwidth or known[0]) * 1e9, (flops or known[1]) * 1e12
        ), f"data sheet of {name}, 16 bits, dense"
    measured, here = _measured(name)
    rest = (bandwidth or measured[0] / 1e9) * 1e9, (flops or measured[1] / 1e12) * 1e12
    return Ceilings(*rest), f"measured on {here}: a copy, and a plain GEMM in 32 bits"


def _measured(name: str) -> tuple[tuple[float, float], str]:
    here: Any = None
    try:
        from syncscope.tracers import ceilings as measure

        here = next((d for d in measure.devices() if d.name.strip() == name.strip()), None)
    except ImportError:  # without the extra `opencl` nothing can be measured
        pass
    if here is None:
        raise UserError(
            f"the ceilings of {name or 'the device'} are not known here", "give --bandwidth GB/s and --flops TFLOPS"
        )
    return measure.ceilings(here), here.name


def show(found: Roofline, ceilings: Ceilings, source: str) -> None:
    """Print it for people."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(f"ceilings {ceilings.bandwidth / 1e9:,.0f} GB/s, {ceilings.flops / 1e12:,.3g} TFLOPS ({source})")
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("operator", overflow="ellipsis", max_width=34)
    table.add_column("shapes", overflow="ellipsis", max_width=30)
    for name in ("calls", "ms", "of memory", "of arithmetic"):
        table.add_column(name, justify="right")
    table.add_column("bound by")
    for row in (*found.rows[:SHOWN], *found.steps[:SHOWN], found.total):
        shares = [f"{share:.1%}" if share else "" for share in (row.bandwidth_share, row.flops_share)]
        table.add_row(row.op, row.shapes, str(row.count), f"{row.time / 1e6:.2f}", *shares, row.bound)
    console.print(table)
    console.print(f"{found.known:.0%} of the device's time has known bytes or operations", style="dim")
