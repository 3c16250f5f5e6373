"""One hazard, one file: its page, its examples, and how it is seen. `syncscope.opencl_c` says what such a file holds."""

from __future__ import annotations

import sys
from functools import cache
from typing import cast

from syncscope import discover
from syncscope.opencl_c import KernelRule


@cache
def builtin() -> dict[str, KernelRule]:
    """The rules by name."""
    return {name: cast(KernelRule, module) for name, module in discover.discover(sys.modules[__name__]).items()}
