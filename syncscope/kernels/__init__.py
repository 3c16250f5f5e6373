"""An OpenCL device for PyTorch in pure Python: `import syncscope.kernels`, then `torch.device("ocl")`.

Knows nothing of profiling or linting; could be lifted out and published alone.
"""

from __future__ import annotations

from syncscope.kernels import register, selftest

selftest.require()
register.register()
