"""Has every launch its line, is it the right one, and what does noting it cost?

    python benchmarks/lines_of_launches.py                       five programs, whose libraries are installed
    python benchmarks/lines_of_launches.py detection --device ocl
    python benchmarks/lines_of_launches.py --cost                a recording beside nothing, each loop in a process of its own

Of each program the table has the share of launches, of the device's time and of the host's time in the driver whose line is
known, and how many stand at a library's line. Then the program runs once more below a mode of torch's that is told of each
operator: 200 launches, drawn at random, are compared with what `sys._getframe` says there, in backward with the line of
`backward()` and with the stack that torch's own anomaly mode has noted where the node was made.

With --cost: ns that a launch asks for its line, so many frames below it. Then, of five loops each in a process of its own: ms a
step, and its ratio while it is recorded, with and without lines, in turns with nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from types import FrameType, FunctionType
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import syncscope
from syncscope.analysis.waits import launches
from syncscope.model.trace import Kind, Trace
from syncscope.tracers import places
from syncscope.tracers.lines import library as lines

Run = Callable[[int], object]  # so many steps
SAMPLE = 200
STEPS = 6
LAUNCHES = re.compile(r"Launch|Memcpy|Memset|Enqueue(?!Marker|Barrier)")


def classifier(device: torch.device) -> Run:
    """PyTorch's own example: a network for digits, its loader, a scheduler, and a line that logs."""
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    net = nn.Sequential(
        *(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.25)),
        *(nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 10), nn.LogSoftmax(1)),
    ).to(device)
    loader = DataLoader(TensorDataset(torch.randn(2048, 1, 28, 28), torch.randint(0, 10, (2048,))), 64, shuffle=True)
    optimizer = torch.optim.Adadelta(net.parameters(), lr=1.0)

    def run(steps: int) -> None:
        net.train()
        for number, (data, target) in enumerate(loader):
            data, target = data.to(device), target.to(device)
            optimizer.zero_grad()
            loss = nn.functional.nll_loss(net(data), target)
            loss.backward()
            optimizer.step()
            if number % 5 == 0:
                loss.item()
            if number == steps:
                break

    return run


def gpt2(device: torch.device) -> Run:
    """transformers' Trainer with a small GPT-2 that logs every step."""
    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    model = GPT2LMHeadModel(GPT2Config(vocab_size=1000, n_positions=128, n_embd=256, n_layer=4, n_head=4))
    rows = [{"input_ids": (ids := torch.randint(0, 1000, (64,))), "labels": ids} for _ in range(512)]

    def run(steps: int) -> None:
        given = TrainingArguments(
            output_dir="/tmp/trainer",
            max_steps=steps,
            per_device_train_batch_size=8,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=device.type == "cpu",
        )
        Trainer(model, given, train_dataset=rows).train()

    return run


def detection(device: torch.device) -> Run:
    """torchvision's detector in its reference loop."""
    from torchvision.models import detection as zoo

    model = zoo.fasterrcnn_mobilenet_v3_large_fpn(weights=None, weights_backbone=None, num_classes=5, min_size=160)
    model.to(device).train()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    boxes = torch.tensor([[10.0, 10.0, 90.0, 90.0], [30.0, 40.0, 120.0, 140.0]])

    def run(steps: int) -> None:
        for _ in range(steps):
            images = [torch.rand(3, 160, 160).to(device) for _ in range(2)]
            targets = [{"boxes": boxes.to(device), "labels": torch.tensor([1, 2]).to(device)} for _ in images]
            losses = sum(model(images, targets).values())
            optimizer.zero_grad()
            losses.backward()
            optimizer.step()

    return run


def lightning(device: torch.device) -> Run:
    """A LightningModule that logs."""
    import logging

    import pytorch_lightning  # type: ignore[import-not-found]
    from torch.utils.data import DataLoader, TensorDataset

    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)

    class Net(pytorch_lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 10))

        def training_step(self, batch: Any, number: int) -> Any:
            x, y = batch
            loss = torch.nn.functional.cross_entropy(self.net(x), y)
            self.log("loss", loss)
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters())

    model = Net()
    loader = DataLoader(TensorDataset(torch.randn(1024, 64), torch.randint(0, 10, (1024,))), 32)

    def run(steps: int) -> None:
        quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
        kind = {"cuda": "gpu"}.get(device.type, device.type)
        pytorch_lightning.Trainer(max_steps=steps, accelerator=kind, devices=1, gradient_clip_val=1.0, **quiet).fit(
            model, loader
        )

    return run


