"""How much of the device's memory bandwidth and arithmetic each operator reaches, and which of the two bounds it.

Operations and bytes come from the shapes that the profiler or our recorder wrote (`work`), or from what a recorder wrote of
a kernel itself (`flops` and `bytes` in its detail).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from syncscope.analysis.arithmetic import Arithmetic, arithmetic_of, fewer_operations, tensors_of
from syncscope.analysis.event_graph import EventGraph, event_graph_of
from syncscope.analysis.nesting import Nesting
from syncscope.analysis.op_costs import convolutions, op_call, operations, parts_of_backward, traffic
from syncscope.analysis.waits import Launches, launches
from syncscope.model.detail import Detail
from syncscope.model.report import step_lengths
from syncscope.model.trace import Kind, Trace

OF_PARTS = "operators in it reach more than all, for reasons of their own"


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What the device can do at best: bytes and floating-point operations per second.

    `flops_tf32` holds where kernels multiply float32 in TF32, `flops_16` for operators on tensors of 16 bits or fewer; 0 is
    the same as for all others.
    """

    bandwidth: float
    flops: float
    flops_16: float = 0
    flops_tf32: float = 0

    def of(self, arithmetic: Arithmetic) -> float:
        """The operations a second in such arithmetic."""
        special = {
            Arithmetic.TF32: self.flops_tf32,
            Arithmetic.THRICE: max(self.flops, self.flops_tf32 / 3),
            Arithmetic.HALF: self.flops_16,
        }
        return special.get(arithmetic, 0) or self.flops


@dataclass(frozen=True, slots=True)
class Row:
    """Work of one operator on one set of shapes. `time` is ns of the device; `flops` and `bytes` of all of it together.

    `bound` is "memory" or "arithmetic", and `reached` the share of that ceiling; "" and 0 where nothing is known. `kernels`
    are what ran on the device for it, by name, and their ns, the longest first. `arithmetic` is what it multiplies in, "" of
    what does not, and `why` says how it can reach more than all.
    """

    op: str
    shapes: str
    count: int
    time: int
    flops: float
    bytes: float
    bandwidth_share: float
    flops_share: float
    bound: str
    reached: float
    kernels: tuple[tuple[str, int], ...] = ()
    arithmetic: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Roofline:
    """The operators by device time, each step, and the whole recording.

    The `time` of a step is its length, as a report has it, so its shares are of what the device could have done in it. `known`
    is the share of the kernels' time that has bytes or operations, `counted` the share that has operations.
    """

    rows: tuple[Row, ...]
    steps: tuple[Row, ...]
    total: Row
    known: float
    counted: float


def roofline(trace: Trace, ceilings: Ceilings) -> Roofline:
    """Group the device's work by operator and shapes, and hold each group against the ceilings."""
    event_graph = event_graph_of(trace)
    launched = event_graph.launched
    ops, work = _operators(trace, launched), _OpCosts(trace, ceilings)
    rows = _rows(trace, launched, ops, work, ceilings)
    time, flops, moved = sum(r.time for r in rows), sum(r.flops for r in rows), sum(r.bytes for r in rows)
    arithmetic = sum(r.flops_share * r.time for r in rows) / 1e9
    total = _judged("all", "", len(launched.row), time, flops, moved, arithmetic, ceilings)
    kernels = [row for row in rows if row.kernels]
    busy = sum(r.time for r in kernels) or 1
    known = sum(r.time for r in kernels if r.bound) / busy
    counted = sum(r.time for r in kernels if r.flops) / busy
    return Roofline(rows, _steps(trace, event_graph, ops, work, ceilings), total, known, counted)


def by_operator(trace: Trace, ceilings: Ceilings) -> tuple[Row, ...]:
    """The operators alone, by device time."""
    launched = launches(trace)
    return _rows(trace, launched, _operators(trace, launched), _OpCosts(trace, ceilings), ceilings)


