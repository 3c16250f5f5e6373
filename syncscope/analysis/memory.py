"""How much of each device's memory was in use over time, when that was the most, and whose it was then.

```text
bytes            ____
         ______/    \\__      <- high-water mark: what is in use here, by the line that had allocated it
before _/              \\___
       a   b    c   c   a     allocations and frees
```
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from syncscope.analysis.nesting import Nesting
from syncscope.analysis.reads import MODULE, carries
from syncscope.model.memory import INTEGERS, Allocations, Held, MemoryUse
from syncscope.model.report import Step
from syncscope.model.source import Place
from syncscope.model.trace import Kind, Trace

POINTS = 4_000  # of the curve
LOOKED_UP = 20_000  # allocations whose line is looked for among what ran around them, the largest first
Key = tuple[Place | None, str, str]
NOBODY: Key = (None, "", "")


def memory_uses(trace: Trace, steps: Sequence[Step] = ()) -> tuple[MemoryUse, ...]:
    """The memory of each device of which the recording has allocations."""
    if trace.memory is None or not len(trace.memory):
        return ()
    found, around = trace.memory, Nesting(trace, Kind.PYTHON, Kind.OP, Kind.ANNOTATION)
    devices = np.unique(found.device).tolist()
    return tuple(_of_device(number, found.take(found.device == number), trace, around, steps) for number in devices)


def _of_device(device: int, part: Allocations, trace: Trace, around: Nesting, steps: Sequence[Step]) -> MemoryUse:
    exact = bool((part.total >= 0).all())
    if not exact:
        total = np.cumsum(part.bytes)
        part = replace(part, total=total - min(0, int(total.min())))  # what is freed was there
    before = max(0, int(part.total[0] - part.bytes[0]))
    top = int(np.argmax(part.total))
    peak = max(before, int(part.total[top]))
    by: dict[Key, list[int]] = {NOBODY: [before, 0]}
    made_by = NOBODY
    if peak > before:
        alive = _alive(part, top)
        of = _owners(part, np.append(alive, top), trace, around)
        made_by = of[-1]
        by = defaultdict(lambda: [0, 0])
        for row, key in zip(alive.tolist(), of, strict=False):
            by[key][0] += int(part.bytes[row])
            by[key][1] += 1
        if (rest := peak - sum(size for size, _ in by.values())) > 0 and exact:
            by[NOBODY][0] += rest
    at = int(part.time[top if peak > before else 0])
    held = sorted((Held(*key, size, count) for key, (size, count) in by.items() if size), key=lambda one: -one.bytes)
    made = next((one for one in held if (one.place, one.function, one.operator) == made_by), Held(*made_by, 0, 0))
    return MemoryUse(
        device=device,
        before=before,
        peak=peak,
        peak_at=at,
        step=next((step.index for step in steps if step.start <= at < step.end), -1),
        made_by=replace(made, bytes=int(part.bytes[top]) if peak > before else 0, count=1),
        held=tuple(held),
        reserved=max(0, int(part.reserved.max())),
        allocations=int((part.bytes > 0).sum()),
        exact=exact,
        curve=_curve(part, before),
    )


def _alive(part: Allocations, top: int) -> NDArray[np.intp]:
    """The allocations up to a row that had not been freed by then: the last of their address."""
    address = part.address[: top + 1]
    if not len(address) or (address < 0).any():
        return np.zeros(0, np.intp)
    last = len(address) - 1 - np.unique(address[::-1], return_index=True)[1]
    return np.sort(last[part.bytes[last] > 0])


def _owners(part: Allocations, rows: NDArray[np.intp], trace: Trace, around: Nesting) -> list[Key]:
    """Whose each allocation is: its line as recorded, else the user's function that ran then, else the outermost operator."""
    largest = set(rows[np.argsort(-part.bytes[rows], kind="stable")[:LOOKED_UP]].tolist())
    found: list[Key] = []
    for row in rows.tolist():
        place, lane, at = (int(column[row]) for column in (part.place, part.lane, part.time))
        if place >= 0:
            found.append((trace.places[place], "", ""))
        elif row in largest and lane >= 0:
            found.append(_running(trace, around.around(lane, at, at)))
        else:
            found.append(NOBODY)
    return found


def _running(trace: Trace, chain: Iterable[int]) -> Key:
    """The innermost function of the user's among events (outermost first) and its line, else the outermost operator."""
    operator, own = "", NOBODY
    for row in chain:
        name, place, kind = trace.names[trace.name[row]], int(trace.place[row]), trace.kind[row]
        if kind == Kind.PYTHON and place >= 0 and not carries(trace.places[place].path) and not MODULE.match(name):
            own = (trace.places[place], name.rpartition(": ")[2].removesuffix("()"), "")
        if kind == Kind.OP and not operator:
            operator = name
    return own if own is not NOBODY else (None, "", operator)


def _curve(part: Allocations, before: int) -> INTEGERS:
    """What was in use from each of some times on; of each stretch of a long recording the most, and the last."""
    time, total = part.time, part.total
    size = -(-len(time) // (POINTS // 2))
    if size > 1:
        edges = np.arange(0, len(time), size)
        most = np.array([first + int(np.argmax(total[first : first + size])) for first in edges.tolist()])
        kept = np.unique(np.concatenate([most, np.minimum(edges + size, len(time)) - 1]))
        time, total = time[kept], total[kept]
    return np.stack([np.append(time[0], time), np.append(before, total)], axis=1)
