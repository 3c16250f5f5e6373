"""`half` as a number, without the extension that allows it.

What happens
------------
Without `cl_khr_fp16`, `half` is a type of memory only: a pointer to it may be passed and read by `vload_half`. A variable, a
cast or a load by index is an error of the compiler on devices that lack the extension, and on those that want the pragma.

What to do
----------
Read with `vload_half(i, x)` and write with `vstore_half(value, i, x)`, computing in `float`; or say
`#pragma OPENCL EXTENSION cl_khr_fp16 : enable`, and on the host build this kernel only where the device lists it.

When a fix pays
---------------
Where the kernel is built on more than one vendor's devices.
"""

from __future__ import annotations

from collections.abc import Iterator

from syncscope.model.example import KernelExample, Shows
from syncscope.model.finding import Severity
from syncscope.model.ops import Family
from syncscope.opencl_c import Sighting
from syncscope.opencl_c.facts import KernelProgram
from syncscope.opencl_c.types import first_number

SEVERITY = Severity.WARNING
FAMILY = Family.KERNEL
SEEN_AS = ()
EXAMPLES = (
    KernelExample(
        """
        __kernel void twice(__global half *x) {
            half value = x[get_global_id(0)];  // !
            x[get_global_id(0)] = value + value;
        }
        """,
        instead="""
        __kernel void twice(__global half *x) {
            float value = vload_half(get_global_id(0), x);
            vstore_half(value + value, get_global_id(0), x);
        }
        """,
        shows=Shows.ERROR,
        run="""
        x = np.ones(64, np.float16)
        run("twice", 64, 64, x)
        right = x.tolist() == [2.0] * 64
        """,
    ),
    KernelExample(
        """
        #pragma OPENCL EXTENSION cl_khr_fp16 : enable
        __kernel void twice(__global half *x) {
            half value = x[get_global_id(0)];
            x[get_global_id(0)] = value + value;
        }
        """
    ),
)


def find(program: KernelProgram) -> Iterator[Sighting]:
    said = "is a number of type half, and the program does not enable cl_khr_fp16"
    yield from first_number(program, "half", (b"cl_khr_fp16", b"__opencl_c_fp16"), said)