def _rows(trace: Trace, launched: Launches, ops: list[int], work: _OpCosts, ceilings: Ceilings) -> tuple[Row, ...]:
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    calls: dict[tuple[str, str], set[int]] = defaultdict(set)
    others: dict[str, list[int]] = defaultdict(list)  # copies and fills
    for row, op in zip(launched.row.tolist(), ops, strict=True):
        if trace.kind[row] != Kind.KERNEL:
            others[trace.names[trace.name[row]]].append(row)
            continue
        told = work.told(op) if op >= 0 else (trace.names[trace.name[row]], work.detail(row))
        groups[told].append(row)
        calls[told].add(op if op >= 0 else -1 - row)
    times = {told: _times(trace, rows) for told, rows in groups.items()}
    work.ran |= times
    kernels = [_row(work, *told, times[told], len(calls[told]), ceilings) for told in groups]
    moved = (_moved(trace, name, rows, ceilings) for name, rows in others.items())
    return tuple(sorted([*kernels, *moved], key=lambda row: -row.time))


class _OpCosts:
    """What the operators of a trace do: each different pair of name and detail is worked out once."""

    def __init__(self, trace: Trace, ceilings: Ceilings) -> None:
        self._trace = trace
        self._ceilings = ceilings
        self._nesting = Nesting(trace, Kind.OP)
        self._known: dict[tuple[str, str], tuple[float, float, float, str]] = {}
        # the kernels of each, and their ns, the longest first
        self.ran: dict[tuple[str, str], list[tuple[str, int]]] = {}
        rows = trace.rows(Kind.OP)
        pairs = np.unique(np.stack([trace.name[rows], trace.detail[rows]]), axis=1).T.tolist()
        texts = ((trace.names[name], trace.details[detail]) for name, detail in pairs if detail >= 0)
        self._made = convolutions(op_call(name, Detail.of(text)) for name, text in texts if "backward" in name)

    def detail(self, row: int) -> str:
        """An event's detail, "" without."""
        return self._trace.details[self._trace.detail[row]] if self._trace.detail[row] >= 0 else ""

    def told(self, op: int) -> tuple[str, str]:
        """Name and detail of an operator; the detail of what encloses it where its own says too little."""
        trace = self._trace
        name = trace.names[trace.name[op]]
        if not parts_of_backward(name):
            return name, self.detail(op)
        start = int(trace.start[op])
        around = self._nesting.around(int(trace.lane[op]), start, start + int(trace.duration[op]))
        outer = around[around.index(op) - 1] if op in around[1:] else op
        return name, self.detail(outer if "_backward" in trace.names[trace.name[outer]] else op)

    def of(self, name: str, detail: str) -> tuple[float, float, float, str]:
        """Operations and bytes of one call, as recorded, else by its shapes; seconds of the operations at their ceiling, and in
        which arithmetic that is, "" without operations."""
        if (name, detail) not in self._known:
            facts, ran = Detail.of(detail), self.ran.get((name, detail), [])
            one = replace(op_call(name, facts), touched=tensors_of(kernel for kernel, _ in ran))
            if facts.flops is not None or facts.bytes is not None:
                flops, moved = float(facts.flops or 0), float(facts.bytes or 0)
            else:
                made = self._made.get((tuple(one.shape(0)), tuple(one.shape(1))), ())
                one = replace(one, made=made)
                flops, moved = operations(one), traffic(one)
            arithmetic = arithmetic_of(ran, one.narrow)
            seconds = flops / self._ceilings.of(arithmetic)
            self._known[name, detail] = flops, moved, seconds, str(arithmetic) if flops else ""
        return self._known[name, detail]


def _steps(
    trace: Trace, event_graph: EventGraph, ops: list[int], work: _OpCosts, ceilings: Ceilings
) -> tuple[Row, ...]:
    """What the operators that began in each step, as it is marked, did, over the length that a report gives it."""
    kernels = (trace.kind[event_graph.launched.row] == Kind.KERNEL).tolist()
    unique = sorted({op for op, kernel in zip(ops, kernels, strict=True) if op >= 0 and kernel})
    starts = trace.start[unique] if unique else trace.start[:0]
    done = [work.of(*work.told(op)) for op in unique]
    found = []
    lengths = zip(event_graph.marked, step_lengths(event_graph.marked), step_lengths(event_graph.steps), strict=True)
    for step, asked, length in lengths:
        first, last = starts.searchsorted([step.end - asked, step.end]).tolist()
        part = done[first:last]
        flops, moved, arithmetic = (sum(one) for one in zip((0.0, 0.0, 0.0), *(one[:3] for one in part), strict=True))
        found.append(_judged(f"step {step.index}", "", last - first, length, flops, moved, arithmetic, ceilings))
    return tuple(found)