def graph(device: torch.device) -> Run:
    """torch_geometric's graph network, with a mask of what is trained."""
    from torch_geometric.nn import GCNConv

    class Net(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = GCNConv(64, 64), GCNConv(64, 7)

        def forward(self, x: Any, edges: Any) -> Any:
            x = self.first(x, edges).relu()
            return self.second(torch.nn.functional.dropout(x, training=self.training), edges)

    model = Net().to(device)
    x, edges = torch.randn(2000, 64, device=device), torch.randint(0, 2000, (2, 10000), device=device)
    y, mask = torch.randint(0, 7, (2000,), device=device), torch.rand(2000, device=device) > 0.5
    optimizer = torch.optim.Adam(model.parameters())

    def run(steps: int) -> None:
        for _ in range(steps):
            optimizer.zero_grad()
            out = model(x, edges)
            loss = torch.nn.functional.cross_entropy(out[mask], y[mask])
            loss.backward()
            optimizer.step()

    return run


PROGRAMS = {make.__name__: make for make in (classifier, gpt2, detection, lightning, graph)}


class Where(NamedTuple):
    """A line and the user's that led there, by Python's account."""

    place: tuple[str, int] | None
    caller: tuple[str, int] | None


def where(frame: FrameType | None) -> Where:
    """Of the frames that run."""
    found = []
    while frame is not None:
        kind = places.kind_of_file(frame.f_code.co_filename)
        if kind in (places.USER, places.LIBRARY):
            found.append((kind, (frame.f_code.co_filename, frame.f_lineno)))
        frame = frame.f_back
    return _of(found)


def of_stack(text: list[str]) -> Where:
    """Of a stack as Python prints it, the innermost frame last."""
    frames = [(m[1], int(m[2])) for part in reversed(text) if (m := re.match(r'\s*File "(.*?)", line (\d+)', part))]
    kinds = [(places.kind_of_file(path), (path, line)) for path, line in frames]
    return _of([one for one in kinds if one[0] in (places.USER, places.LIBRARY)])


def _of(found: list[tuple[int, tuple[str, int]]]) -> Where:
    if not found or found[0][0] == places.USER:
        return Where(found[0][1] if found else None, None)
    return Where(found[0][1], next((at for kind, at in found if kind == places.USER), None))


class Told(NamedTuple):
    """An operator by Python's account: when and on which thread it ran, where, and in backward the forward operator's line."""

    begin: int
    end: int
    thread: int
    at: Where
    forward: tuple[str, int] | None


def carried(function: Any) -> Any:
    """The function as one of torch's, so that it is no line of the program's."""
    code = function.__code__.replace(co_filename=f"{Path(torch.__file__).parent}/beside.py")
    return FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)


