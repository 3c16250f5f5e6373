"""What a step would take if something were otherwise: replays of the recording with other host times, or other work.

```text
recorded   host  [a]--[b]--[c]--[ wait]   launches cost nothing   host  [a][ wait]
           queue    [a]  [b]  [c]                                 queue    [a][b][c]
```

Each row of `WHAT_IFS` changes one thing. What is left of it in a real program (a graph is launched, too; a fused kernel still
reads its tensors) is between the ends of its interval.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.changes import Changes
from syncscope.analysis.coverage import WARM
from syncscope.analysis.event_graph import EventGraph
from syncscope.analysis.fidelity import Fidelity
from syncscope.analysis.growth import shortest
from syncscope.analysis.hosts import OPERATOR
from syncscope.analysis.idle_times import LOADER
from syncscope.analysis.price import unpriced
from syncscope.analysis.start_causes import COLLECTIVE
from syncscope.analysis.what_if_ground import NAMED, Ground
from syncscope.analysis.what_if_host import host_functions, host_lines
from syncscope.analysis.what_if_loops import passes_at_once
from syncscope.analysis.what_if_waits import waits
from syncscope.model.durations import about_ms
from syncscope.model.report import Report
from syncscope.model.source import Place
from syncscope.model.trace import Kind
from syncscope.model.uses import APART
from syncscope.model.what_if import Effort, WhatIf

FARTHEST = 0.2  # the part of a step that a replay may be off, for a row whose interval allows for as much
LIKELY = 0.03  # the part of a step that is saved likely enough to be worth a change, though it may be none
WORTH = 0.01  # the part of a step that must be saved to say a word about it
MANY = 8  # launches of a line in a step from which fewer help
ALIKE = 4  # of each of its kernels, at least: else they are a whole network's
LINES = 3  # lines of which a row of their own is made
LARGER = (1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 32.0)  # times the device's work
HOLDS = 0.1  # of a step that a device twice as fast saves, from which it is what holds it up
# The optimizers that torch makes with `fused=True`, and how many times as much memory a step in single operators goes through
# as in that one kernel: tensors read and written.
TRAFFIC = {"SGD": 8 / 5, "Adam": 18 / 7, "AdamW": 20 / 7, "Adagrad": 11 / 5}
COMPILED = 2.0  # the same of any other, beside what `torch.compile` makes of its step
LISTS = re.compile("foreach|multi_tensor_apply")  # in the names of kernels that work on a list of tensors at once
Truths = NDArray[np.bool_]


def what_ifs(
    report: Report, event_graph: EventGraph, trusted: Fidelity, loops: Mapping[Place, int]
) -> tuple[WhatIf, ...]:
    """What helps how much, the most first, the waits as they were priced among it, and a faster device last.

    `loops` are the lines of loops around what waits, whose passes need nothing of one another. Nothing where no replay can
    be trusted, or the program warms up.
    """
    if trusted.error is None or trusted.error > FARTHEST or (report.uses is not None and report.uses.warming > WARM):
        return ()
    ground = Ground(event_graph.trace, event_graph, trusted, loops)
    if ground.step <= 0:
        return ()
    step = report.saving_step or ground.step
    scale = step / ground.step
    found = [_scaled(one, scale) for what_if in WHAT_IFS for one in what_if(ground)]
    known = trusted.enough  # else what a row saves is not said: it comes after what is
    found = sorted([*found, *waits(report, ground, step)], key=lambda one: (not (known or one.answered), -one.saving))
    found += (_scaled(one, scale) for one in _device(ground))  # is bought, not written
    worth = [one for one in found if one.saving >= WORTH * step]
    return tuple(replace(one, unsure=one.low < 0 and one.saving < LIKELY * step) for one in worth)


def _scaled(one: WhatIf, scale: float) -> WhatIf:
    times = {name: getattr(one, name) * scale for name in ("saving", "low", "high", "bound")}
    return replace(one, **times)


def _launches(ground: Ground) -> Iterator[WhatIf]:
    """The host's work between two waits shrinks to one launch a stretch."""
    launches, (gaps, cost) = ground.launches, ground.times
    if not ground.counted(launches).sum() >= MANY:
        return
    optimizers = np.zeros(len(launches), bool)
    for spans in ground.optimizers.values():
        optimizers |= ground.within(spans)
    saved = ground.saved(_one_launch(ground, launches))
    least = ground.saved(_one_launch(ground, launches & ~optimizers)) if optimizers.any() else saved
    left = unpriced(ground.graph)
    priced = [number for number in range(len(ground.graph.reads)) if number not in left]
    most = ground.saved(_one_launch(ground, launches), priced) if priced else saved
    spent = np.where(ground.counted(launches), np.minimum(gaps, OPERATOR) + cost, 0.0)
    reads = [read for read in ground.event_graph.reads if read.place and read.step >= 0]
    forbid = Counter(read.place.shortly for read in reads if read.place)
    named = ", ".join(where for where, _ in forbid.most_common(3))
    first = f"; no graph can hold a wait, so first the one{'s' * (len(forbid) > 1)} at {named}"
    how = '`torch.compile(mode="reduce-overhead")`, or `torch.cuda.graph` around what has fixed shapes'
    if _by_opencl(ground, launches):
        how = f"on CUDA {how}" if _is_lent(ground) else "`torch.ocl.capture` of a step of fixed shape"
    yield ground.row(
        "launches cost nothing",
        saved,
        least,
        most,
        ground.step - ground.busy,
        lines=ground.dearest(spent),
        advice=how + (first if forbid else ""),
        host=float(spent.sum()) / ground.window.steps,
        effort=Effort.STEP,
        word="launches",
    )


