"""Ranks of a job that are drawn, and eight real ones: what the tests of jobs have in common."""

import random
from dataclasses import replace

from syncscope import kineto
from syncscope.analysis.rank import rank_of
from syncscope.model.detail import Detail
from syncscope.model.source import Place
from syncscope.model.trace import Event, Flag, Kind, Lane, Trace

MS = 1_000_000


def ranks_of(*late_by, **more):
    """The ranks of `traces_of` the same."""
    return [rank_of(trace, number=r, name=f"rank {r}") for r, trace in enumerate(traces_of(*late_by, **more))]


def traces_of(*late_by, reads=(), clock=(), steps=3, within=(), has=None, begins=None):
    """Ranks that do in every step: 1 ms of host work (and more on late ones), a kernel, an all-reduce, maybe a read.

    `late_by[r]` ns of host work more on rank r (or what a function says of each step), `reads` the ranks that read after each
    all-reduce, `clock[r]` what is wrong with the clock of rank r. `within` are the events around that host work, the outermost
    first: kind and name, and how much of its beginning is the next one's. `has` are, by rank, the steps that were recorded of
    it, where that are not all, and `begins` the moments before which nothing was.
    """
    events = [[] for _ in late_by]
    host, free, number = [0] * len(late_by), [0] * len(late_by), 0
    for step in range(steps):
        number += 10
        arrivals, begun = [], list(host)
        for r, more in enumerate(late_by):
            late = more(step) if callable(more) else more
            for depth, (kind, name) in enumerate(within):
                events[r].append(Event(kind, name, Lane(1, 1), host[r] + depth * MS // 4, MS + late - depth * MS // 4))
            host[r] += MS + late
            start = max(free[r], host[r] + 5_000)
            events[r] += [launch(host[r], number), work("gemm", start, MS, number)]
            host[r] += 10_000
            arrivals.append(start + MS + 1_000)
            events[r].append(launch(host[r], number + 1))
            host[r] += 10_000
        end = max(arrivals) + 200_000
        for r, arrival in enumerate(arrivals):
            events[r].append(work("ncclKernel_AllReduce(x)", arrival, end - arrival, number + 1))
            free[r] = end
            if r in reads:
                call = Event(Kind.CALL, "clFinish", Lane(1, 1), host[r], end + 2_000 - host[r], flags=Flag.BLOCKING)
                events[r] += [call, replace(call, kind=Kind.READ, name="item", place=Place("train.py", 9))]
                host[r] = end + 2_000
            events[r].append(Event(Kind.STEP, f"ProfilerStep#{step}", Lane(1, 1), begun[r], host[r] - begun[r]))
    for r, recorded in (has or {}).items():
        since = {e.name: (e.start, e.end) for e in events[r] if e.kind is Kind.STEP}
        spans = [since[f"ProfilerStep#{step}"] for step in recorded]
        events[r] = [e for e in events[r] if spans[0][0] <= e.start < spans[-1][1]]
    for r, at in (begins or {}).items():
        events[r] = [
            replace(e, start=max(e.start, at), duration=e.end - max(e.start, at)) for e in events[r] if e.end > at
        ]
    return [Trace.of(e, origin_ns=10**18 + (clock[r] if clock else 0)) for r, e in enumerate(events)]


def buckets_of(*late_by, count=4, steps=4):
    """Ranks that compute `count` times for 1 ms in every step (and `late_by[r]` longer on rank r), each time with an all-reduce
    on another queue, and wait for all of it at the end of the step."""
    events = [[] for _ in late_by]
    now, number = 0, 0
    for step in range(steps):
        free, device = [now] * len(late_by), [now + 100_000] * len(late_by)
        for bucket in range(count):
            number += 2
            arrivals = []
            for r, late in enumerate(late_by):
                at = now + 20_000 * bucket
                events[r] += [launch(at, number), launch(at + 10_000, number + 1)]
                events[r].append(work("gemm", device[r], MS + late, number))
                device[r] += MS + late
                waits = Event(Kind.CALL, "cudaStreamWaitEvent", Lane(1, 1), at + 9_500, 400)
                events[r].append(waits)
                arrivals.append(max(device[r] + 1_000, free[r]))
            end = max(arrivals) + 100_000
            for r, arrival in enumerate(arrivals):
                events[r].append(exchange("ncclKernel_AllReduce(x)", arrival, end - arrival, number + 1))
                free[r] = end
        over = end + 10_000
        for each in events:
            call = Event(Kind.CALL, "cudaDeviceSynchronize", Lane(1, 1), now + 200_000, over - now - 200_000)
            each += [call, Event(Kind.STEP, f"ProfilerStep#{step}", Lane(1, 1), now, over + 10_000 - now)]
        now = over + 20_000
    return [rank_of(Trace.of(e, origin_ns=10**18), number=r, name=f"rank {r}") for r, e in enumerate(events)]


def exchange(name, start, duration, number):
    return Event(Kind.KERNEL, name, Lane(0, 20, 0), start, duration, correlation=number)


def launch(start, number):
    return Event(Kind.CALL, "cudaLaunchKernel", Lane(1, 1), start, 10_000, correlation=number)


def work(name, start, duration, number):
    return Event(Kind.KERNEL, name, Lane(0, 7, 0), start, duration, correlation=number)


def dlrm(shared):
    files = sorted((shared / "traces" / "multirank_dlrm8").glob("*.json.gz"))
    return [rank_of(kineto.read(file), name=file.name) for file in files]


def grid_of(
    *late_by,
    width=2,
    count=6,
    steps=4,
    named=False,
    seed=0,
    clock=(),
    queues=(20, 21),
    sizes=(None, None),
    chance_of=200_000,
    apart=4_000,
    since=None,
):
    """Ranks in a grid, as tensor and data parallel training has them: in every step each row (`width` ranks that follow one
    another) meets `count` times, each time after 0.3 ms of a kernel, then each column once.

    `late_by[r]` is by how much longer rank r computes each time. Kernels of both are called alike; with `named` they say their
    group. `queues` and `sizes` are of the rows' collectives and of the columns'. By chance kernels take up to `chance_of` ns
    more, and collectives end up to `apart` ns one after another on their ranks. `since` are, by rank, the steps in whose middle
    their recordings begin.
    """
    chance = random.Random(seed)
    world, names = len(late_by), ("rows", "columns")
    rows = [list(range(first, first + width)) for first in range(0, world, width)]
    columns = [list(range(first, world, width)) for first in range(width)]
    events = [[] for _ in late_by]
    host, free, begun = [0] * world, [0] * world, [0] * world
    number = 0
    for step in range(steps):
        begun = list(host)
        for which, groups in [*((0, rows) for _ in range(count)), (1, columns)]:
            number += 2
            for group in groups:
                arrivals = []
                for r in group:
                    at = host[r]
                    start = max(at + 15_000, free[r] + 1_000)
                    busy = 300_000 + late_by[r] + chance.randrange(chance_of)
                    events[r] += [
                        launch(at, number),
                        work("gemm", start, busy, number),
                        launch(at + 10_000, number + 1),
                    ]
                    host[r] += 20_000
                    arrivals.append(start + busy + 1_000)
                end = max(arrivals) + 60_000
                known = {"collective": "allreduce", "process_group": names[which]} if named else {}
                if sizes[which]:
                    known |= {"collective": "allreduce", "elements": sizes[which]}
                for r, arrival in zip(group, arrivals, strict=True):
                    lane = Lane(0, queues[which], 0)
                    over = end + chance.randrange(apart)
                    detail = Detail(**known, group_ranks=str(group) if named else "").text()
                    kernel = Event(
                        Kind.KERNEL, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", lane, arrival, over - arrival
                    )
                    events[r].append(replace(kernel, correlation=number + 1, detail=detail))
                    free[r] = over
        for r in range(world):
            over = free[r] + 10_000
            events[r].append(Event(Kind.CALL, "cudaDeviceSynchronize", Lane(1, 1), host[r], over - host[r]))
            events[r].append(Event(Kind.STEP, f"ProfilerStep#{step}", Lane(1, 1), begun[r], over + 5_000 - begun[r]))
            host[r] = over + 10_000
    for r, step in (since or {}).items():
        (begun_in,) = (e for e in events[r] if e.name == f"ProfilerStep#{step}")
        events[r] = [e for e in events[r] if e.start >= begun_in.start + begun_in.duration // 2]
    return [
        rank_of(
            Trace.of(e, origin_ns=10**18 + (clock[r] if clock else 0), world_size=world), number=r, name=f"rank {r}"
        )
        for r, e in enumerate(events)
    ]
