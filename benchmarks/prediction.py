"""Predictions against reality: what a loop takes without its waits, foretold from a run with them, then run.

    python benchmarks/prediction.py                    all loops on the `ocl` device
    python benchmarks/prediction.py --device cuda      on a GPU
    python benchmarks/prediction.py many-reads clipping   some of them
    python benchmarks/prediction.py --loops FOLDER     loops of one's own: each file has `loop(torch, device)`, which
                                                       returns a function of whether the step is as written (True) or
                                                       without its waits (False)

Every loop is run with its reads and without, in turns; each run with reads is recorded and replayed without them, and the
table compares the median prediction with the median of the runs without. The range is what the prediction leaves open for
what takes the reads' place. Beside it stands what blocked time would have foretold: the step less the time the host was
blocked. *Untraced* is a step without its waits and without a recording, both versions being run in turns; A/A is by how much
two runs of one version differ; then the share of a step that the waits cost, as predicted and as measured without a recording.
Recordings whose replay cannot be trusted are left out, and counted.

On a processor that is also the device (PoCL), the device is given one core less than there are, so that host and device do
not slow each other down more than a GPU would. Other programs must leave both alone: `chrt -r 10` before the command helps.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

STEPS, WARM = 14, 3  # recorded, and before that
Step = Callable[[bool], None]
TIMES = {"ocl": 1, "cuda": 8}  # so much larger are the tensors' sides: a GPU does in 1 us what a processor does in 1 ms
scale = 1


def sized(side: int) -> int:
    """The side of a tensor, so that this device has about as much to do as the host."""
    return side * scale


def work(ms: float) -> None:
    """The host has something else to do: it waits for the next batch, as of a loader's worker or a disk."""
    time.sleep(ms / 1000)