def _by_opencl(ground: Ground, launches: Truths) -> bool:
    names = np.unique(ground.trace.name[ground.event_graph.host.row[launches]])
    return any(ground.trace.names[code].startswith("cl") for code in names)


def _is_lent(ground: Ground) -> bool:
    """Whether `ocl` was lent to a program for CUDA, which knows nothing of it."""
    return ground.trace.meta.get("stands_for") == "cuda"


def _for_optimizer(ground: Ground, launches: Truths) -> str:
    """What makes one launch of a step of an optimizer that torch cannot fuse; "" where nothing does."""
    work = ground.event_graph.device_work
    kinds = np.unique(ground.trace.name[work.row[np.isin(work.enqueued, np.flatnonzero(launches))]])
    by_lists = any(LISTS.search(ground.trace.names[code]) for code in kinds)
    compiled = "`torch.compile` of its step"
    if _by_opencl(ground, launches):  # no code is generated for it
        compiled = f"on CUDA {compiled}" if _is_lent(ground) else ""
    return " or ".join(filter(None, (compiled, "" if by_lists else "`torch._foreach_*` in it")))


def _one_launch(ground: Ground, launches: Truths, most: float = OPERATOR) -> Changes:
    """The host's times if these launches, as far as they follow one another, were one; at most so many ns go before each."""
    gaps, cost = (times.copy() for times in ground.times)
    later = launches & np.append(False, launches[:-1])
    gaps[later] -= np.minimum(gaps[later] - np.minimum(ground.loading[later], gaps[later]), most)
    cost[later] = 0.0
    return Changes(gaps=gaps, cost=cost)


def _worked(ground: Ground, of: NDArray[np.intp]) -> float:
    """How long the device works on these pieces of work, ns per step."""
    work = ground.event_graph.device_work
    counted = ground.counted(np.ones(len(ground.launches), bool))[work.enqueued[of]]
    return float(work.duration[of][counted].sum()) / ground.window.steps


def _one_line(ground: Ground) -> Iterator[WhatIf]:
    """The launches of one line become one: what takes their place launches once, and reads what they read."""
    work, lines = ground.event_graph.device_work, ground.lines
    items = ground.launches & ~ground.backward
    groups: list[tuple[str, str, Effort, float, float, Truths]] = []
    stepping = np.zeros(len(items), bool)
    for name, spans in ground.optimizers.items():
        inside = items & ground.within(spans)
        stepping |= inside
        if name in TRAFFIC:
            advice, effort = f"`{name}(..., fused=True)`", Effort.WORD
        else:
            advice, effort = _for_optimizer(ground, inside), Effort.LINES
        if not advice:
            continue
        told = f"{name}'s step is one launch", advice
        groups.append((*told, effort, TRAFFIC.get(name, COMPILED), np.inf, inside))
    trained = lines.sums(lines.whose, lines.backward.astype(float)) > 0  # each launch there needs the one before it
    visits = np.append(True, lines.item[1:] != lines.item[:-1])
    for code in np.flatnonzero(~trained).tolist():
        inside = items & ~stepping & (lines.item == code)
        counted = ground.counted(inside)
        if not code or counted.sum() < MANY * ground.window.steps:
            continue
        kinds = len(np.unique(ground.trace.name[work.row[np.isin(work.enqueued, np.flatnonzero(inside))]]))
        if counted.sum() >= ALIKE * max(1, kinds) * (counted & visits).sum():
            name = f"{ground.trace.places[lines.pairs[code][0]].shortly} launches once"
            advice = "`torch._foreach_*`, one `torch.cat` for many, or a fused operator"
            groups.append((name, advice, Effort.LINES, 1.0, OPERATOR, inside))
    gaps, cost = ground.times
    groups = [group for group in groups if ground.counted(group[-1]).sum() >= MANY * ground.window.steps]
    groups.sort(key=lambda group: -float((np.minimum(gaps, OPERATOR) + cost)[ground.counted(group[-1])].sum()))
    for name, advice, effort, more, upto, inside in groups[:LINES]:
        changes = _one_launch(ground, inside, upto)
        of = np.flatnonzero(np.isin(work.enqueued, np.flatnonzero(inside)))
        later = of[np.isin(of - 1, of)]
        floor = shortest(ground.trace, work.row)
        fused, gone = work.duration.copy(), work.duration.copy()
        fused[later] = (fused[later] - floor[later]).clip(0)
        fused[of] /= more
        gone[later] = 0.0
        chained = np.zeros(len(fused), bool)
        chained[later] = True
        likely = ground.saved(replace(changes, duration=fused, chained=chained))
        most = ground.saved(replace(changes, duration=gone, chained=chained))
        spent = np.where(ground.counted(inside), gaps + cost, 0.0)
        host = float(np.minimum(spent, upto + cost).sum()) / ground.window.steps
        low, worked = ground.saved(changes), _worked(ground, of)
        bound = max(most, host + worked)
        where = ground.dearest(spent)
        yield ground.row(
            name,
            likely,
            low,
            most,
            bound,
            lines=where,
            advice=advice,
            host=host,
            device=worked,
            effort=effort,
            word="launches" if upto == OPERATOR else "optimizer",
        )


