"""Without torch or an OpenCL device there is nothing to test here."""

import importlib.util

if not all(map(importlib.util.find_spec, ("torch", "pyopencl"))):
    collect_ignore_glob = ["*"]