class Beside(TorchDispatchMode):  # type: ignore[misc]
    """Notes where each operator runs, and who called backward."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[Told] = []
        self.called = [Where(None, None)]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        at, node, forward = where(sys._getframe(0)), torch._C._current_autograd_node(), None
        if node is not None:
            forward = of_stack(node.metadata.get("traceback_") or []).place
            at = self.called[-1] if at.place is None else at
        begin = time.monotonic_ns()
        result = func(*args, **(kwargs or {}))
        self.told.append(Told(begin, time.monotonic_ns(), threading.get_native_id(), at, forward))
        return result

    __torch_dispatch__ = carried(__torch_dispatch__)


def beside(run: Run) -> tuple[Trace, list[Told]]:
    """A recording, and what Python says of the same steps."""
    mode, original = Beside(), torch.autograd.backward

    def backward(*args: Any, **kwargs: Any) -> Any:
        mode.called.append(where(sys._getframe(0)))
        return original(*args, **kwargs)

    shift = time.time_ns() - time.monotonic_ns()
    with (
        mock.patch.object(torch.autograd, "backward", carried(backward)),
        torch.autograd.set_detect_anomaly(True, check_nan=False),
        mode,
        syncscope.trace(whole=True) as recording,
    ):
        run(STEPS)
    trace = recording.trace
    origin = trace.meta["origin_ns"] - shift
    return trace, [t._replace(begin=t.begin - origin, end=t.end - origin) for t in mode.told]


def compared(trace: Trace, told: list[Told]) -> dict[str, Any]:
    """How many launches could be compared, and where a sample of them differs."""
    calls = [int(row) for row in trace.rows(Kind.CALL) if LAUNCHES.search(trace.names[trace.name[row]])]
    of: dict[int | str, list[Told]] = {}
    for one in told:
        of.setdefault(one.thread, []).append(one)
    pairs = []
    for row in calls:
        event = trace[row]
        ran = of.get(event.lane.thread, [])
        at = int(np.searchsorted([one.begin for one in ran], event.start, side="right")) - 1
        if at >= 0 and event.end <= ran[at].end:
            pairs.append((event, ran[at]))
    chosen = random.Random(0).sample(pairs, min(SAMPLE, len(pairs)))
    wrong = Counter[str]()
    unknown = unchecked = backward = 0
    for event, one in chosen:
        place, caller, forward = ((p.path, p.line) if p else None for p in (event.place, event.caller, event.forward))
        unknown += place is None
        backward += one.forward is not None
        if place is not None and (place, caller) != one.at:
            wrong[f"line {place} {caller}, is {one.at}"] += 1
        if forward is not None and one.forward is not None and forward != one.forward:
            wrong[f"forward {forward}, is {one.forward}"] += 1
        unknown += one.forward is not None and forward is None
        unchecked += forward is not None and one.forward is None  # lightning switches anomaly mode off
    return {
        "launches": len(calls),
        "in operators": len(pairs),
        "sample": len(chosen),
        "of backward": backward,
        "wrong": sum(wrong.values()),
        "unknown": unknown,
        "forward unchecked": unchecked,
        "which": wrong.most_common(5),
    }


def shares(trace: Trace) -> dict[str, Any]:
    """What has a line."""
    calls = trace.rows(Kind.CALL, Kind.COMPILE)
    known, length = trace.place >= 0, trace.duration
    launched = launches(trace)
    joined = launched.call >= 0
    own = np.zeros(len(trace), bool)
    own[launched.row[joined]] = known[launched.call[joined]]
    asks = calls[[bool(LAUNCHES.search(trace.names[trace.name[row]])) for row in calls]]
    lost = Counter(trace.names[trace.name[row]] for row in calls[~known[calls]])
    return {
        "launches": len(asks),
        "with a line %": _percent(known[asks].sum(), len(asks)),
        "device time %": _percent(length[launched.row][own[launched.row]].sum(), length[launched.row].sum()),
        "time in the driver %": _percent(length[calls][known[calls]].sum(), length[calls].sum()),
        "at a library's %": _percent((trace.caller[asks] >= 0).sum(), len(asks)),
        "in backward %": _percent((trace.forward[asks] >= 0).sum(), len(asks)),
        "lines": len(np.unique(trace.place[asks])),
        "without": lost.most_common(4),
    }


def _percent(part: Any, whole: Any) -> float:
    return round(100 * float(part) / max(1.0, float(whole)), 2)


def cost(loop: str, turns: int, device: torch.device) -> dict[str, float]:
    """ms of a step of one of training_loops.py, in turns with nothing: recorded, and recorded without lines."""
    from trace_overhead_cuda import synchronize
    from training_loops import LOOPS

    step = next(make for make in LOOPS.values() if make.__name__ == loop)(device)
    for _ in range(5):
        step()

    def timed(mark: Callable[[], None]) -> float:
        for _ in range(2):
            step()
            mark()
        synchronize(device)
        began = time.perf_counter_ns()
        for _ in range(20):
            step()
            mark()
        synchronize(device)
        return (time.perf_counter_ns() - began) / 20e6

    plain, found, calls = [timed(lambda: None)], {True: [], False: []}, 0  # type: ignore[var-annotated]
    for turn in range(2 * turns):
        noted = turn % 2 == 0
        way = contextlib.nullcontext() if noted else mock.patch.object(lines, "library", return_value=None)
        with way, syncscope.trace(whole=True) as recording:
            taken = timed(recording.step)
        plain.append(timed(lambda: None))
        found[noted].append(2 * taken / (plain[-1] + plain[-2]))
        calls = len(recording.trace.rows(Kind.CALL)) // 22
    return {"plain": median(plain), "lines": median(found[True]), "without": median(found[False]), "calls": calls}


LOOP = """
#include <stdint.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
double loop(uint64_t (*ask)(void), int times) {
  double began = now();
  for (int i = 0; i < times; i++) ask();
  return (now() - began) / times;
}
"""


def asking() -> None:
    """ns that it takes, below frames of torch and of a library, and while nobody records."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "loop.c").write_text(LOOP)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "loop.c", "-o", "loop.so"], cwd=folder, check=True)
        loop = ctypes.CDLL(f"{folder}/loop.so").loop
        handle = os.open(f"{folder}/lines", os.O_RDWR | os.O_CREAT)
    loop.restype, loop.argtypes = ctypes.c_double, [ctypes.c_void_p, ctypes.c_int]

    def ask() -> float:
        best, asked = 1e9, lines.asked()
        for _ in range(7):
            best = min(best, loop(asked, 100_000))
        return best

    lines.start(handle)
    for whose in ("torch/module.py", "zoo/model.py"):
        names = {"ask": carried(ask)}
        exec(compile("def f(n): return f(n - 1) if n else ask()", f"/x/site-packages/{whose}", "exec"), names)
        found = {depth: round(names["f"](depth)) for depth in (0, 5, 20, 60)}
        print(f"ns to ask for the line, by the frames of {whose.partition('/')[0]} below it: {found}")
    lines.stop()
    os.close(handle)
    print(f"ns while nobody records: {ask():.1f}")