def _loader(ground: Ground) -> Iterator[WhatIf]:
    """The loader is not waited for."""
    gaps, _ = ground.times
    if not ground.counted(ground.loading > 0).any():
        return
    first = ground.first_load
    late = np.where(first, 0.0, ground.loading)
    saved, most = (ground.saved(Changes(gaps=(gaps - loading).clip(0))) for loading in (late, ground.loading))
    took = float(ground.loading[first].sum())
    apart = f"; the first batch, {about_ms(took)}, aside: nothing runs yet beside which it could be loaded"
    yield ground.row(
        "the loader is never late",
        saved,
        0.5 * saved,
        most,
        most,
        lines=ground.dearest(np.where(ground.counted(late > 0), late, 0.0)),
        advice=_more_workers(ground) + apart * bool(took),
        effort=Effort.WORD,
        word="loader",
    )


def _more_workers(ground: Ground) -> str:
    """What makes a loader faster, by which of PyTorch's iterators it has: it loads in this process, or in others."""
    loaders = {name for name in ground.trace.names if LOADER.search(name)}
    if any("_MultiProcessing" in name for name in loaders):
        return "more `num_workers`, `prefetch_factor=...`, or less work for each sample"
    if any("_SingleProcess" in name for name in loaders):
        return "`num_workers=...` where the loader is made, or in the call of a library that makes it: no other process loads"
    return "`DataLoader(num_workers=..., pin_memory=True, persistent_workers=True)`, or less work for each sample"


def _copies(ground: Ground) -> Iterator[WhatIf]:
    """Copies to the device are pinned and asynchronous."""
    left = unpriced(ground.graph)
    uploads = sorted(ground.event_graph.uploads - left)
    if not uploads:
        return
    saved = ground.saved(freed=uploads)
    places = dict.fromkeys(ground.graph.reads[n].place for n in uploads)
    yield ground.row(
        "copies are pinned and asynchronous",
        saved,
        0.0,
        saved,
        saved,
        lines=tuple(place for place in places if place is not None)[:NAMED],
        advice="`DataLoader(pin_memory=True)` and `.to(device, non_blocking=True)`",
        effort=Effort.WORD,
        word="copies",
    )


def _device(ground: Ground) -> Iterator[WhatIf]:
    """Kernels take half as long; the network between devices does not. Nothing where launches may have waited, or not."""
    if ground.event_graph.full.unclear:
        return
    work = ground.event_graph.device_work
    between = np.array([bool(COLLECTIVE.search(name)) for name in ground.trace.names], bool)[
        ground.trace.name[work.row]
    ]
    kernels = (ground.trace.kind[work.row] == Kind.KERNEL) & ~between

    def saved(times: float, of: Truths = kernels) -> float:
        return ground.saved(Changes(duration=np.where(of, work.duration * times, work.duration)))

    halved = saved(0.5)
    kept = _kept(ground, saved)
    if halved >= HOLDS * ground.step:
        advice = "the device is what holds it up: lower precision, fewer operations, a faster device"
    elif _worked(ground, np.flatnonzero(between)) > APART * ground.step:
        advice = "the exchange with other ranks is what holds it up, and no faster device shortens that"
    elif kept:
        advice = f"the host is what holds it up: up to {kept:g} times the batch, a step takes no longer"
    else:
        longer = max(0.0, -saved(LARGER[0])) / ground.step
        advice = (
            f"host and device hold it up by turns: with {LARGER[0]:g} times the batch a step takes {longer:.0%} longer"
        )
    everything = saved(0.5, ~between)
    own = min(ground.busy, _worked(ground, np.flatnonzero(~between)))
    name = "the device is twice as fast"
    yield replace(ground.row(name, halved, halved, everything, everything, advice=advice, device=own), bought=True)


def _kept(ground: Ground, saved: Callable[[float], float]) -> float:
    """The most times the device's work with which a step takes no longer, within what a replay may be off; 0 where none is."""
    within = max(WORTH, ground.trusted.error or 0.0) * ground.step
    kept = 0.0
    for times in LARGER:
        if -saved(times) > within:
            break
        kept = times
    return kept


WHAT_IFS: tuple[Callable[[Ground], Iterator[WhatIf]], ...] = (
    _launches,
    _one_line,
    passes_at_once,
    _loader,
    _copies,
    host_lines,
    host_functions,
)
