"""An OpenCL driver that is installed and that no loader finds: the file that should name it is not there."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

CARDS = Path("/proc/driver/nvidia/gpus")  # a folder for each, from the kernel's module
LIBRARY = "libnvidia-opencl.so.1"
ICD = "/etc/OpenCL/vendors/nvidia.icd"


def unnamed(platforms: Iterable[str]) -> tuple[str, str] | None:
    """What is wrong, and what to write where, on a machine with an NVIDIA GPU that none of these platforms has; else None."""
    if any("nvidia" in name.lower() for name in platforms) or not CARDS.is_dir() or not any(CARDS.iterdir()):
        return None
    hint = f"echo {LIBRARY} | sudo tee {ICD}, or without root: export OCL_ICD_VENDORS={LIBRARY}"
    return f"there is an NVIDIA GPU, and no OpenCL platform of it: {ICD} should name its driver", hint