def _operators(trace: Trace, launched: Launches) -> list[int]:
    """The innermost operator that launched each work: by External id, else by what encloses the call; -1 is none."""
    op_rows = trace.rows(Kind.OP)
    by_number = {number: row for row, number in zip(op_rows.tolist(), trace.external[op_rows].tolist(), strict=True)}
    nesting = Nesting(trace, Kind.OP)
    found = []
    for row, enqueued in zip(launched.row.tolist(), launched.call.tolist(), strict=True):
        number = int(trace.external[enqueued if enqueued >= 0 else row])
        op = by_number.get(number, -1) if number >= 0 else -1
        if op < 0 and enqueued >= 0:
            start = int(trace.start[enqueued])
            chain = nesting.around(int(trace.lane[enqueued]), start, start + int(trace.duration[enqueued]))
            op = chain[-1] if chain else -1
        found.append(op)
    return found


def _times(trace: Trace, members: list[int]) -> list[tuple[str, int]]:
    """The names of these kernels and their ns, the longest first."""
    times: Counter[str] = Counter()
    for code, ns in zip(trace.name[members].tolist(), trace.duration[members].tolist(), strict=True):
        times[trace.names[code]] += ns
    return times.most_common()


def _row(work: _OpCosts, name: str, detail: str, times: list[tuple[str, int]], calls: int, ceilings: Ceilings) -> Row:
    *once, told = work.of(name, detail)
    flops, moved, arithmetic = (calls * one for one in once)
    shapes = [_written(dims) for dims in Detail.of(detail).input_dims if dims]
    row = _judged(name, " ".join(shapes), calls, sum(ns for _, ns in times), flops, moved, arithmetic, ceilings)
    row = replace(row, kernels=tuple(times), arithmetic=told)
    return replace(row, why=_why(row, ceilings)) if row.reached > 1 else row


def _why(row: Row, ceilings: Ceilings) -> str:
    """How an operator can reach more than its ceiling."""
    if row.bound == "memory":
        return "data stayed in a cache"
    if whose := fewer_operations(name for name, _ in row.kernels):
        return f"{whose}'s way takes fewer operations than are counted"
    if row.arithmetic != Arithmetic.FLOAT32 and ceilings.of(Arithmetic(row.arithmetic)) == ceilings.flops:
        return f"it multiplies in {row.arithmetic}, of which no ceiling is known"
    return "no reason is recorded: the ceiling is too low (--flops), or fewer operations are needed than are counted"


def _written(dims: Any) -> str:
    """`8x10x64x64`; of a list of tensors the first and how many more."""
    if isinstance(dims, list) and dims and isinstance(dims[0], list):
        return _written(dims[0]) + (f"+{len(dims) - 1}" if len(dims) > 1 else "")
    return "x".join(map(str, dims)) if isinstance(dims, list) else ""


def _moved(trace: Trace, name: str, members: list[int], ceilings: Ceilings) -> Row:
    """Copies and fills: within the device a copy reads and writes; to and from the host another wire is the limit."""
    size = float(trace.bytes[members].clip(0).sum())
    moved = 2 * size if "DtoD" in name else size if trace.kind[members[0]] == Kind.FILL else 0.0
    row = _judged(name, "", len(members), int(trace.duration[members].sum()), 0.0, moved, 0.0, ceilings)
    return replace(row, why=_why(row, ceilings)) if row.reached > 1 else row


def _judged(
    name: str, shapes: str, count: int, time: int, flops: float, moved: float, arithmetic: float, ceilings: Ceilings
) -> Row:
    """`arithmetic` is the seconds that the operations take at the ceiling of their dtype."""
    seconds = time / 1e9
    by_memory = moved / ceilings.bandwidth / seconds if seconds else 0.0
    by_flops = arithmetic / seconds if seconds else 0.0
    reached = max(by_memory, by_flops)
    bound = "" if not reached else "arithmetic" if by_flops > by_memory else "memory"
    why = OF_PARTS if reached > 1 else ""
    return Row(name, shapes, count, time, flops, moved, by_memory, by_flops, bound, reached, why=why)
