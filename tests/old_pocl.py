"""Gives PoCL's compiler a name for the processor, where it is older than that: before a test's own program is built."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1] / "syncscope"


def name_cpu(device: Any) -> None:
    """Names it: see kernels/pocl_cpu.py, loaded here without the device around it."""
    spec = importlib.util.spec_from_file_location("pocl_cpu", PACKAGE / "kernels" / "pocl_cpu.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # the driver holds on to the module's memory
    spec.loader.exec_module(module)
    module.name_unknown(device)
