"""A buffer that is made anew in every round of a loop, with the same size.

What happens
------------
To make a buffer the driver takes memory, often by a call of the system, and maps it for the device; to release it, most
drivers wait until nothing uses it any more. With `COPY_HOST_PTR` it copies, too, while the host waits.

What to do
----------
Make it before the loop, and write into it (`enqueue_copy`, `clEnqueueWriteBuffer`); or take it from a pool
(`pyopencl.tools.MemoryPool`).

When a fix pays
---------------
Where a round is short: making a buffer takes 10 us to some milliseconds. Sizes that differ in each round want a pool, and are
not reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from syncscope.model.example import KernelExample, Shows
from syncscope.model.finding import Severity
from syncscope.model.heat import Reason
from syncscope.model.ops import Family
from syncscope.opencl_c import Sighting
from syncscope.opencl_c.host import HostProgram, Verb

SEVERITY = Severity.WARNING
FAMILY = Family.HOST_PROGRAM
SEEN_AS = ("clCreateBuffer",)
EXAMPLES = (
    KernelExample(
        """
        import pyopencl as cl

        def sums(queue, program, x, size, count):
            for _ in range(count):
                scratch = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, size)  # !
                program.twice(queue, (64,), None, x, scratch)
        """,
        instead="""
        import pyopencl as cl

        def sums(queue, program, x, size, count):
            scratch = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, size)
            for _ in range(count):
                program.twice(queue, (64,), None, x, scratch)
        """,
        suffix=".py",
        shows=Shows.WAITS,
        run="""
        text = "__kernel void twice(__global float *x, __global float *y) { y[get_global_id(0)] = x[get_global_id(0)] *= 2; }"
        program = cl.Program(context, text).build()
        x = np.ones(64, np.float32)
        device = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
        sums(queue, program, device, 256, 3)
        cl.enqueue_copy(queue, x, device)
        right = x.tolist() == [8.0] * 64
        """,
    ),
)


def find(program: HostProgram) -> Iterator[Sighting]:
    for command in program.commands:
        if command.verb is not Verb.CREATE or not command.loops:
            continue
        loop = command.loops[-1]
        launches = any(c.verb is Verb.LAUNCH and loop in c.loops for c in program.commands)
        if launches and not command.uses & program.changed.get(loop, set()) - {command.target}:
            message = f"{program.written(command)} makes the same buffer in every round"
            yield Sighting(command.start, command.end, message, 2, heat=Reason.IN_LOOP())
