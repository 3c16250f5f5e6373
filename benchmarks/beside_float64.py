"""Cases computed on several devices, each in a process of its own, and how far each is from float64."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

COMPARED = 100_000  # elements of each tensor


def keep(made: Sequence[Tensor], file: Path) -> None:
    """Some elements of each of a case's tensors, computed in float64."""
    torch.save([_few(x) for x in made], file)


def off(made: Sequence[Tensor], file: Path) -> str:
    """The relative deviation of each tensor from what was kept, by norm."""
    pairs = zip(map(_few, made), torch.load(file), strict=True)
    return " ".join(f"{float((x - exact).norm() / exact.norm()):.1e}" for x, exact in pairs)


def _few(x: Tensor) -> Tensor:
    """Some elements, evenly spread, on the CPU."""
    return x.detach().flatten()[:: max(1, x.numel() // COMPARED)].cpu().double()


def main(description: str | None, compute: Callable[[str, Path, bool], None]) -> int:
    """The command line of a benchmark: `compute(device, folder, exact)` keeps its cases in float64, or compares with these."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="ocl,cuda", help="separated by commas")
    parser.add_argument("--reference", default="cuda", help="where float64 is computed")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        device, folder, exact = options.child
        compute(device, Path(folder), exact == "exact")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        for device, kind in ((options.reference, "exact"), *((d, "compared") for d in options.devices.split(","))):
            subprocess.run([sys.executable, "-W", "ignore", sys.argv[0], "--child", device, folder, kind], check=True)
    return 0
