"""How much of the device's memory bandwidth and arithmetic each operator reaches, and which of the two bounds it.

Operations and bytes come from the shapes that the profiler recorded (`record_shapes=True`), or from what the recorder wrote
of a kernel itself (`flops` and `bytes` in its detail). Bytes are the least that must move: every input read once, the output
written once. Operators whose operations do not follow from their inputs' shapes (convolutions: strides are not recorded)
have bytes only.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from syncscope.analysis.nesting import Nesting
from syncscope.analysis.steps import steps
from syncscope.analysis.waits import Launches, launches
from syncscope.model.trace import Kind, Trace

Shape = list[int]
SIZES = {  # bytes of an element, by the names that torch and C++ give
    **dict.fromkeys(("double", "long int", "long", "int64", "float64"), 8),
    **dict.fromkeys(("float", "int", "float32", "int32"), 4),
    **dict.fromkeys(("c10::Half", "c10::BFloat16", "short int", "short", "half", "bfloat16"), 2),
    **dict.fromkeys(("bool", "unsigned char", "signed char", "c10::Float8_e4m3fn", "c10::Float8_e5m2"), 1),
}

PARTS = re.compile(r"embedding|index|gather|scatter|slice|select|cache")  # these touch a part of their inputs only


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What the device can do at best: bytes and floating-point operations per second."""

    bandwidth: float
    flops: float


@dataclass(frozen=True, slots=True)
class Row:
    """Work of one operator on one set of shapes. `time` is ns of the device; `flops` and `bytes` of all of it together.

    `bound` is "memory" or "arithmetic", and `reached` the share of that ceiling; "" and 0 where nothing is known.
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


@dataclass(frozen=True, slots=True)
class Roofline:
    """The operators by device time, each step, and the whole recording.

    The `time` of a step is its length, so its shares are of what the device could have done in it. `known` is the share of
    device time that has bytes or flops.
    """

    rows: tuple[Row, ...]
    steps: tuple[Row, ...]
    total: Row
    known: float


def roofline(trace: Trace, ceilings: Ceilings) -> Roofline:
    """Group the device's work by operator and shapes, and hold each group against the ceilings."""
    launched = launches(trace)
    ops = _operators(trace, launched)
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, op in zip(launched.row.tolist(), ops, strict=True):
        groups[_group(trace, row, op)].append(row)
    rows = [_row(trace, name, shapes, members, ceilings) for (name, shapes), members in groups.items()]
    rows.sort(key=lambda r: -r.time)
    time = sum(r.time for r in rows)
    known = sum(r.time for r in rows if r.bound)
    total = _judged(
        "all", "", len(launched.row), time, sum(r.flops for r in rows), sum(r.bytes for r in rows), ceilings
    )
    return Roofline(tuple(rows), _steps(trace, launched, ops, ceilings), total, known / time if time else 0.0)


def _steps(trace: Trace, launched: Launches, ops: list[int], ceilings: Ceilings) -> tuple[Row, ...]:
    """What the operators that began in each step did, over the length of the step."""
    unique = sorted({op for op in ops if op >= 0})
    starts = trace.start[unique] if unique else trace.start[:0]
    work = {op: _work(trace.names[trace.name[op]], _detail(trace, op)) for op in unique}
    found = []
    for step in steps(trace, launched):
        first, last = starts.searchsorted([step.start, step.end]).tolist()
        inside = unique[first:last]
        flops, moved = sum(work[op][0] for op in inside), sum(work[op][1] for op in inside)
        found.append(_judged(f"step {step.index}", "", len(inside), step.end - step.start, flops, moved, ceilings))
    return tuple(found)


def _operators(trace: Trace, launched: Launches) -> list[int]:
    """The innermost operator that launched each work: by External id, else by what encloses the call; -1 is none."""
    op_rows = trace.rows(Kind.OP)
    by_number = {number: row for row, number in zip(op_rows.tolist(), trace.external[op_rows].tolist(), strict=True)}
    nesting = Nesting(trace, Kind.OP)
    found = []
    for row, call in zip(launched.row.tolist(), launched.call.tolist(), strict=True):
        number = int(trace.external[call if call >= 0 else row])
        op = by_number.get(number, -1) if number >= 0 else -1
        if op < 0 and call >= 0:
            start = int(trace.start[call])
            chain = nesting.around(int(trace.lane[call]), start, start + int(trace.duration[call]))
            op = chain[-1] if chain else -1
        found.append(op)
    return found


def _group(trace: Trace, row: int, op: int) -> tuple[str, str]:
    if trace.kind[row] != Kind.KERNEL or op < 0:
        return trace.names[trace.name[row]], _detail(trace, row)
    return trace.names[trace.name[op]], _detail(trace, op)