def costs(turns: int, device: str) -> None:
    """The table of what a recording weighs."""
    from training_loops import LOOPS

    print(f"{'ms a step':16}{'nothing':>9}{'trace()':>9}{'without lines':>15}{'calls':>7}{'us a call':>11}")
    ratios = []
    for make in LOOPS.values():
        command = [sys.executable, __file__, "--loop", make.__name__, "--device", device, "--turns", str(turns)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"{make.__name__}: {done.stderr[-500:]}", flush=True)
            continue
        found = json.loads(done.stdout.splitlines()[-1])
        each = 1e3 * (found["lines"] - found["without"]) * found["plain"] / max(1, found["calls"])
        ratios.append(found["lines"])
        print(
            f"{make.__name__:16}{found['plain']:9.3f}{found['lines']:9.3f}{found['without']:15.3f}"
            f"{found['calls']:7}{each:11.3f}",
            flush=True,
        )
    print(f"trace() beside nothing: {median(ratios):.3f} in the median" if ratios else "nothing was measured")


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", choices=[[], *PROGRAMS])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="keep a recording of each program")
    parser.add_argument("--loop", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.device == "ocl":
        from syncscope import kernels  # noqa: F401  registers the device
    device = torch.device(given.device)
    if given.loop:
        print(json.dumps(cost(given.loop, given.turns, device)))
        return
    if given.cost:
        asking()
        costs(given.turns, given.device)
        return
    if lines.library() is None:
        raise SystemExit("lines cannot be read here: no compiler, or a Python whose frames nobody knows")
    for name in given.programs or PROGRAMS:
        try:
            run = PROGRAMS[name](device)
            run(2)
            with syncscope.trace(whole=True) as recording:
                run(STEPS)
            print(f"\n{name}:", json.dumps(shares(recording.trace)), flush=True)
            if given.save:
                recording.save(given.save / f"{name}.json.gz")
            print("  beside sys._getframe:", json.dumps(compared(*beside(run))), flush=True)
        except ImportError as error:
            print(f"\n{name}: {error}")
        except Exception:  # one that fails is not to cost the others
            print(f"\n{name} failed")
            traceback.print_exc()


if __name__ == "__main__":
    main()
