"""syncscope roofline: how much of the device each operator reaches."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from syncscope.cli._console import complain, echo
from syncscope.cli._number import FiniteNumber
from syncscope.cli._traces import max_size
from syncscope.errors import UserError

if TYPE_CHECKING:
    from syncscope.analysis.roofline import Ceilings, Roofline, Row

SHOWN = 12
CUTLASS = re.compile(r"^cutlass\w*::Kernel\d*<(?=\w)([\w:]*).*")  # one name for all: which it is stands in its argument
STEPS = 8


@click.command(short_help="How much of the device is used.")
@click.argument("file", metavar="FILE")
@click.option("--bandwidth", type=FiniteNumber(min=0, min_open=True), metavar="GB/S", help="The device's memory.")
@click.option("--flops", type=FiniteNumber(min=0, min_open=True), metavar="TFLOPS", help="The device's arithmetic.")
@max_size
@click.option("--format", "format_", type=click.Choice(["terminal", "json"]), default="terminal", show_default=True)
def command(file: str, bandwidth: float | None, flops: float | None, most: int, format_: str) -> int:
    """How much of the device's bandwidth and arithmetic each operator reaches, and which of the two bounds it.

    FILE is a recording with shapes: syncscope.trace's or torch.profiler's with record_shapes=True. The ceilings are those
    given, else those of the data sheet of the GPU it names (for each operator that of its dtype, 32 bits or 16), else they are
    measured once on this machine's OpenCL device and kept.

    Exit code: 0 all well, else 2, also where a recording does not hold all of the work, as one that is cut off.
    """
    from syncscope import kineto
    from syncscope.analysis.coverage import coverage_of
    from syncscope.analysis.roofline import roofline
    from syncscope.analysis.waits import launches

    trace = kineto.read(file, most)
    coverage = coverage_of(trace, launched := launches(trace), 0)
    if coverage.refusal and not len(launched.row):
        raise UserError(f"{file} cannot be judged: {coverage.refusal}", coverage.hint)
    ceilings, source = limits(trace.meta.get("devices") or [], bandwidth, flops)
    found = roofline(trace, ceilings)
    if format_ == "json":
        told = {"schema": 1, "ceilings": asdict(ceilings), "ceilings_from": source, "why_not": coverage.refusal or None}
        echo(json.dumps(told | asdict(found), indent=2))
    else:
        show(found, ceilings, source)
    if coverage.refusal:
        complain(UserError(f"not all of the work is here: {coverage.refusal}", coverage.hint))
        return 2
    return 0


def limits(devices: list[Any], bandwidth: float | None, flops: float | None) -> tuple[Ceilings, str]:
    """The ceilings and where they come from.

    Raises:
        UserError: nothing is known of the device, and it cannot be measured here.
    """
    from syncscope.analysis.roofline import Ceilings
    from syncscope.api import ceilings_of

    if bandwidth is not None and flops is not None:
        return Ceilings(bandwidth * 1e9, flops * 1e12), "given"
    name = str(devices[0].get("name", "")) if devices and isinstance(devices[0], dict) else ""
    known, source = ceilings_of(name, measure=True)
    if known is None:
        raise UserError(
            f"the ceilings of {name or 'the device'} are not known here", "give --bandwidth GB/s and --flops TFLOPS"
        )
    memory = bandwidth * 1e9 if bandwidth else known.bandwidth
    if flops:
        return Ceilings(memory, flops * 1e12), f"{source}, memory"
    return replace(known, bandwidth=memory), source


def show(found: Roofline, ceilings: Ceilings, source: str) -> None:
    """Print it for people: an operator is two lines, of at most 80 columns."""
    from rich.padding import Padding

    from syncscope.cli._console import console as made

    console = made()

    def line(text: str, style: str = "") -> None:
        console.print(text.rstrip(), style=style, no_wrap=True, overflow="ellipsis", markup=False)

    others = ((ceilings.flops_tf32, "TF32"), (ceilings.flops_16, "16 bits"))
    more = "".join(f", {flops / 1e12:,.4g} in {name}" for flops, name in others if flops)
    line(f"ceilings {ceilings.bandwidth / 1e9:,.0f} GB/s, {ceilings.flops / 1e12:,.3g} TFLOPS{more}")
    line(f"({source})", "dim")
    console.print()
    line(_columns("operator", "calls", "ms", "memory", "flops", "bound by"), "bold")
    for row in found.rows[:SHOWN]:
        line(_numbers(row, row.op.removeprefix("aten::")))
        kernels = _kernels(row)
        if row.shapes or kernels:
            line(f"  {_cut(row.shapes, 40):<40}  {kernels}" if kernels else f"  {_cut(row.shapes, 78)}", "dim")
        if row.why:
            console.print(Padding(f"above 100%: {row.why}", (0, 0, 0, 2)), style="dim", markup=False)
    if len(found.rows) > SHOWN:
        rest = found.rows[SHOWN:]
        line(_columns(f"and {len(rest)} more", "", f"{sum(r.time for r in rest) / 1e6:,.2f}", "", "", ""), "dim")
    line(_numbers(found.total, "all device work, in pieces"), "bold")
    if found.steps:
        console.print()
        line(_columns("step, over its whole length", "ops", "ms", "memory", "flops", "bound by"), "bold")
    for row in found.steps[:STEPS]:
        line(_numbers(row, row.op))
        if row.why:
            console.print(Padding(f"above 100%: {row.why}", (0, 0, 0, 2)), style="dim", markup=False)
    if len(found.steps) > STEPS:
        line(f"and {len(found.steps) - STEPS} more steps", "dim")
    console.print()
    line("calls: of an operator, or of a kernel without one; ops: operators with kernels in that step", "dim")
    line(f"of the kernels' time {found.known:.0%} has known bytes, {found.counted:.0%} known operations too")
    if not any(row.shapes for row in found.rows):
        line("the recording has no shapes: record with `syncscope run --shapes` or record_shapes=True")
    if any(row.arithmetic == "TF32" for row in found.rows[:SHOWN]):
        line("TF32: arithmetic, whose kernels are called so; float32 else has its own ceiling", "dim")


def short(kernel: str) -> str:
    """A kernel's name without its namespaces, template arguments and parameters."""
    plain = kernel.removeprefix("void ").replace("(anonymous namespace)::", "")
    plain = CUTLASS.sub(r"\1", plain)
    return re.split(r"[<(]", plain, maxsplit=1)[0].rpartition("::")[2] or kernel


def _kernels(row: Row) -> str:
    """The longest kernel of an operator; of several, its share of their time."""
    names = Counter[str]()
    for name, ns in row.kernels:
        names[short(name)] += ns
    if not names or row.kernels[0][0] == row.op:
        return ""
    longest, ns = names.most_common(1)[0]
    if len(names) == 1:
        return _cut(longest, 36)
    return f"{_cut(longest, 18)} {ns / row.time:.0%} of {len(names)} kernels"


def _numbers(row: Row, name: str) -> str:
    memory, flops = (f"{share:.1%}" if share else "" for share in (row.bandwidth_share, row.flops_share))
    bound = row.arithmetic if row.bound == "arithmetic" and row.arithmetic == "TF32" else row.bound
    return _columns(name, f"{row.count:,}", f"{row.time / 1e6:,.2f}", memory, flops, bound or "?")


def _columns(name: str, calls: str, ms: str, memory: str, flops: str, bound: str) -> str:
    return f"{_cut(name, 34):<34} {calls:>7} {ms:>9} {memory:>7} {flops:>7}  {bound}"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
