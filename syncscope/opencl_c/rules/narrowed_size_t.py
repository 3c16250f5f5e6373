"""A `size_t` put into a type that is too small for it.

What happens
------------
`get_global_id` and its like give `size_t`, 64 bits on almost all devices. What does not fit is cut off without a word: items
past the limit work on the elements of others. A `short` is full at 32,768 items, a `uchar` at 256, an `int` at 2^31.

What to do
----------
Keep a `size_t`, or an `int` where the number of items is known to be small; give products of sizes and indices a `size_t`.

When a fix pays
---------------
`int i = get_global_id(0)` is what most kernels write, and well where there are fewer than 2^31 items: it is shown at low
confidence only. An index that goes into a `short` or a `char` is shown by default.
"""

from __future__ import annotations

from collections.abc import Iterator

from syncscope.model.example import KernelExample, Shows
from syncscope.model.finding import Severity
from syncscope.model.ops import Family
from syncscope.opencl_c import Sighting, seen
from syncscope.opencl_c.facts import ITEM, OF_SIZE, KernelProgram
from syncscope.opencl_c.nodes import assigned, callee
from syncscope.opencl_c.scalars import BITS
from syncscope.opencl_c.text import Node, said, sign, walk

SEVERITY = Severity.WARNING
FAMILY = Family.KERNEL
SEEN_AS = ()
EXAMPLES = (
    KernelExample(
        """
        __kernel void fill(__global int *x) {
            ushort i = get_global_id(0);  // !
            x[i] = 1;
        }
        """,
        instead="""
        __kernel void fill(__global int *x) {
            size_t i = get_global_id(0);
            x[i] = 1;
        }
        """,
        shows=Shows.WRONG,
        run="""
        x = np.zeros(1 << 17, np.int32)
        run("fill", 1 << 17, 64, x)
        right = bool(x.all())
        """,
    ),
    KernelExample(
        """
        __kernel void flat(__global float *x) {
            int i = get_global_id(1) * get_global_size(0) + get_global_id(0);  // !
            x[i] = 0;
        }
        """
    ),
    KernelExample(
        """
        __kernel void near(__global uchar *x) {
            uchar lane = get_local_id(0) % 32;
            uint part = (get_local_id(0) & 3) * 2;
            x[get_global_id(0)] = lane + part;
        }
        """
    ),
)


def find(program: KernelProgram) -> Iterator[Sighting]:
    for routine, node in program.each("init_declarator", "assignment_expression"):
        target, value = assigned(node)
        if sign(node) in ("", "="):
            variable = program.variable(target, routine.variables)
            if variable is None or variable.is_pointer or BITS.get(variable.type, 64) >= 64 or "." in said(target):
                continue
            if program.type(value, routine.variables) in ("ulong", "long") and (
                confidence := trust(program, value, BITS[variable.type])
            ):
                message = f"{program.quote(value)} is a size_t of 64 bits, and `{said(target)}` a `{variable.type}`"
                yield seen(node, message, confidence)


def trust(program: KernelProgram, value: Node, bits: int) -> int:
    """How sure it is that not all values fit; 0 where they are made small."""
    nodes = list(walk(value))
    names = {said(n) for n in nodes if n.type == "identifier"} & program.macros.texts.keys()
    nodes += [n for name in names for meaning in program.macros.meanings(name) for n in walk(meaning)]
    calls = [callee(n) for n in nodes if n.type == "call_expression"]
    items = [c for c in calls if ITEM.match(c) or OF_SIZE.match(c)]
    small = [n for n in nodes if said(n) in ("%", "&", ">>", "/", "min", "clamp")]
    if not items or small or (bits >= 16 and all("local_" in c for c in items)):
        return 0
    if bits < 32:
        return 3 if any("global" in c or "group" in c for c in items) else 2
    return 1