def _detail(trace: Trace, row: int) -> str:
    return trace.details[trace.detail[row]] if trace.detail[row] >= 0 else ""


def _row(trace: Trace, name: str, detail: str, members: list[int], ceilings: Ceilings) -> Row:
    time = int(trace.duration[members].sum())
    calls = len(set(trace.external[members].tolist())) if trace.external[members[0]] >= 0 else len(members)
    if trace.kind[members[0]] != Kind.KERNEL:  # a copy or fill: a copy within the device reads and writes
        moved = float(trace.bytes[members].clip(0).sum())
        within = "DtoD" in name or trace.kind[members[0]] == Kind.FILL
        return _judged(name, "", len(members), time, 0.0, moved * ("DtoD" in name) + moved if within else 0.0, ceilings)
    flops, moved = _work(name, detail)
    shapes = [d for d in _known(detail).get("Input Dims", []) if isinstance(d, list)]
    text = " ".join("x".join(map(str, s)) for s in shapes if s and _plain(s))
    return _judged(name, text, calls, time, flops * calls, moved * calls, ceilings)


def _known(detail: str) -> dict[str, Any]:
    known = json.loads(detail) if detail else {}
    return known if isinstance(known, dict) else {}


def _work(name: str, detail: str) -> tuple[float, float]:
    """Operations and bytes of one call: as recorded, else by its shapes."""
    known = _known(detail)
    if "flops" in known or "bytes" in known:
        return float(known.get("flops", 0)), float(known.get("bytes", 0))
    shapes = [d if isinstance(d, list) else [] for d in known.get("Input Dims", [])]
    types = [str(t) for t in known.get("Input type", [])]
    return operations(name, shapes), traffic(name, shapes, types)


def _judged(name: str, shapes: str, count: int, time: int, flops: float, moved: float, ceilings: Ceilings) -> Row:
    seconds = time / 1e9
    by_memory = moved / ceilings.bandwidth / seconds if seconds else 0.0
    by_flops = flops / ceilings.flops / seconds if seconds else 0.0
    reached = max(by_memory, by_flops)
    bound = "" if not reached else "arithmetic" if by_flops > by_memory else "memory"
    return Row(name, shapes, count, time, flops, moved, by_memory, by_flops, bound, reached)


def _matrix(a: Shape, b: Shape) -> float:
    return 2.0 * math.prod(a) * b[-1] if len(a) >= 2 and len(b) >= 2 else 0.0


def _linear(a: Shape, b: Shape) -> float:
    return 2.0 * math.prod(a) * b[0] if a and len(b) == 2 else 0.0


def _attention(q: Shape, k: Shape) -> float:
    return 4.0 * math.prod(q) * k[-2] if len(q) == len(k) == 4 else 0.0


OPERATIONS: dict[str, tuple[Callable[[Shape, Shape], float], int]] = {  # and which input is the first factor
    "mm": (_matrix, 0),
    "bmm": (_matrix, 0),
    "addmm": (_matrix, 1),
    "baddbmm": (_matrix, 1),
    "linear": (_linear, 0),
    "_scaled_dot_product_flash_attention": (_attention, 0),
    "_scaled_dot_product_efficient_attention": (_attention, 0),
    "_flash_attention_forward": (_attention, 0),
}


def operations(op: str, shapes: list[Shape]) -> float:
    """Floating-point operations of one call, 0 where they do not follow from the shapes."""
    known = OPERATIONS.get(op.removeprefix("aten::"))
    if known is None:
        return 0.0
    count, first = known
    if len(shapes) < first + 2 or not all(_plain(s) for s in shapes[first : first + 2]):
        return 0.0
    return count(*shapes[first : first + 2])


def traffic(op: str, shapes: list[Shape], types: list[str]) -> float:
    """The least bytes of one call: every input tensor once and the output once; 0 where that cannot be known."""
    if not op.startswith("aten::") or PARTS.search(op):
        return 0.0
    sized = [(s, SIZES[t]) for s, t in zip(shapes, types, strict=False) if t in SIZES and s and _plain(s)]
    if not sized:
        return 0.0
    total = float(sum(math.prod(s) * size for s, size in sized))
    known = OPERATIONS.get(op.removeprefix("aten::"))
    if known is None:
        return total + max(math.prod(s) * size for s, size in sized)  # pointwise: as large as the largest
    first = known[1]
    if len(shapes) < first + 2:
        return total
    a, b = shapes[first], shapes[first + 1]
    if not (_plain(a) and _plain(b)) or not a or not b:
        return total
    out = math.prod(a) if known[0] is _attention else math.prod(a[:-1]) * (b[0] if known[0] is _linear else b[-1])
    return total + out * sized[0][1]


def _plain(shape: Shape) -> bool:
    return all(isinstance(n, int) for n in shape)
