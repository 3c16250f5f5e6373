"""What the device did for each `nn.Module`: by the calls of modules around the launch of its work.

```text
module   [model ........[layer ....].......]
host       [launch a]     [launch b]          a is of `model`, b of `model / layer`; both are in the time of `model`
```

torch.profiler records the calls of modules with `with_stack=True`, a recording of ours with `operators=True`. Both know the
forward pass only: work that was launched in no module, that of a backward pass among it, is not counted.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.waits import Launches
from syncscope.model.trace import Kind, Trace
from syncscope.model.work import ModuleLine

PREFIX = "nn.Module: "


def modules(trace: Trace, launched: Launches, kept: NDArray[np.bool_], number: int) -> tuple[ModuleLine, ...]:
    """The modules in whose calls the kept work (a mask of the trace) was launched, per step of so many, in their order."""
    named = np.array([name.startswith(PREFIX) for name in trace.names], bool)
    spans = trace.rows(Kind.PYTHON, Kind.ANNOTATION)
    spans = spans[named[trace.name[spans]]]
    chosen = (launched.call >= 0) & kept[launched.row]
    rows, calls = launched.row[chosen], launched.call[chosen]
    own: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
    seen: dict[tuple[str, ...], int] = {}
    for lane in np.unique(trace.lane[spans]).tolist():
        paths, since, at = _running(trace, spans[trace.lane[spans] == lane])
        for path in paths:
            seen.setdefault(path, len(seen))
        mine = np.flatnonzero(trace.lane[calls] == lane)
        position = np.searchsorted(since, trace.start[calls[mine]], side="right") - 1
        found = np.where(position >= 0, at[np.maximum(position, 0)], -1)
        times = np.bincount(found[found >= 0], trace.duration[rows[mine]][found >= 0], len(paths))
        counts = np.bincount(found[found >= 0], minlength=len(paths))
        for path, time, count in zip(paths, times.tolist(), counts.tolist(), strict=True):
            own[path][0] += time
            own[path][1] += count
    total: dict[tuple[str, ...], float] = defaultdict(float)
    for path, (time, _) in own.items():
        for depth in range(1, len(path) + 1):
            total[path[:depth]] += time
    return tuple(
        ModuleLine(path, own[path][1] / number, own[path][0] / number, total[path] / number)
        for path in sorted(seen, key=seen.__getitem__)
        if total[path] > 0
    )


def _running(
    trace: Trace, spans: NDArray[np.intp]
) -> tuple[list[tuple[str, ...]], NDArray[np.int64], NDArray[np.int64]]:
    """The paths of the modules that one thread calls, and which of them (its number, -1 is none) runs from which time on."""
    numbers: dict[tuple[str, ...], int] = {}
    since, at = [], []
    stack: list[tuple[int, tuple[str, ...]]] = []  # ends and paths of those that run

    def until(time: int) -> None:
        while stack and stack[-1][0] <= time:
            end, _ = stack.pop()
            since.append(end)
            at.append(numbers[stack[-1][1]] if stack else -1)

    order = spans[np.lexsort((-trace.duration[spans], trace.start[spans]))]
    for start, end, name in zip(
        trace.start[order].tolist(), trace.end[order].tolist(), trace.name[order].tolist(), strict=True
    ):
        until(start)
        above = stack[-1][1] if stack else ()
        path = (*above, trace.names[name].removeprefix(PREFIX))
        numbers.setdefault(path, len(numbers))
        stack.append((end, path))
        since.append(start)
        at.append(numbers[path])
    until(1 << 62)
    return list(numbers), np.array(since, np.int64), np.array(at, np.int64)
