"""A read that blocks, or `finish()`, in every round of a loop that enqueues work.

What happens
------------
The host waits until the device is idle, and only then enqueues the next round: the device idles in turn, for as long as the
host takes, in each round. What an event could order, or the queue does by itself, waits for the host.

What to do
----------
- An in-order queue needs no `finish()` between kernels: leave it out, and read once behind the loop.
- What must be read in each round: read without blocking into memory of its own, and look at it a round later.
- A condition to go on: look at it every tenth round, or let the device count.

When a fix pays
---------------
Where a round is short: 20 to 100 us for each wait, and as much again until the queue is full. In a loop of seconds it is
nothing. Where the time is measured, the wait is meant, and is not reported.
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
SEEN_AS = ("clFinish", "clEnqueueReadBuffer")
EXAMPLES = (
    KernelExample(
        """
        import numpy as np
        import pyopencl as cl

        def steps(queue, program, x, count):
            device = cl.Buffer(queue.context, cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
            for _ in range(count):
                program.halved(queue, x.shape, None, device)
                cl.enqueue_copy(queue, x, device)  # !
            return x
        """,
        instead="""
        import numpy as np
        import pyopencl as cl

        def steps(queue, program, x, count):
            device = cl.Buffer(queue.context, cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
            for _ in range(count):
                program.halved(queue, x.shape, None, device)
            cl.enqueue_copy(queue, x, device)
            return x
        """,
        suffix=".py",
        shows=Shows.WAITS,
        run="""
        program = cl.Program(context, "__kernel void halved(__global float *x) { x[get_global_id(0)] /= 2; }").build()
        right = float(steps(queue, program, np.ones(64, np.float32), 4)[0]) == 0.0625
        """,
    ),
    KernelExample(
        """
        for (int step = 0; step < steps; step++) {
            clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, NULL, 0, NULL, NULL);
            clEnqueueReadBuffer(queue, total, CL_TRUE, 0, 4, &sum, 0, NULL, NULL);  // !
        }
        clFinish(queue);
        """,
        suffix=".cpp",
    ),
)


def find(program: HostProgram) -> Iterator[Sighting]:
    commands = program.commands
    for index, command in enumerate(commands):
        if command.verb not in (Verb.READ, Verb.FINISH) or not command.loops or program.is_timed(command):
            continue
        inside = [c for c in commands if command.loops[-1] in c.loops and c.verb is Verb.LAUNCH]
        before = commands[index - 1] if index else None
        if (
            command.verb is Verb.FINISH
            and before is not None
            and before.verb is Verb.LAUNCH
            and before.loops == command.loops
        ):
            continue  # that is `finish-after-launch`
        if inside:
            what = "reads and waits" if command.verb is Verb.READ else "waits for all that is enqueued"
            message = f"{program.written(command)} {what} in every round: the device idles until the host has enqueued the next"
            yield Sighting(command.start, command.end, message, 2, heat=Reason.IN_LOOP())
