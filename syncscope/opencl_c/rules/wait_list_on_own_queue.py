"""A wait list with an event of the same in-order queue.

What happens
------------
An in-order queue begins a command when the one before it has ended; an event of the same queue adds nothing to that. It costs
something, though: drivers make an event for each command that is asked for one, and look at the list when the next is enqueued.

What to do
----------
Leave the list out, and the event, if nobody else asks for it. Between two queues, or in a queue with
`OUT_OF_ORDER_EXEC_MODE_ENABLE`, it is what orders the commands, and is not reported.

When a fix pays
---------------
Some microseconds for each launch: where launches are short and many.
"""

from __future__ import annotations

from collections.abc import Iterator

from syncscope.model.example import KernelExample, Shows
from syncscope.model.finding import Severity
from syncscope.model.heat import Reason
from syncscope.model.ops import Family
from syncscope.opencl_c import Sighting
from syncscope.opencl_c.host import HostProgram

SEVERITY = Severity.NOTE
FAMILY = Family.HOST_PROGRAM
SEEN_AS = ()
EXAMPLES = (
    KernelExample(
        """
        import pyopencl as cl

        def both(context, program, x):
            queue = cl.CommandQueue(context)
            first = program.twice(queue, (64,), None, x)
            program.twice(queue, (64,), None, x, wait_for=[first])  # !
            return queue
        """,
        instead="""
        import pyopencl as cl

        def both(context, program, x):
            queue = cl.CommandQueue(context)
            program.twice(queue, (64,), None, x)
            program.twice(queue, (64,), None, x)
            return queue
        """,
        suffix=".py",
        shows=Shows.WAITS,
        run="""
        program = cl.Program(context, "__kernel void twice(__global float *x) { x[get_global_id(0)] *= 2; }").build()
        x = np.ones(64, np.float32)
        device = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
        cl.enqueue_copy(both(context, program, device), x, device)
        right = x.tolist() == [4.0] * 64
        """,
    ),
    KernelExample(
        """
        import pyopencl as cl

        def apart(context, program, x):
            one, other = cl.CommandQueue(context), cl.CommandQueue(context)
            queue = cl.CommandQueue(context, properties=cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE)
            first = program.twice(queue, (64,), None, x)
            program.twice(queue, (64,), None, x, wait_for=[first])
        """,
        suffix=".py",
    ),
)


def find(program: HostProgram) -> Iterator[Sighting]:
    for index, command in enumerate(program.commands):
        if not command.waits or command.queue not in program.ordered:
            continue
        gave = {c.event: c.queue for c in program.commands[:index] if c.event and c.function == command.function}
        if all(gave.get(event) == command.queue for event in command.waits):
            listed = ", ".join(f"`{event}`" for event in command.waits)
            message = (
                f"{program.written(command)} waits for {listed} of its own in-order queue, which it does in any case"
            )
            yield Sighting(command.start, command.end, message, 3, heat=Reason.ENQUEUED())
