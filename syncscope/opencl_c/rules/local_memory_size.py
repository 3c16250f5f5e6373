"""More local memory in a kernel than devices must have: 32 KiB.

What happens
------------
`CL_DEVICE_LOCAL_MEM_SIZE` is at least 32 KiB in the full profile. A kernel that declares more fails to build, or to be
enqueued, on a device that has no more; most GPUs have 48 or 64 KiB. A test on a CPU does not show it: local memory is ordinary
memory there, and PoCL runs kernels with 30 times what it says it has. Also where it fits, a group that takes half of what there
is leaves room for one more on the same compute unit, and nothing hides its waits.

What to do
----------
Smaller tiles, two passes, or registers; or ask `CL_DEVICE_LOCAL_MEM_SIZE` and choose the tile before the kernel is built.

When a fix pays
---------------
Where the program runs on devices that are not your own.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from syncscope.model.example import KernelExample, Shows
from syncscope.model.finding import Severity
from syncscope.model.ops import Family
from syncscope.opencl_c import Sighting, seen
from syncscope.opencl_c.facts import KernelProgram, Variable
from syncscope.opencl_c.text import part, said

SEVERITY = Severity.WARNING
FAMILY = Family.KERNEL
SEEN_AS = ()
LEAST = 32 * 1024  # bytes that every device of the full profile has
MOST = 64 * 1024  # bytes that most GPUs have at the most
EXAMPLES = (
    KernelExample(
        """
        #define TILE 128

        __kernel void transpose(__global float *x) {
            __local float tile[TILE][TILE + 1];  // !
            tile[get_local_id(0)][0] = x[get_global_id(0)];
            barrier(CLK_LOCAL_MEM_FENCE);
            x[get_global_id(0)] = tile[63 - get_local_id(0)][0];
        }
        """,
        instead="""
        #define TILE 64

        __kernel void transpose(__global float *x) {
            __local float tile[TILE][TILE + 1];
            tile[get_local_id(0)][0] = x[get_global_id(0)];
            barrier(CLK_LOCAL_MEM_FENCE);
            x[get_global_id(0)] = tile[63 - get_local_id(0)][0];
        }
        """,
        shows=Shows.UNSEEN,
        run="""
        x = np.arange(64, dtype=np.float32)
        run("transpose", 64, 64, x)
        right = x.tolist() == list(range(63, -1, -1))
        """,
    ),
)


def find(program: KernelProgram) -> Iterator[Sighting]:
    for routine in program.kernels():
        arrays = [v for v in routine.variables.values() if v.space == "local" and v.sizes and not v.is_pointer]
        sizes = {v.name: size for v in arrays if (size := size_of(program, v)) is not None}
        total = sum(sizes.values())
        if total > LEAST:
            largest = max(arrays, key=lambda v: sizes.get(v.name, 0))
            message = f"the kernel `{routine.name}` declares {total:,} bytes of local memory; devices must have {LEAST:,} only"
            yield seen(largest.node, message, 3 if total > MOST else 2)


def size_of(program: KernelProgram, variable: Variable) -> int | None:
    """The bytes of an array; None where they are not known."""
    element = program.size_of(said(part(variable.node, "type")))
    sizes = [program.number(size) for size in variable.sizes]
    return None if element is None or None in sizes else element * prod(size or 0 for size in sizes)
