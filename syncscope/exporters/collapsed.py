"""Where a step goes, by line, as collapsed stacks, for flamegraph.pl and others: `host;train.py:14 train;waiting 1200`.

Format: https://github.com/brendangregg/FlameGraph: a line a stack, frames with semicolons between, a space, a whole number.
"""

from __future__ import annotations

from syncscope.exporters import _stacks as stacks
from syncscope.model.report import Report

SUFFIX = ".collapsed"
TAKES = {"trace"}


def export(report: Report) -> str:
    """The stacks of the host and of the device, ns of a step; a semicolon within a name becomes a comma."""
    found = {"host": stacks.host(report), "device": stacks.device(report)}
    return "".join(
        f"{';'.join([root, *(one.name.replace(';', ',') for one in stack)])} {round(ns)}\n"
        for root, rows in found.items()
        for stack, ns in rows
        if round(ns)
    )
