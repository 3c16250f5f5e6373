"""A recording as a cluster gives it, and commands that are asked about it in this process: `test_streams.py` starts them."""

import sys
from dataclasses import replace
from pathlib import Path
from unittest import mock

from click.testing import CliRunner, Result

from syncscope import kineto
from syncscope.cli import commands, ended
from syncscope.model.source import Place
from syncscope.model.trace import Event, Flag, Kind, Lane, Trace

MS = 1_000_000  # ns
SOURCE = """\
import torch

def train(model, data):
    total = 0.0
    for batch in data:
        loss = torch.mean(model(batch))
        total += loss.item()
    return total
"""
READ = 7


def recording(path: str, line: int = READ) -> Trace:
    """Five steps; the host waits once in each for a kernel of 6 ms."""
    host, queue = Lane(1, 1, label="python"), Lane(1, 7, 0)
    events = []
    for n in range(5):
        at = 10 * n * MS
        events += [
            Event(Kind.STEP, f"ProfilerStep#{n}", host, at, 10 * MS),
            Event(Kind.CALL, "clEnqueueNDRangeKernel", host, at + MS, 9000, n),
            Event(Kind.KERNEL, "mean", queue, at + MS + 20_000, 6 * MS, n),
            Event(Kind.READ, "item", host, at + 2 * MS, 6 * MS, place=Place(path, line), column=17),
            Event(
                Kind.CALL,
                "clEnqueueReadBuffer",
                host,
                at + 2 * MS + 900,
                5 * MS + 200_000,
                100 + n,
                flags=Flag.BLOCKING,
                bytes=4,
            ),
            Event(Kind.COPY, "Memcpy DtoH", queue, at + 7 * MS + 30_000, 4000, 100 + n, bytes=4),
        ]
    return Trace.of(events)


def report(*args: str) -> Result:
    return CliRunner().invoke(commands, ["report", *args])


def outcome(*args: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of the whole command."""
    streams = CliRunner().isolation()
    argv, freeze = mock.patch.object(sys, "argv", ["syncscope", "report", *args]), mock.patch("gc.freeze")
    with streams as (out, err, _), argv, freeze:
        code = ended()
        sys.stdout.flush()
        sys.stderr.flush()
        return code, out.getvalue().decode(), err.getvalue().decode()


def ranks(folder: Path, numbers: tuple[int, ...] = (0, 1), world: int = 2) -> None:
    """A recording of each of these ranks of a job."""
    for rank in numbers:
        kineto.save(moved(recording("train.py"), rank=rank, world_size=world), folder / f"worker{rank}.pt.trace.json")


def moved(trace: Trace, **meta: object) -> Trace:
    return replace(trace, meta=trace.meta | meta)


def late_job(folder: Path, lates: tuple[int, ...]) -> None:
    """Each rank comes to its collective so many ns after the first one, in each step of 10 ms."""
    for rank, late in enumerate(lates):
        events = [
            e if e.kind is not Kind.COPY else
            replace(e, kind=Kind.KERNEL, name="ncclDevKernel_AllReduce", start=e.start + late, duration=3 * MS - late, bytes=-1)
            for e in recording("train.py")
        ]  # fmt: skip
        kineto.save(moved(Trace.of(events), rank=rank, world_size=len(lates)), folder / "job" / f"{rank}.json")


def asked(*args: str) -> Result:
    """`syncscope ranks` of these."""
    return CliRunner(env={"COLUMNS": "100"}).invoke(commands, ["ranks", *args], standalone_mode=False)
