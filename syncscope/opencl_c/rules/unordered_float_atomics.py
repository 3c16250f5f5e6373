"""Floats added up by atomics, in the order in which items happen to come.

What happens
------------
A sum of floats depends on its order. With atomics the order is the device's, another one in each run: the last bits differ, a
training is not reproducible, a test against a stored result fails now and then. All items also stand in line for one address.

What to do
----------
Add up in local memory first, in a tree, and let each group write its own partial sum, to be added by a second kernel; or gather
instead of scattering. Integer atomics (also of fixed point numbers) have no such order.

When a fix pays
---------------
Where results must be the same bit by bit, or where many items meet at few addresses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from syncscope.model.example import KernelExample, Shows
from syncscope.model.finding import Severity
from syncscope.model.ops import Family
from syncscope.opencl_c import Sighting, seen
from syncscope.opencl_c.facts import COMPARE_AND_SWAP, KernelProgram, Variable
from syncscope.opencl_c.nodes import FENCED, arguments, callee
from syncscope.opencl_c.scalars import FLOATING
from syncscope.opencl_c.text import Node, sign, walk

SEVERITY = Severity.NOTE
FAMILY = Family.KERNEL
SEEN_AS = ()
ADDS = re.compile(r"atomic_(fetch_)?(add|sub)(_explicit)?$|atomic_?add_?f(loat)?$")
EXCHANGE = re.compile(r"atom(ic)?_xchg$")  # while ((v = atomic_xchg(p, atomic_xchg(p, 0.0f) + v)) != 0.0f);
EXAMPLES = (
    KernelExample(
        """
        __kernel void total(volatile __global float *sum, __global const float *x) {
            float old = *sum;
            for (;;) {
                int was = atomic_cmpxchg((volatile __global int *)sum, as_int(old), as_int(old + x[get_global_id(0)]));  // !
                if (was == as_int(old))
                    break;
                old = as_float(was);
            }
        }
        """,
        instead="""
        __kernel void total(__global float *sums, __global const float *x) {
            __local float part[64];
            int l = get_local_id(0);
            part[l] = x[get_global_id(0)];
            for (int step = 32; step > 0; step /= 2) {
                barrier(CLK_LOCAL_MEM_FENCE);
                if (l < step)
                    part[l] += part[l + step];
            }
            if (l == 0)
                sums[get_global_id(0) / 64] = part[0];
        }
        """,
        shows=Shows.WRONG,
        run="""
        random = np.random.default_rng(0)
        x = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=random.standard_normal(4096).astype(np.float32))
        kernel, totals = cl.Program(context, code).build().total, set()
        for _ in range(10):  # ten orders in which the groups may come
            sums = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=np.zeros(64, np.float32))
            for group in random.permutation(64):
                kernel(queue, (64,), (64,), sums, x, global_offset=(int(group) * 64,))
            parts = np.zeros(64, np.float32)
            cl.enqueue_copy(queue, parts, sums)
            totals.add(float(parts.sum()))
        right = len(totals) == 1
        """,
    ),
    KernelExample(
        """
        __kernel void count(volatile __global int *many, __global const float *x) {
            if (x[get_global_id(0)] > 0)
                atomic_add(many, 1);
        }
        """
    ),
)


def find(program: KernelProgram) -> Iterator[Sighting]:
    if not program.unit.mentions(b"tom"):  # atomic_add, atom_cmpxchg, AtomicAdd
        return
    told: set[int] = set()  # the loops, by their nodes
    for routine in program.routines:
        for node in program.inside(routine.body, "call_expression"):
            name, given = callee(node), arguments(node)
            if (COMPARE_AND_SWAP.match(name) or EXCHANGE.match(name)) and (loop := loop_around(node)) is not None:
                adds = loop.id not in told and any(is_float_sum(program, routine.variables, n) for n in walk(loop))
                told.add(loop.id)
            elif ADDS.match(name) and given:
                adds = "atomic_float" in program.written(given[0]) or "atomic_double" in program.written(given[0])
                adds = adds or program.type(node, routine.variables) in FLOATING
            else:
                continue
            if adds:
                yield seen(
                    node,
                    f"{program.quote(node)} adds floats in no fixed order: the last bits differ from run to run",
                    2,
                )


def loop_around(node: Node) -> Node | None:
    """The loop in which a node stands."""
    while node is not None and node.type not in FENCED:
        node = node.parent
    return node


def is_float_sum(program: KernelProgram, names: Mapping[str, Variable], node: Node) -> bool:
    """Whether a node adds floats."""
    return sign(node) in ("+", "-", "+=", "-=") and program.type(node, names).rstrip("0123456789") in FLOATING
