"""syncscope tune: better kernels for this machine's OpenCL device, found by trying."""

from __future__ import annotations

import click

from syncscope.cli._number import FiniteNumber


@click.command(short_help="Find faster kernels for this OpenCL device.")
@click.option(
    "--seconds",
    type=FiniteNumber(min=1),
    default=300,
    show_default=True,
    metavar="S",
    help="How long to search in all.",
)
@click.option(
    "--each",
    type=FiniteNumber(min=0.5),
    default=5,
    show_default=True,
    metavar="S",
    help="Seconds for one class of problems.",
)
@click.option(
    "--only", default="", metavar="TEXT", help="Only problems whose description contains this, such as `product`."
)
def command(seconds: float, each: float, only: str) -> int:
    """Search for the fastest tiles of matrix products and convolutions on the device `ocl`, and keep them.

    Every class of problems (kind and size, by powers of two) is given some seconds: schedules at random, then neighbours of
    the best. A winner is compared with double precision before it is kept. What is found goes to a table of this device in
    the cache folder (SYNCSCOPE_CACHE_DIR moves it), which later runs read by themselves; some devices come with one.
    Ctrl-C ends the search and keeps what was found.

    Exit code: 0 done or ended by Ctrl-C, 2 there is no device, or it is a CPU, whose kernels have one shape.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    import syncscope.kernels  # noqa: F401 - registers the device
    from syncscope.cli._console import console
    from syncscope.errors import UserError
    from syncscope.kernels.device import info
    from syncscope.kernels.generate import run
    from syncscope.kernels.tuning import search, store

    if run.SHAPE != "gpu":
        raise UserError(
            f"{info().name} is a CPU: its kernels have one shape, and there is nothing to search",
            "choose a GPU with SYNCSCOPE_OCL_DEVICE; `syncscope doctor` lists the devices",
        )
    out = console()
    kept = 0
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[said]}"), TimeRemainingColumn())
    with Progress(*columns, console=out) as progress:
        task = progress.add_task("tuning", total=seconds, said="")
        if not only or only.lower() == "winograd":
            store.keep_numbers(dict(search.ways()))
        for event in search.tune(
            seconds, each, only, lambda spent, said: progress.update(task, completed=spent, said=said)
        ):
            store.keep([event.row])
            kept += 1
            out.print(f"{event.gain:5.2f} x  {event.said}", soft_wrap=True)
    out.print(f"{kept} classes of problems in {store.own()}", soft_wrap=True)
    return 0
