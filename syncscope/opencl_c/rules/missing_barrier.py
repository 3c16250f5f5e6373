"""Local memory that one item writes and another reads, or reads and another overwrites, without a barrier in between.

What happens
------------
The items of a group run in an order of the device's own. Without a barrier one of them reads before the other has written: the
result is wrong on some devices, sizes and runs. Also the other way round: in a loop, the next round's write comes before the
last reader of this one.

Told with high confidence is what meets on a device of any width. With low: what was meant for items in step, as
`if (l < 16) x[l] += x[l + 16]`, what stands in a function that others call, and indices that are computed.

What to do
----------
`barrier(CLK_LOCAL_MEM_FENCE)` between writing and reading, and between the last read and the next write. Items of one warp or
wavefront do not run in step either, unless the standard's sub-groups say so.

When a fix pays
---------------
Always. A barrier costs some ten nanoseconds; with `reqd_work_group_size` of one sub-group, `sub_group_barrier` costs less.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from syncscope.model.example import KernelExample, Shows
from syncscope.model.finding import Severity
from syncscope.model.ops import Family
from syncscope.opencl_c import Sighting, seen
from syncscope.opencl_c.divergence import REQUIRED
from syncscope.opencl_c.facts import KernelProgram, Routine
from syncscope.opencl_c.local_memory import Access, LocalMemory
from syncscope.opencl_c.nodes import assigned, base
from syncscope.opencl_c.text import Node, part, said, sign, walk

SEVERITY = Severity.WARNING
FAMILY = Family.KERNEL
SEEN_AS = ()
# who knows that items are in step
IN_STEP = re.compile(r"sub_?group|sub_?wave|wave_?(?:front|size)|warp|simd", re.IGNORECASE)
STEP = 64  # items, at most, that some devices run in step
EXAMPLES = (
    KernelExample(
        """
        __kernel void reverse(__global float *x) {
            __local float part[64];
            int l = get_local_id(0);
            part[l] = x[get_global_id(0)];
            x[get_global_id(0)] = part[63 - l];  // !
        }
        """,
        instead="""
        __kernel void reverse(__global float *x) {
            __local float part[64];
            int l = get_local_id(0);
            part[l] = x[get_global_id(0)];
            barrier(CLK_LOCAL_MEM_FENCE);
            x[get_global_id(0)] = part[63 - l];
        }
        """,
        shows=Shows.WRONG,
        run="""
        x = np.random.rand(64).astype(np.float32)  # local memory may still hold what an earlier run left there
        backwards = x[::-1].tolist()
        run("reverse", 64, 64, x)
        right = x.tolist() == backwards
        """,
    ),
    KernelExample(
        """
        __kernel void turned(__global float *x) {
            __local float tile[8][8];
            int column = get_local_id(0), row = get_local_id(1);
            tile[row][column] = x[8 * row + column];
            x[8 * row + column] = tile[column][row];  // !
        }
        """,
        instead="""
        __kernel void turned(__global float *x) {
            __local float tile[8][8];
            int column = get_local_id(0), row = get_local_id(1);
            tile[row][column] = x[8 * row + column];
            barrier(CLK_LOCAL_MEM_FENCE);
            x[8 * row + column] = tile[column][row];
        }
        """,
        shows=Shows.WRONG,
        run="""
        x = np.random.rand(8, 8).astype(np.float32)
        turned = x.T.tolist()
        run("turned", (8, 8), (8, 8), x)
        right = x.tolist() == turned
        """,
    ),
    KernelExample(
        """
        __kernel void scaled(__global float *x, __global const float *scales) {
            __local float scale;
            if (get_local_id(0) == 63)
                scale = scales[get_group_id(0)];
            x[get_global_id(0)] = scale;  // !
        }
        """,
        instead="""
        __kernel void scaled(__global float *x, __global const float *scales) {
            __local float scale;
            if (get_local_id(0) == 63)
                scale = scales[get_group_id(0)];
            barrier(CLK_LOCAL_MEM_FENCE);
            x[get_global_id(0)] = scale;
        }
        """,
        shows=Shows.WRONG,
        run="""
        x, scales = np.zeros(64, np.float32), np.random.rand(1).astype(np.float32)
        run("scaled", 64, 64, x, scales)
        right = x.tolist() == scales.tolist() * 64
        """,
    ),
    KernelExample(
        """
        __kernel void rows(__global float *sums, __global const float *x, int rounds) {
            __local float part[64];
            int l = get_local_id(0);
            float sum = 0;
            for (int r = 0; r < rounds; r++) {
                part[l] = x[r * 64 + l];  // !
                barrier(CLK_LOCAL_MEM_FENCE);
                for (int k = 0; k < 64; k++)
                    sum += part[k];
            }
            sums[get_global_id(0)] = sum;
        }
        """
    ),
    KernelExample(
        """
        __kernel void own(__global float *x) {
            __local float part[256];
            int l = get_local_id(0);
            for (int k = 0; k < 4; k++)
                part[4 * l + k] = x[4 * l + k];
            x[4 * l] = part[4 * l] + part[4 * l + 1];
        }
        """
    ),
)


def find(program: KernelProgram) -> Iterator[Sighting]:
    for routine in program.routines:
        shared = [v for v in routine.variables.values() if v.space == "local"]
        if shared:
            arrays = {v.name for v in shared if v.sizes or v.is_pointer}
            found = LocalMemory(program, routine, arrays, {v.name for v in shared} - arrays)
            found.visit(routine.body, 0)
            in_step = IN_STEP.search(program.written(routine.node)) is not None
            told: dict[int, int] = {}  # one barrier too few is told once: the second node of each pair by the first
            for before, after in found.races.values():
                if before.node.id in told or told.get(after.node.id) == before.node.id:
                    continue
                told[before.node.id] = after.node.id
                if before.index == after.index or not {before.key, after.key} <= found.read & found.written:
                    yield sighting(program, routine, before, after, in_step)


def is_sure(program: KernelProgram, routine: Routine, before: Access, after: Access, meant: bool) -> bool:
    """Whether the elements are known well enough to say that two items meet, on a device of any width.

    Not in a function, whose callers may have a barrier; nor where items were meant to run in step: what is volatile, a group or
    a guard of at most so many, `x[l] += x[l + 16]`; nor where an index is computed, or two of unknown distance differ.
    """
    required = REQUIRED.search(routine.head)
    sizes = [program.value(size, routine.node.start_byte) for size in required[1].split(",")] if required else []
    in_step = 0 < math.prod(size or STEP + 1 for size in sizes) <= STEP if sizes else False
    if not routine.is_kernel or routine.variables[after.array].is_volatile or in_step or meant:
        return False
    shared = set(before.guards) & set(after.guards)
    # `if (l > i)`, and an index up to i: whom it lets in may meet nobody
    if shared and not any(is_halved(program, routine, guard) for guard in shared):
        return False
    for guard in {*before.guards, *after.guards}:
        compared = (
            n for n in walk(part(guard, "condition")) if n.type == "binary_expression" and sign(n) in ("<", "<=")
        )
        if any((program.number(part(n, "right")) or STEP + 1) <= STEP for n in compared):
            return False
    apart = [access.summands - access.terms - other.summands for access, other in ((before, after), (after, before))]
    distance = {program.value(term) for term in apart[0] | apart[1]}
    strides = {2**k for k in range(1, 9)}
    return before.by_id and after.by_id and not (apart[0] and apart[1] and None in distance) and not distance & strides


def is_halved(program: KernelProgram, routine: Routine, guard: Node) -> bool:
    """Whether a bound begins at the size of the group, and another loop's round has another: `s = get_local_size(0) / 2`."""
    bounds = {said(n) for n in program.inside(part(guard, "condition"), "identifier")}
    made = map(assigned, program.inside(routine.body, "init_declarator", "assignment_expression"))
    return any(base(target) in bounds and "get_local_size" in said(value) for target, value in made)


def sighting(program: KernelProgram, routine: Routine, before: Access, after: Access, in_step: bool) -> Sighting:
    """A race in words."""
    what, then = program.quote(before.node), program.quote(after.node)
    line = before.node.start_point[0] - after.node.start_point[0]
    where = "in the round before" if line >= 0 else f"{-line} line{'s' * (line < -1)} above"
    said_first = "written" if before.writes else "read"
    verb = "reads" if before.writes else "overwrites"
    message = f"{then} {verb} local memory without a barrier since {what} was {said_first} by another item, {where}"
    return seen(after.node, message, 3 if is_sure(program, routine, before, after, in_step) else 1)
