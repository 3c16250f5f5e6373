"""Memory of the device that is mapped into the host's, and never unmapped.

What happens
------------
While a buffer is mapped for writing, what kernels read from it is undefined; what the host has written need not reach the
device before it is unmapped. Each map that stays holds memory of the host, pinned on most drivers, until the program ends.

What to do
----------
`clEnqueueUnmapMemObject` before the next kernel uses it; in pyopencl `with array.base:` or `array.base.release()`, as
otherwise it is unmapped whenever Python collects the array.

When a fix pays
---------------
Always in C and C++. In Python it depends on when the array is collected: mostly in time, so it is told at low confidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from syncscope.model.example import KernelExample, Shows
from syncscope.model.finding import Severity
from syncscope.model.heat import Reason
from syncscope.model.ops import Family
from syncscope.opencl_c import Sighting
from syncscope.opencl_c.host import HostProgram, Verb

SEVERITY = Severity.WARNING
FAMILY = Family.HOST_PROGRAM
SEEN_AS = ("clEnqueueMapBuffer",)
EXAMPLES = (
    KernelExample(
        """
        import numpy as np
        import pyopencl as cl

        def fill(queue, x, held):
            here, _ = cl.enqueue_map_buffer(queue, x, cl.map_flags.WRITE, 0, 64, np.float32)  # !
            here[:] = 3
            held.append(here)
        """,
        instead="""
        import numpy as np
        import pyopencl as cl

        def fill(queue, x, held):
            here, _ = cl.enqueue_map_buffer(queue, x, cl.map_flags.WRITE, 0, 64, np.float32)
            with here.base:
                here[:] = 3
            held.append(x)
        """,
        suffix=".py",
        shows=Shows.WRONG,
        run="""
        held, x = [], cl.Buffer(context, cl.mem_flags.READ_WRITE, 256)
        fill(queue, x, held)
        queue.finish()
        right = x.get_info(cl.mem_info.MAP_COUNT) == 0
        """,
    ),
    KernelExample(
        """
        void fill(cl_command_queue queue, cl_mem x, size_t size) {
            float *here = (float *)clEnqueueMapBuffer(queue, x, CL_TRUE, CL_MAP_WRITE, 0, size, 0, NULL, NULL, NULL);  // !
            memset(here, 0, size);
        }
        """,
        suffix=".cpp",
    ),
    KernelExample(
        """
        void fill(cl_command_queue queue, cl_mem x, size_t size) {
            float *here = (float *)clEnqueueMapBuffer(queue, x, CL_TRUE, CL_MAP_WRITE, 0, size, 0, NULL, NULL, NULL);
            memset(here, 0, size);
            clEnqueueUnmapMemObject(queue, x, here, 0, NULL, NULL);
        }
        """,
        suffix=".cpp",
    ),
)


def find(program: HostProgram) -> Iterator[Sighting]:
    unmaps = [c for c in program.commands if c.verb is Verb.UNMAP]
    for command in program.commands:
        if command.verb is Verb.MAP:
            in_python = command.name.startswith("enqueue_map_")
            names = set(command.target.strip("()").replace(" ", "").split(",")) - {""}
            if names & program.released or (unmaps and not in_python):  # under another name, or in another function
                continue
            words = "|".join(map(re.escape, names)) or "(?!)"
            handed_on = re.compile(rf"\b(return|new|yield)\b[^;\n]*\b({words})\b".encode())
            if (not names and not in_python) or handed_on.search(program.code, command.end):
                continue
            message = f"{program.written(command)} is mapped, and nothing in this file unmaps it"
            yield Sighting(command.start, command.end, message, 1 if in_python else 2, heat=Reason.MAPPED())
