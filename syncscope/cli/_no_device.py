"""What to change where a program was recorded and no device worked: it was lent none, or asked for none."""

from __future__ import annotations

import ast
import os
import re
import shlex
import tokenize
from typing import NamedTuple

from syncscope.cli._console import echo

NO_CUDA = re.compile(r"--(?:no|disable|without)[-_]?(?:cuda|gpus?)|--(?:use[-_])?cpu(?:[-_]only)?", re.IGNORECASE)
"""Options by which programs are told to leave the GPU alone."""
CPU = re.compile(r"cpu(:\d+)?")


class HowMade(NamedTuple):
    """How a recording was made: the program with its arguments, as a shell takes them, on which device, and the script."""

    command: str
    device: str | None
    script: str = ""  # "" for a module


def tell(made: HowMade) -> None:
    """The hint: which device can be lent, or why that which was lent was not asked for."""
    if not made.device:
        echo(f" hint: `syncscope run --device ocl {made.command}` lends it one that runs on the processor;", err=True)
        echo(f"       `syncscope run --device cpu {made.command}` counts the lines that would wait, at once", err=True)
        return
    words = shlex.split(made.command)
    if refused := [word for word in words if NO_CUDA.fullmatch(word)]:
        lent = f"syncscope run --device {made.device} {shlex.join(each for each in words if each not in refused)}"
        echo(f" hint: `{' '.join(refused)}` keeps it from cuda; without it: {lent}", err=True)
        return
    if named := names_the_cpu(made.script):
        said = f"{made.script}:{named} names the CPU; name cuda there, which --device {made.device} stands in for"
        echo(f" hint: {said}", err=True)
        return
    lent = f"syncscope run --device {made.device} {made.command} --device cuda"
    echo(f" hint: the program asked for no cuda; where it has an option for that: {lent}", err=True)
    echo('       one without it must send its model and its batches there: `.to("cuda")`', err=True)


def names_the_cpu(script: str) -> int:
    """The first line of a script that names the CPU as a device, with no choice beside it; 0 where none does."""
    if not os.path.isfile(script):
        return 0
    try:
        with tokenize.open(script) as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return 0
    chosen = {leaf for node in ast.walk(tree) if isinstance(node, ast.IfExp) for leaf in ast.walk(node)}
    found = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and CPU.fullmatch(node.value)
        if node not in chosen
    ]
    return min(found, default=0)
