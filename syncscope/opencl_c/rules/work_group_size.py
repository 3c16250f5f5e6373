"""A launch with another work-group size than the kernel requires.

What happens
------------
A kernel with `__attribute__((reqd_work_group_size(16, 16, 1)))` is compiled for groups of this size and no other. Any
other one, or none (`None`, `NULL`), is refused with `CL_INVALID_WORK_GROUP_SIZE`: on the first launch, which may be in
production.

What to do
----------
Give the size that is required, and round the global size up to it; or ask `CL_KERNEL_COMPILE_WORK_GROUP_SIZE`.

When a fix pays
---------------
Always: as it is written, it does not run.
"""

from __future__ import annotations

from collections.abc import Iterator

from syncscope.model.example import KernelExample, Shows
from syncscope.model.finding import Severity
from syncscope.model.heat import Reason
from syncscope.model.ops import Family
from syncscope.opencl_c import Sighting
from syncscope.opencl_c.divergence import REQUIRED
from syncscope.opencl_c.facts import KernelProgram, Routine
from syncscope.opencl_c.host import HostProgram

SEVERITY = Severity.WARNING
FAMILY = Family.HOST_PROGRAM
SEEN_AS = ()
EXAMPLES = (
    KernelExample(
        '''
        import pyopencl as cl

        KERNEL = """
        __attribute__((reqd_work_group_size(16, 4, 1)))
        __kernel void twice(__global float *x) {
            x[get_global_id(1) * 32 + get_global_id(0)] *= 2;
        }
        """

        def twice(queue, x):
            program = cl.Program(queue.context, KERNEL).build()
            program.twice(queue, (32, 8), (16, 8), x)  # !
        ''',
        instead='''
        import pyopencl as cl

        KERNEL = """
        __attribute__((reqd_work_group_size(16, 4, 1)))
        __kernel void twice(__global float *x) {
            x[get_global_id(1) * 32 + get_global_id(0)] *= 2;
        }
        """

        def twice(queue, x):
            program = cl.Program(queue.context, KERNEL).build()
            program.twice(queue, (32, 8), (16, 4), x)
        ''',
        suffix=".py",
        shows=Shows.ERROR,
        run="""
        x = np.ones(256, np.float32)
        device = cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=x)
        twice(queue, device)
        cl.enqueue_copy(queue, x, device)
        right = x.tolist() == [2.0] * 256
        """,
    ),
    KernelExample(
        """
        static const char *source = R"(
        #define GROUP 64
        __attribute__((reqd_work_group_size(GROUP, 1, 1)))
        __kernel void twice(__global float *x) {
            x[get_global_id(0)] *= 2;
        }
        )";

        void twice(cl::CommandQueue &queue, cl::Program &program, cl::Buffer &x, size_t n) {
            cl::Kernel kernel(program, "twice");
            cl::NDRange local(32), good(64);
            kernel.setArg(0, x);
            queue.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(n), local);  // !
            queue.enqueueNDRangeKernel(kernel, cl::NullRange, cl::NDRange(n), good);
        }
        """,
        suffix=".cpp",
    ),
)


def find(program: HostProgram) -> Iterator[Sighting]:
    wanted = {r.name: sizes for p in program.kernels for r in p.kernels() if (sizes := required(p, r))}
    for command in program.commands:
        if command.kernel in wanted and (given := program.numbers(command, 1)) is not None:
            needs = wanted[command.kernel]
            if (*given, 1, 1, 1)[:3] != (*needs, 1, 1, 1)[:3] or not given:
                message = (
                    f"the kernel `{command.kernel}` requires groups of {needs}, and is launched with {given or None}"
                )
                yield Sighting(command.start, command.end, message, 3, heat=Reason.ENQUEUED())


def required(program: KernelProgram, routine: Routine) -> tuple[int, ...]:
    """The size of group that a kernel requires; () where it does not, or it is not known."""
    found = REQUIRED.search(routine.head)
    if found is None:
        return ()
    sizes = [program.value(text, routine.node.start_byte) for text in found[1].split(",")]
    return () if None in sizes else tuple(s for s in sizes if s is not None)
