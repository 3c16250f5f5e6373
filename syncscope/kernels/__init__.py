"""An OpenCL device for PyTorch in pure Python: `import syncscope.kernels`, then `torch.device("ocl")`.

Knows nothing of profiling or linting; could be lifted out and published alone.
"""

from __future__ import annotations

import importlib.util
import os

from syncscope.errors import UserError

OFF = os.environ.get("SYNCSCOPE_OCL_DEVICE") == "off"  # no device: comprehensions run on torch's own
for _package, _extra in (("torch", "trace"), *(() if OFF else (("pyopencl", "opencl"),))):
    if importlib.util.find_spec(_package) is None:
        raise UserError(f"the device ocl needs {_package}", f'pip install "syncscope[{_extra}]"')

if not OFF:
    from syncscope.kernels import autograd_threads, beside, coming, register, selftest

    _recorded = autograd_threads.recorded()
    selftest.require()
    if coming.ahead:
        beside.start_early()
    register.register()
    if _recorded:
        autograd_threads.require()

from syncscope.kernels.comprehensions import Comprehension  # noqa: E402

comprehension = Comprehension  # called as a function is
