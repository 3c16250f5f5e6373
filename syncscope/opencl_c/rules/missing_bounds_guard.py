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
Always: a comparison costs nothing beside an access to memory. Where the host's side of it is not in the file, only a kernel
that takes a length and makes no use of it is told, at low confidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from syncscope.model.example import KernelExample, Shows
from syncscope.model.finding import Severity
from syncscope.model.ops import Family
from syncscope.opencl_c import Sighting, seen
from syncscope.opencl_c.facts import COMPARISONS, KernelProgram, Routine, assigned, base, callee
from syncscope.opencl_c.text import Node, part, said, sign, walk

SEVERITY = Severity.WARNING
FAMILY = Family.KERNEL
SEEN_AS = ()
LENGTH = re.compile(r"(n|N|count|size|length|len|total|limit|num_?\w*|n_\w+)$")
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
        __kernel void twice(__global float *x, int n) {
            x[get_global_id(0)] *= 2;  // !
        }
        """
    ),
    KernelExample(
        """
        __kernel void spread(__global float *x, __global const float *y, int n) {
            x[get_global_id(0) * n] = y[get_global_id(0)];
        }
        """
    ),
)


def find(program: KernelProgram) -> Iterator[Sighting]:
    for kernel in program.kernels():
        sizes = program.launched.get(kernel.name, [])
        is_rounded = any(ROUNDED.search(size) for size in sizes)
        if sizes and not is_rounded:
            continue
        named = [n for n in walk(kernel.body) if n.type == "identifier"]
        unused = [
            p.name for p in kernel.parameters if is_length(p.name, p.type) and not any(said(n) == p.name for n in named)
        ]
        if (is_rounded or unused) and (access := unguarded(kernel)) is not None:
            what = program.quote(access)
            why = (
                f"`{kernel.name}` is launched over a size that is rounded up"
                if is_rounded
                else f"`{unused[0]}` is never looked at"
            )
            yield seen(
                access, f"{what} is not guarded, and {why}: the last items come past the end", 3 if is_rounded else 1
            )


def is_length(name: str, kind: str) -> bool:
    """Whether a parameter is a number of elements."""
    return kind in ("int", "uint", "long", "ulong") and LENGTH.match(name) is not None


def unguarded(kernel: Routine) -> Node | None:
    """The first access to global memory at the global id, in a kernel that never compares this."""
    made = [assigned(n) for n in walk(kernel.body)]
    ids = {base(to) for to, value in made if value and any(callee(n) == "get_global_id" for n in calls(value))}

    def of_item(node: Node) -> bool:
        return any(
            callee(n) == "get_global_id" if n.type == "call_expression" else n.type == "identifier" and said(n) in ids
            for n in walk(node)
        )

    for node in walk(kernel.body):
        if (sign(node) in COMPARISONS or sign(node) == "%") and of_item(node):
            return None
        if (
            node.type == "call_expression"
            and (callee(node) in ("min", "clamp", "max") or callee(node).isupper())
            and of_item(node)
        ):
            return None
    for node in walk(kernel.body):
        if node.type == "subscript_expression":
            variable = kernel.variables.get(said(part(node, "argument")))
            if variable is not None and variable.space == "global" and of_item(node):
                return node
    return None


def calls(node: Node) -> list[Node]:
    """The calls in an expression."""
    return [n for n in walk(node) if n.type == "call_expression"]
