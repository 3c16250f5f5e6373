"""Lines that wait on CUDA, and lines that do not: what torch's sync debug mode says beside what a recording says.

Prints a JSON object: the lines of this file that torch warns of, and those with reads in the recording, with their ops.
"""

import json
import sys
import traceback
import warnings

import numpy as np
import torch

import syncscope
from syncscope.analysis.reads import reads
from syncscope.analysis.waits import launches, waits

device = torch.device("cuda")
weight = torch.randn(6, 5, device=device, requires_grad=True)
places = torch.tensor([0, 2], device=device)
on_host = torch.tensor([0, 2])
pinned = torch.ones(3).pin_memory()


def step() -> object:
    x = weight * 2
    mask = x > 0
    kept = x[mask]
    y = x.detach().clone()
    y[places] = 1.0
    y[0, 0] = 2.0
    y[0] = 3.0
    y[mask] = 4.0
    scale = torch.tensor(0.5, device=device)
    some = x[on_host]
    more = x[[0, 2]]
    rows = x[np.array([1, 3])]
    z = torch.ones(3).to(device)
    later = pinned.to(device, non_blocking=True)
    q = torch.quantile(y.flatten(), torch.tensor([0.1, 0.5], device=device))
    solved = torch.linalg.inv(y[:5] @ y[:5].T + torch.eye(5, device=device))
    drawn = torch.distributions.Normal(z, 1.0, validate_args=False).sample()
    loss = (kept.sum() + some.sum() + more.sum() + rows.sum()) * scale
    loss.backward()
    if loss > 0:
        later += 1
    text = f"{loss:.3f} {q[0].item():.3f}"
    return text, solved.sum(), drawn.tolist(), y.cpu()


def told() -> set[int]:
    """The lines that torch warns of."""
    lines = set()

    def show(message: object, *_: object, **__: object) -> None:
        frames = [f for f in traceback.extract_stack() if f.filename == __file__ and f.name == "step"]
        if "called a synchronizing" in str(message) and frames:
            lines.add(frames[-1].lineno)

    shown, warnings.showwarning = warnings.showwarning, show
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        step()
        torch.cuda.set_sync_debug_mode(0)
    warnings.showwarning = shown
    return lines


def recorded() -> tuple[dict[int, list[str]], int]:
    """The lines of this file that the recording names, their ops, and the number of reads without a line."""
    with syncscope.trace() as recording:
        for _ in range(2):
            step()
            recording.step()
    trace = recording.trace
    launched = launches(trace)
    lines: dict[int, list[str]] = {}
    lost = 0
    for read in reads(trace, waits(trace, launched), launched):
        if read.place is not None and read.place.path == __file__:
            lines.setdefault(read.place.line, []).append(read.op)
        else:
            lost += 1
    return lines, lost


if __name__ == "__main__":
    for _ in range(2):
        step()
    truth = told()
    found, lost = recorded()
    json.dump({"told": sorted(truth), "recorded": found, "lost": lost}, sys.stdout)
