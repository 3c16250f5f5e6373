"""`clFinish` after every launch, though the queue is in order.

What happens
------------
Each launch then costs the way to the device and back, some 10 to 50 us in which it does nothing; without it the next kernel is
waiting there when the last one ends. An in-order queue runs them one after another in any case.

What to do
----------
Leave it out, and wait once, where the host needs a result. To find the launch that fails, have it back while you look.

When a fix pays
---------------
Where kernels are short: with kernels of 20 us two thirds of the time are waits. What the host does between two launches cannot
be seen (shared virtual memory, printing): so it is told at low confidence. Where the time is measured it is meant, and not
reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from syncscope.model.example import KernelExample, Shows
from syncscope.model.finding import Severity
from syncscope.model.heat import Reason
from syncscope.model.ops import Family
from syncscope.opencl_c import Sighting
from syncscope.opencl_c.host import HostProgram, Verb

SEVERITY = Severity.WARNING
FAMILY = Family.HOST_PROGRAM
SEEN_AS = ("clFinish",)
NEAR = 4  # lines: further on, the host may have looked at what was computed
EXAMPLES = (
    KernelExample(
        """
        import pyopencl as cl

        def both(queue, program, x, y):
            program.twice(queue, (64,), None, x)
            queue.finish()  # !
            program.twice(queue, (64,), None, y)
            queue.finish()
        """,
        instead="""
        import pyopencl as cl

        def both(queue, program, x, y):
            program.twice(queue, (64,), None, x)
            program.twice(queue, (64,), None, y)
            queue.finish()
        """,
        suffix=".py",
        shows=Shows.WAITS,
        run="""
        program = cl.Program(context, "__kernel void twice(__global float *x) { x[get_global_id(0)] *= 2; }").build()
        x = np.ones(64, np.float32)
        device = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
        both(queue, program, device, device)
        cl.enqueue_copy(queue, x, device)
        right = x.tolist() == [4.0] * 64
        """,
    ),
    KernelExample(
        """
        for (auto &layer : layers) {
            queue.enqueueNDRangeKernel(layer.kernel, cl::NullRange, layer.global, cl::NullRange);
            queue.finish();  // !
        }
        """,
        suffix=".cpp",
    ),
)


def find(program: HostProgram) -> Iterator[Sighting]:
    for (launch, wait), then in zip(pairwise(program.commands), [*program.commands[2:], None], strict=False):
        here = (launch.function, launch.loops, launch.queue)
        if launch.verb is not Verb.LAUNCH or wait.verb is not Verb.FINISH or program.is_timed(wait):
            continue
        if here != (wait.function, wait.loops, wait.queue):
            continue
        between = program.code[wait.end : then.start].count(b"\n") if then is not None else NEAR
        more = then is not None and then.verb is Verb.LAUNCH and then.function == wait.function and between < NEAR
        is_last = then is None or not set(wait.loops) & set(then.loops)  # of a round: the next launch comes after it
        if more or (wait.loops and is_last):
            heat = Reason.IN_LOOP() if wait.loops else Reason.BETWEEN()
            message = (
                f"{program.written(wait)} waits for one launch alone: the queue is in order, and runs the next after it"
            )
            yield Sighting(wait.start, wait.end, message, 1, heat=heat)
