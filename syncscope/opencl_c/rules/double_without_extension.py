"""`double`, without a word about the devices that do not have it.

What happens
------------
`double` is optional: `cl_khr_fp64` up to OpenCL 1.1, an optional feature since 1.2. Intel's integrated GPUs, most of those in
phones and some newer ones lack it, and there the whole program fails to build, also the kernels that use none. CPUs have it,
and PoCL has no option to do without: a test there does not show it. A file without a kernel is not looked at: who includes it
asks.

What to do
----------
Keep it behind `#ifdef cl_khr_fp64`, with the pragma for 1.0 and 1.1, and ask `CL_DEVICE_DOUBLE_FP_CONFIG` on the host. Where
`float` is enough (with a Kahan sum, or a tree), it is up to 64 times as fast on a GPU for gamers.

When a fix pays
---------------
Where the program is meant for devices that are not your own.
"""

from __future__ import annotations

from collections.abc import Iterator

from syncscope.model.example import KernelExample, Shows
from syncscope.model.finding import Severity
from syncscope.model.ops import Family
from syncscope.opencl_c import Sighting
from syncscope.opencl_c.facts import KernelProgram
from syncscope.opencl_c.types import first_number

SEVERITY = Severity.NOTE
FAMILY = Family.KERNEL
SEEN_AS = ()
EXAMPLES = (
    KernelExample(
        """
        __kernel void total(__global double *sum, __global const float *x, int n) {
            double all = 0;  // !
            for (int i = 0; i < n; i++)
                all += x[i];
            *sum = all;
        }
        """,
        instead="""
        __kernel void total(__global float *sum, __global const float *x, int n) {
            float all = 0, lost = 0;
            for (int i = 0; i < n; i++) {
                float more = x[i] - lost, next = all + more;
                lost = (next - all) - more;
                all = next;
            }
            *sum = all;
        }
        """,
        shows=Shows.UNSEEN,
        run="""
        x = np.ones(100, np.float32)
        total = np.zeros(1, np.float64 if "__global double" in code else np.float32)
        run("total", 1, 1, total, x, np.int32(100))
        right = total[0] == 100
        """,
    ),
    KernelExample(
        """
        #ifdef cl_khr_fp64
        #pragma OPENCL EXTENSION cl_khr_fp64 : enable
        __kernel void twice(__global double *x) {
            x[get_global_id(0)] *= 2;
        }
        #endif
        """
    ),
)


def find(program: KernelProgram) -> Iterator[Sighting]:
    said = "is a double, which a device need not have, and the program does not ask for cl_khr_fp64"
    yield from first_number(program, "double", (b"cl_khr_fp64", b"cl_amd_fp64", b"__opencl_c_fp64"), said)