def linear_step(torch: Any, device: Any, width: int, depth: int, batch: int) -> Callable[[], Any]:
    """One SGD step of a plain network; returns its loss."""
    torch.manual_seed(0)
    width, batch = sized(width), sized(batch)
    layers = [m for _ in range(depth) for m in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    net = torch.nn.Sequential(*layers).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    x, y = torch.randn(batch, width).to(device), torch.randn(batch, width).to(device)

    def step() -> Any:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def host_bound(torch: Any, device: Any) -> Step:
    """Small kernels, much Python: the device waits for the host."""
    step = linear_step(torch, device, 64, 2, 16)

    def run(reads: bool) -> None:
        loss = step()
        if reads:
            loss.item()
        work(12)

    return run


def device_bound(torch: Any, device: Any) -> Step:
    """Large kernels, little Python: the host waits for the device at the end of every step."""
    step = linear_step(torch, device, 512, 3, 256)

    def run(reads: bool) -> None:
        loss = step()
        if reads:
            loss.item()

    return run


def one_read(torch: Any, device: Any) -> Step:
    """Host and device have about as much to do: a read in between costs the overlap."""
    step = linear_step(torch, device, 512, 2, 192)

    def run(reads: bool) -> None:
        loss = step()
        if reads:
            loss.item()
        work(15)

    return run


def many_reads(torch: Any, device: Any) -> Step:
    """Six reads in a step, between its parts."""
    step = linear_step(torch, device, 384, 1, 128)

    def run(reads: bool) -> None:
        for _ in range(6):
            loss = step()
            if reads:
                loss.item()
            work(2)

    return run


def logging_reads(torch: Any, device: Any) -> Step:
    """Two values of every third step are logged."""
    step = linear_step(torch, device, 512, 2, 192)
    count = 0

    def run(reads: bool) -> None:
        nonlocal count
        loss = step().detach()
        mean = loss.mean()
        if reads and count % 3 == 0:
            float(loss), mean.item()
        work(12)
        count += 1

    return run


def two_optimizers(torch: Any, device: Any) -> Step:
    """A GAN's step: two networks, two optimizers, both losses and a score read for the log line."""
    nn = torch.nn
    torch.manual_seed(0)
    noises, inner, values, batch = (sized(side) for side in (64, 512, 256, 128))
    netd = nn.Sequential(nn.Linear(values, inner), nn.LeakyReLU(0.2), nn.Linear(inner, 1)).to(device)
    netg = nn.Sequential(nn.Linear(noises, inner), nn.ReLU(), nn.Linear(inner, values), nn.Tanh()).to(device)
    optd, optg = (torch.optim.SGD(net.parameters(), lr=1e-3) for net in (netd, netg))
    criterion = nn.BCEWithLogitsLoss()
    real, noise = torch.randn(batch, values).to(device), torch.randn(batch, noises).to(device)
    ones, zeros = torch.ones(batch, 1).to(device), torch.zeros(batch, 1).to(device)

    def run(reads: bool) -> None:
        fake = netg(noise)
        netd.zero_grad()
        score = netd(real)
        errd = criterion(score, ones) + criterion(netd(fake.detach()), zeros)
        errd.backward()
        optd.step()
        if reads:
            errd.item()
        work(3)
        netg.zero_grad()
        errg = criterion(netd(fake), ones)
        errg.backward()
        optg.step()
        mean = score.mean()
        if reads:
            errg.item(), mean.item()
        work(4)

    return run


def segmentation(torch: Any, device: Any) -> Step:
    """The sample: the loss as written has three waits, the one in fixed shapes none."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "samples"))
    import segmentation as sample

    torch.manual_seed(0)
    net = sample.network().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
    images, labels = next(
        iter(torch.utils.data.DataLoader(sample.crops(sized(4), 64 if scale == 1 else 256), batch_size=sized(4)))
    )
    images, labels = images.to(device), labels.to(device)

    def run(reads: bool) -> None:
        optimizer.zero_grad()
        loss = sample.loss_as_written if reads else sample.loss_in_fixed_shapes
        loss(net(images), labels).backward()
        optimizer.step()
        work(10)

    return run


# Written after the model was settled, and predicted once before anything was changed for them: docs/price.md has both figures.


def boolean_mask(torch: Any, device: Any) -> Step:
    """A loss over the positions that a mask keeps, whose number only the device knows; without, weights of nought and one."""
    torch.manual_seed(1)
    width, inner, batch = sized(256), sized(512), sized(256)
    net = torch.nn.Sequential(torch.nn.Linear(width, inner), torch.nn.ReLU(), torch.nn.Linear(inner, 16)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    x, y = torch.randn(batch, width).to(device), torch.randn(batch, 16).to(device)
    known = (torch.rand(batch, 16) < 0.6).to(device)

    def run(reads: bool) -> None:
        optimizer.zero_grad()
        out = net(x)
        if reads:
            loss = ((out[known] - y[known]) ** 2).mean()
        else:
            loss = torch.where(known, (out - y) ** 2, 0.0).sum() / known.sum()
        loss.backward()
        optimizer.step()
        work(6)

    return run


def clipping(torch: Any, device: Any) -> Step:
    """Gradients scaled to a norm that the host reads to decide, as Python `if` or as a clamp on the device."""
    torch.manual_seed(2)
    width, batch = sized(320), sized(160)
    layers = [m for _ in range(3) for m in (torch.nn.Linear(width, width), torch.nn.Tanh())]
    net = torch.nn.Sequential(*layers).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    x, y = torch.randn(batch, width).to(device), torch.randn(batch, width).to(device)

    def run(reads: bool) -> None:
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        total = torch.stack([p.grad.norm() for p in net.parameters()]).norm()
        if reads:
            norm = total.item()
            if norm > 1e-4:
                for p in net.parameters():
                    p.grad.mul_(1e-4 / norm)
        else:
            scale = (1e-4 / total).clamp(max=1.0)
            for p in net.parameters():
                p.grad.mul_(scale)
        work(8)
        optimizer.step()

    return run


def evaluation(torch: Any, device: Any) -> Step:
    """Eight batches are classified, each prediction goes to the CPU at once; without, all of them in one copy at the end."""
    torch.manual_seed(3)
    width, inner, batch = sized(384), sized(768), sized(96)
    net = torch.nn.Sequential(torch.nn.Linear(width, inner), torch.nn.ReLU(), torch.nn.Linear(inner, 64)).to(device)
    batches = [torch.randn(batch, width).to(device) for _ in range(8)]

    def run(reads: bool) -> None:
        found = []
        with torch.no_grad():
            for x in batches:
                best = net(x).argmax(1)
                found.append(best.cpu() if reads else best)
                work(1.5)
            if reads:
                torch.cat(found)
            else:
                torch.cat(found).cpu()

    return run


LOOPS = {
    "host-bound": host_bound,
    "device-bound": device_bound,
    "one-read": one_read,
    "many-reads": many_reads,
    "logging": logging_reads,
    "two-optimizers": two_optimizers,
    "segmentation": segmentation,
    "boolean-mask": boolean_mask,
    "clipping": clipping,
    "evaluation": evaluation,
}


def given_loops(folder: Path) -> dict[str, Callable[[Any, Any], Step]]:
    """The loops of a folder, by the names of their files."""
    found = {}
    for file in sorted(folder.glob("*.py")):
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found[file.stem.replace("_", "-")] = module.loop
    return found


def timed(torch: Any, device: Any, run: Step, reads: bool) -> float:
    """ms of a step without a recording: many in a row, and the device waited for at the end."""
    synchronize = getattr(torch, device.type).synchronize
    for _ in range(WARM):
        run(reads)
    synchronize()
    begin = time.perf_counter()
    for _ in range(STEPS):
        run(reads)
    synchronize()
    return 1e3 * (time.perf_counter() - begin) / STEPS


def recorded(run: Step, reads: bool) -> Any:
    """The trace of some steps of a loop."""
    import syncscope

    with syncscope.trace(wait=0, warmup=WARM, active=STEPS) as session:
        for _ in range(WARM + STEPS):
            run(reads)
            session.step()
    return session.trace


def foretold(given: Any, without: Any) -> tuple[float, ...] | None:
    """ms per step: with reads, predicted without them, its range, without; foretold by blocked time; the device's work in both.

    None where no prediction is made.
    """
    from syncscope.analysis.compare import compare
    from syncscope.analysis.intervals import union
    from syncscope.model.trace import DEVICE

    found = compare(given, without)
    if (
        found.predicted is None
        or found.predicted_range is None
        or found.before.step is None
        or found.after.step is None
    ):
        return None
    blocked = sum(line.blocked for line in found.gone)
    blocked += sum(c.before.blocked - c.after.blocked for c in found.changed if c.before and c.after)
    works = []
    for trace in (given, without):
        rows = trace.rows(*DEVICE)
        works.append(union(trace.start[rows], trace.end[rows]).length / max(1, len(found.after.steps)))
    least, most = found.predicted_range
    times = (found.before.step, found.predicted, least, most, found.after.step, found.before.step - blocked, *works)
    return tuple(time / 1e6 for time in times)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("names", nargs="*", default=[], metavar="LOOP")
    options.add_argument("--loops", type=Path, metavar="FOLDER", help="loops of one's own, one a file")
    options.add_argument("--device", default="ocl")
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    if given.device == "ocl" and "POCL_CPU_MAX_CU_COUNT" not in os.environ:
        cores = str(max(1, (os.cpu_count() or 2) - 1))
        os.environ |= {"POCL_CPU_MAX_CU_COUNT": cores, "POCL_MAX_PTHREAD_COUNT": cores, "OMP_NUM_THREADS": "1"}
        os.execv(sys.executable, [sys.executable, *sys.argv])
    import torch

    torch.set_num_threads(1)
    if given.device == "ocl":
        import syncscope.kernels  # noqa: F401  registers the device
    device = torch.device(given.device)
    global scale
    scale = TIMES.get(device.type, 1)
    loops = LOOPS if given.loops is None else given_loops(given.loops)
    if unknown := set(given.names) - set(loops):
        options.error(f"no loop is called {', '.join(sorted(unknown))}; there are {', '.join(loops)}")
    columns = (
        "with reads",
        "predicted",
        "range",
        "measured",
        "error",
        "by blocked",
        "error",
        "device: with",
        "without",
        "untraced",
        "A/A",
        "saves: said",
        "really",
    )
    print(f"{'ms per step':16}" + "".join(f"{column:>13}" for column in columns))
    errors, naive, refused = [], [], 0
    for name in given.names or loops:
        run = loops[name](torch, device)
        for reads in (True, False):
            for _ in range(3):
                run(reads)
        rounds, plain = [], []
        for number in range(given.rounds):  # in turns, and who is first in turns too
            order = (True, False) if number % 2 else (False, True)
            plain.append([timed(torch, device, run, reads) for reads in (*order, *reversed(order))])
            plain[-1] = plain[-1] if order[0] else [plain[-1][n] for n in (1, 0, 3, 2)]  # with, without, without, with
            traces = {reads: recorded(run, reads) for reads in order}
            if (one := foretold(traces[True], traces[False])) is not None:
                rounds.append(one)
        refused += given.rounds - len(rounds)
        if not rounds:
            print(f"{name:16} no recording can be trusted", flush=True)
            continue
        step, predicted, least, most, measured, blocked, busy, busy_without = (
            statistics.median(column) for column in zip(*rounds, strict=True)
        )
        errors.append((predicted - measured) / measured)
        naive.append((blocked - measured) / measured)
        between = f"{least:.2f}-{most:.2f}"
        foretelling = f"{step:13.2f}{predicted:13.2f}{between:>13}{measured:13.2f}{errors[-1]:+13.1%}"
        first, short, again, last = (statistics.median(column) for column in zip(*plain, strict=True))
        same = max(abs(first - last) / first, abs(short - again) / short)
        really = 1 - (short + again) / (first + last)
        shares = f"{(short + again) / 2:13.2f}{same:13.1%}{1 - predicted / step:+13.1%}{really:+13.1%}"
        devices = f"{busy:13.2f}{busy_without:13.2f}"
        print(f"{name:16}{foretelling}{blocked:13.2f}{naive[-1]:+13.1%}{devices}{shares}", flush=True)
    for what, found in (("prediction", errors), ("blocked time", naive)):
        if sizes := sorted(abs(e) for e in found):
            print(f"{what}: {statistics.median(sizes):.1%} off in the median, {sizes[-1]:.1%} at worst")
    if refused:
        print(f"{refused} recordings whose replay cannot be trusted were left out")


if __name__ == "__main__":
    main()
