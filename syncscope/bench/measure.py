"""The process of one device: `python -m syncscope.bench.measure REQUEST` prints the device and each row as JSON."""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from syncscope.bench import networks, work
from syncscope.errors import UserError

LOSSES = 3  # of the first steps, compared between devices
FEWEST, MOST = 3, 200  # iterations that are timed
WARM = 3
PARTS = 5  # iterations that are timed part by part
HALVES = {"float16": torch.float16, "bfloat16": torch.bfloat16}

Call = Callable[[], Any]
Ready = Callable[[], Call]  # does what an iteration needs and is not timed, and gives the iteration


def prepare(device: str, tf32: bool = True) -> tuple[Call, dict[str, Any]]:
    """How to wait for a device, and what it is. Without `tf32` all is computed in float32's precision, else as PyTorch comes.

    Raises:
        UserError: it is not here.
    """
    if not tf32:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    if device == "cpu":
        return lambda: None, {"name": f"CPU, {torch.get_num_threads()} threads", "about": f"torch {torch.__version__}"}
    if device == "ocl":
        import syncscope.kernels  # noqa: F401 - registers the device
        from syncscope.kernels.device import info

        about = info()
        return torch.ocl.synchronize, {"name": about.name, "about": f"{about.platform}, driver {about.driver}"}
    if device == "cuda":
        if not torch.cuda.is_available():
            raise UserError("there is no CUDA here", f"torch {torch.__version__} sees none: leave it out of --device")
        about_cuda = f"CUDA {torch.version.cuda}, torch {torch.__version__}"
        return torch.cuda.synchronize, {"name": torch.cuda.get_device_name(), "about": about_cuda}
    raise UserError(f"{device!r} cannot be measured", "--device takes ocl, cuda and cpu")


def timed(ready: Ready, synchronize: Call, seconds: float, took: float = 0.0) -> tuple[list[float], list[float]]:
    """Milliseconds of iterations, each waited for, and those until the last of the work is enqueued. The last one before
    them `took` so many seconds: where that is all the time there is, it has warmed up enough."""
    start = time.perf_counter()
    for _ in range(WARM if took < seconds else 0):
        ready()()
        synchronize()
        if time.perf_counter() - start > 2 * seconds:
            break
    whole: list[float] = []
    host: list[float] = []
    end = time.perf_counter() + seconds
    while len(whole) < FEWEST or (time.perf_counter() < end and len(whole) < MOST):
        call = ready()
        synchronize()
        start = time.perf_counter()
        call()
        enqueued = time.perf_counter()
        synchronize()
        whole.append(1e3 * (time.perf_counter() - start))
        host.append(1e3 * (enqueued - start))
    return whole, host


def host_ms(ready: Ready, synchronize: Call, enqueued: list[float]) -> float:
    """Milliseconds that the host itself needs to enqueue an iteration, at most.

    Until all is enqueued it may have waited for room in the queue; with the queue emptied often it has not, but was watched
    meanwhile. Both are no less than what it needs: the lesser counts.
    """
    return min(float(np.median(enqueued)), *(work.enqueueing(ready(), synchronize) for _ in range(FEWEST)))


def _parts(task: networks.Task, synchronize: Call, seconds: float) -> dict[str, float]:
    """Median milliseconds of forward, backward and optimizer, with a wait after each; of so many iterations as fit."""
    found: dict[str, list[float]] = {"forward": [], "backward": [], "optimizer": []}
    end = time.perf_counter() + seconds
    while not found["forward"] or (len(found["forward"]) < PARTS and time.perf_counter() < end):
        task.optimizer.zero_grad()
        synchronize()
        marks = [time.perf_counter()]
        loss = task.forward()
        acts: tuple[Call, ...] = (lambda: None, functools.partial(task.backward, loss), task.update)
        for act in acts:
            act()
            synchronize()
            marks.append(time.perf_counter())
        for name, a, b in zip(found, marks, marks[1:], strict=False):
            found[name].append(1e3 * (b - a))
    return {name: round(float(np.median(values)), 4) for name, values in found.items()}


def row(device: str, synchronize: Call, request: dict[str, Any], name: str, batch: int) -> dict[str, Any]:
    """One network at one batch size."""
    which = request["pass"]
    made: dict[str, Any] = {}
    half = HALVES.get(request["dtype"])
    how = {"half": half, "dropout": request["dropout"]}
    task = None if ":" in name else networks.task(name, device, batch, request["pixels"], **how)
    ready = _ready(task, which) if task else _always(networks.of_file(name, device, batch))
    if task and which == "train":
        made["losses"] = [float(task.step().item()) for _ in range(LOSSES)]
        made["loss"] = made["losses"][-1]
    made["flops"], made["bytes"] = work.work(ready())
    iteration, counts = ready(), _counts(device)
    synchronize()
    begun = time.perf_counter()
    iteration()
    made |= {key: after - before for (key, before), after in zip(counts.items(), _counts(device).values(), strict=True)}
    synchronize()
    took = time.perf_counter() - begun
    whole, enqueued = timed(ready, synchronize, request["seconds"], took)
    if task and which == "train":
        made |= _parts(task, synchronize, request["seconds"])
    low, middle, high = (round(float(x), 4) for x in np.quantile(whole, (0.25, 0.5, 0.75)))
    made |= {
        "ms": middle,
        "low": low,
        "high": high,
        "iterations": len(whole),
    }
    if device != "cpu":
        made["host_ms"] = round(host_ms(ready, synchronize, enqueued), 4)
    if request["operators"]:
        made["operators"] = {k: round(v, 4) for k, v in work.operators(ready(), synchronize).items()}
    return made


def _always(call: Call) -> Ready:
    return lambda: call


def _ready(task: networks.Task, which: str) -> Ready:
    """What is timed of a network: a step of training, a forward pass without gradients, or a backward pass alone."""
    if which == "train":
        return _always(task.step)
    if which == "forward":
        task.model.eval()

        def infer() -> Tensor:
            with torch.no_grad(), task.region:
                made: Tensor = task.model(*task.inputs)
                return made

        return _always(infer)

    def forward() -> Call:
        task.optimizer.zero_grad()
        return functools.partial(task.backward, task.forward())

    return forward


def _counts(device: str) -> dict[str, int]:
    if device != "ocl":
        return {}
    from syncscope.kernels import fallback, queue

    return {"launches": queue.launches, "fallbacks": sum(fallback.counts.values())}


def main(text: str) -> int:
    """Measures what is asked for; what does not fit into the memory is a row without milliseconds."""
    request = json.loads(text)
    device = request["device"]

    def say(**what: Any) -> None:
        print(json.dumps(what), flush=True)

    try:
        synchronize, about = prepare(device, request["tf32"])
        dtype = request["dtype"]
        flops, bandwidth = work.ceilings(device, synchronize, HALVES.get(dtype, torch.float32), request["tf32"])
        say(device=about | {"flops": flops, "bandwidth": bandwidth, "dtype": dtype})
        for name in request["networks"]:
            for batch in request["batches"]:
                where = {"network": name, "device": device, "batch": batch, "pass": request["pass"], "dtype": dtype}
                try:
                    made = row(device, synchronize, request, name, batch)
                except RuntimeError as error:
                    if not isinstance(error, torch.OutOfMemoryError) and "DefaultCPUAllocator" not in str(error):
                        raise
                    made = {"ms": None, "error": str(error).partition("\n")[0]}
                    if device == "cuda":
                        torch.cuda.empty_cache()
                say(row=where | made)
                if device == "ocl":
                    torch.ocl.empty_cache()
    except UserError as error:
        say(error=[error.message, error.hint])
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
