"""An OpenCL device for PyTorch in pure Python: `import syncscope.kernels`, then `torch.device("ocl")`.

Knows nothing of profiling or linting; could be lifted out and published alone.
"""

from __future__ import annotations

import importlib.util

from syncscope.errors import UserError

for _package, _extra in (("torch", "trace"), ("pyopencl", "opencl")):
    if importlib.util.find_spec(_package) is None:
        raise UserError(f"the device ocl needs {_package}", f'pip install "syncscope[{_extra}]"')

from syncscope.kernels import register, selftest  # noqa: E402  (they import these packages)

selftest.require()
register.register()
