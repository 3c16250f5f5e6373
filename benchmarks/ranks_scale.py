"""Time and memory of a job's analysis against the number of its ranks.

    python benchmarks/ranks_scale.py FOLDER --ranks 8 64 512

FOLDER holds the traces of the ranks of a real job. The larger jobs are made of them as files: the same ranks over and over,
each with a clock of its own that is wrong by up to a second, and one rank in 64 a straggler whose host stops for 20 ms
before the first collective, so that all others wait there. The map is measured over a pool of processes, the reduce (the
tables read, the joint replay with all prices, and DuckDB's queries) in this one.
"""

from __future__ import annotations

import argparse
import resource
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np

from syncscope import kineto
from syncscope.analysis import fleet
from syncscope.analysis.job import job
from syncscope.analysis.start_causes import COLLECTIVE
from syncscope.model.trace import Kind, Trace

LATE = 20_000_000  # ns


def delayed(trace: Trace, at: int, by: int) -> Trace:
    """The recording if everything had stopped at a moment for so long: what was under way takes longer, the rest is later."""
    start = np.where(trace.start >= at, trace.start + by, trace.start)
    duration = np.where((trace.start < at) & (trace.end > at), trace.duration + by, trace.duration)
    return replace(trace, start=start, duration=duration)


def first_collective(trace: Trace) -> int:
    """The last moment of the first collective."""
    rows = [r for r in trace.rows(Kind.KERNEL).tolist() if COLLECTIVE.search(trace.names[trace.name[r]])]
    return int(trace.end[rows].min()) - 1


def made(source: Path, count: int, folder: Path) -> set[int]:
    """Files of a job of `count` ranks; returns the stragglers."""
    real = [kineto.read(path) for path in sorted(source.glob("*.json.gz"))]
    random = np.random.default_rng(0)
    late = set(random.choice(count, max(1, count // 64), replace=False).tolist())
    for number in range(count):
        trace = real[number % len(real)]
        # a straggler stops before all else; for the others the first collective then takes as much longer
        trace = delayed(trace, 1 if number in late else first_collective(trace), LATE)
        meta = trace.meta | {
            "rank": number,
            "origin_ns": trace.meta["origin_ns"] + int(random.integers(-(10**9), 10**9)),
        }
        kineto.save(replace(trace, meta=meta), folder / f"rank-{number:05}.pt.trace.json.gz")
    return late


def cpu() -> float:
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--ranks", type=int, nargs="+", default=[8, 64, 512])
    options.add_argument("--work", type=Path, default=Path("build/benchmarks/ranks"))
    given = options.parse_args()
    columns = (
        "map, CPU s",
        "tables, MB",
        "load, s",
        "joint replay, s",
        "DuckDB, s",
        "peak MB",
        "fidelity",
        "stragglers found",
    )
    print(f"{'ranks':>6}" + "".join(f"{name:>17}" for name in columns))
    for count in given.ranks:
        shutil.rmtree(given.work, ignore_errors=True)
        traces, tables = given.work / "traces", given.work / "tables"
        traces.mkdir(parents=True)
        late = made(given.folder, count, traces)
        begin = cpu()
        paths = sorted(str(path) for path in traces.glob("*.json.gz"))
        done = list(fleet.mapped(kineto.read, paths, folder=str(tables)))
        mapped = cpu() - begin
        size = sum(path.stat().st_size for path in tables.rglob("*.parquet")) / 1e6
        begin = cpu()
        ranks = fleet.load(tables)
        loaded = cpu() - begin
        begin = cpu()
        found = job(ranks)
        replayed = cpu() - begin
        begin = cpu()
        slow = fleet.stragglers(tables)
        fleet.lines(tables)
        queried = cpu() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        first = found.meets[0].late
        named = f"{first} of {sorted(late)}" if len(late) < 4 else f"{first in late}, {len(late)} late"
        numbers = (mapped, size, loaded, replayed, queried, peak)
        print(
            f"{len(done):>6}" + "".join(f"{n:>17.2f}" for n in numbers) + f"{found.fidelity:>17.4%}{named:>17}",
            flush=True,
        )
        assert slow[0]["times"] >= 1
    shutil.rmtree(given.work, ignore_errors=True)


if __name__ == "__main__":
    main()
