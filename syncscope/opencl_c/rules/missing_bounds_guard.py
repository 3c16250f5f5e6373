"""A kernel that indexes by its global id and never compares it, though its global size is rounded up.

What happens
------------
The global size must be a multiple of the work-group size, so it is rounded up, and the last group has items for which
there are no elements. Without `if (i < n)` they read and write behind the end: another buffer's memory on most devices, a
fault on some.

What to do
----------
Pass the number of elements and return where the id is past it (but before no barrier: see divergent-barrier); or leave
the local size to the driver (`None`, `NULL`) and the global size as it is.

When a fix pays
---------------
Always: a comparison costs nothing beside an access to memory. It is told where the kernel and its launch stand in one file;
from a kernel alone it cannot be seen, as many are launched over sizes that fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from syncscope.model.example import KernelExample, Shows
from syncscope.model.finding import Severity
from syncscope.model.ops import Family
from syncscope.opencl_c import Sighting, seen
from syncscope.opencl_c.facts import KernelProgram, Routine
from syncscope.opencl_c.nodes import COMPARISONS, assigned, base, callee
from syncscope.opencl_c.text import Node, part, said, sign

SEVERITY = Severity.WARNING
FAMILY = Family.KERNEL
SEEN_AS = ()
LIMITS = re.compile(r"(min|max|clamp|[A-Z_0-9]+)$")
ROUNDED = re.compile(
    r"round_?up|ceil|[-+]\s*1\s*\)*\s*//?|\)\s*//?\s*[\w.()]+\s*\)?\s*\*|-\(-|-\s*\w+\s*(//|%)|(next|pad)\w*\(",
    re.IGNORECASE,
)
EXAMPLES = (
    KernelExample(
        '''
        import pyopencl as cl

        KERNEL = """
        __kernel void twice(__global float *x, int n) {
            int i = get_global_id(0);
            x[i] *= 2;  // !
        }
        """

        def twice(queue, x, n):
            program = cl.Program(queue.context, KERNEL).build()
            program.twice(queue, ((n + 63) // 64 * 64,), (64,), x, n)
        ''',
        instead='''
        import pyopencl as cl

        KERNEL = """
        __kernel void twice(__global float *x, int n) {
            int i = get_global_id(0);
            if (i < n)
                x[i] *= 2;
        }
        """

        def twice(queue, x, n):
            program = cl.Program(queue.context, KERNEL).build()
            program.twice(queue, ((n + 63) // 64 * 64,), (64,), x, n)
        ''',
        suffix=".py",
        shows=Shows.WRONG,
        run="""
        x = np.ones(128, np.float32)  # the last 28 belong to somebody else
        device = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
        twice(queue, device, np.int32(100))
        cl.enqueue_copy(queue, x, device)
        right = x.tolist() == [2.0] * 100 + [1.0] * 28
        """,
    ),
    KernelExample(
        """
        static const char *source = R"(
        __kernel void twice(__global float *x) {
            x[get_global_id(0)] *= 2;  // !
        }
        )";

        void twice(cl_command_queue queue, cl_program program, cl_mem x, size_t n) {
            cl_kernel kernel = clCreateKernel(program, "twice", NULL);
            clSetKernelArg(kernel, 0, sizeof(x), &x);
            size_t local = 64, global = (n + local - 1) / local * local;
            clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL);
        }
        """,
        suffix=".cpp",
    ),
)


def find(program: KernelProgram) -> Iterator[Sighting]:
    for kernel in program.kernels():
        is_rounded = any(map(ROUNDED.search, program.launched.get(kernel.name, [])))
        if is_rounded and (access := unguarded(program, kernel)) is not None:
            why = f"`{kernel.name}` is launched over a size that is rounded up"
            yield seen(access, f"{program.quote(access)} is not guarded, and {why}: the last items come past the end")


def unguarded(program: KernelProgram, kernel: Routine) -> Node | None:
    """The first access to global memory at the global id, in a kernel that never compares this."""

    def asks(node: Node) -> bool:
        return any(callee(call) == "get_global_id" for call in program.inside(node, "call_expression"))

    made = map(assigned, program.inside(kernel.body, "init_declarator", "assignment_expression"))
    ids = {base(target) for target, value in made if value is not None and asks(value)}

    def of_item(node: Node) -> bool:
        return asks(node) or any(said(name) in ids for name in program.inside(node, "identifier"))

    compared = [n for n in program.inside(kernel.body, "binary_expression") if bounds(program, n)]
    compared += [c for c in program.inside(kernel.body, "call_expression") if LIMITS.match(callee(c))]
    first = min((n.start_byte for n in compared if of_item(n)), default=kernel.node.end_byte)
    for access in program.inside(kernel.body, "subscript_expression"):
        variable = kernel.variables.get(said(part(access, "argument")))
        if variable is not None and variable.space == "global" and of_item(access):
            return access if access.end_byte <= first else None
    return None


def bounds(program: KernelProgram, node: Node) -> bool:
    """Whether an expression compares with, or divides by, what may be a length; nothing ends at 0."""
    return sign(node) in COMPARISONS | {"%"} and 0 not in (program.number(part(node, s)) for s in ("left", "right"))
