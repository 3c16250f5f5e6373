"""syncscope doctor: what is here to trace, with what, how exactly, and what would be missed."""

from __future__ import annotations

import click

from syncscope.cli._console import echo, painted

SIGNS = {"good": ("✓", "green"), "warn": ("!", "yellow"), "bad": ("✗", "red")}


@click.command(short_help="What can be traced here, and what to install.")
def command() -> int:
    """Look at this machine: devices, drivers, loaders, which tracer will be used and why, clocks, what to install.

    Exit code: 0 something can be traced, 1 nothing can.
    """
    from syncscope.cli import _left_behind
    from syncscope.tracers import doctor

    _left_behind.offer()
    traceable = False
    for item in doctor.survey():
        sign, colour = SIGNS[item.state]
        echo(f"{painted(sign, fg=colour)} {painted(item.what, bold=True)}  {item.said}")
        if item.hint:
            echo(f"    {item.hint}")
        traceable |= item.traceable
    echo("\nwould be missed:")
    for line in doctor.missed():
        echo(f"  {line}")
    if not traceable:
        echo("\nno device can be traced here; `syncscope run --device cpu` still finds the lines that sync (dry mode)")
    return 0 if traceable else 1
