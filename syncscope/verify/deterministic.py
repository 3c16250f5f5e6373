"""Sums in the same order every time, while it is looked at what versions compute.

On CUDA many sums are added up in whatever order their threads come, so that a program's own two runs differ; torch has another
way for most of these operators. It is asked for it where values are compared, of all versions alike, and never where steps are
timed. What it has no other way for still differs, and is measured then.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

# without it cuBLAS and cuDNN's recurrent layers may not be; NVIDIA's, cuBLAS 2.1.4
WORKSPACE = "CUBLAS_WORKSPACE_CONFIG", ":4096:8"


def from_the_start() -> None:
    """For a whole run, before it touches a device."""
    own_workspace()
    if "torch" in sys.modules:
        OneOrder().hold()
        kept = vars(type(sys.modules["torch"].backends.cudnn))
        for name in ("benchmark", "deterministic"):  # what the program says of them in its first lines changes nothing
            if hasattr(kept.get(name), "setter"):
                kept[name].setter = lambda value: None


def own_workspace() -> None:
    """What cuBLAS reads only when it begins."""
    os.environ.setdefault(*WORKSPACE)


class OneOrder:
    """Of sums, from `hold` to `release`."""

    def __init__(self) -> None:
        self._torch: Any = sys.modules["torch"]
        cudnn = self._torch.backends.cudnn
        self._before = cudnn.deterministic, cudnn.benchmark
        self._filled = self._torch.utils.deterministic.fill_uninitialized_memory
        self._was = self._torch.are_deterministic_algorithms_enabled()
        self._only_warns = self._torch.is_deterministic_algorithms_warn_only_enabled()

    def hold(self) -> None:
        """Sees to it, whatever the program has set meanwhile; one that asks for it itself is left to its own."""
        torch = self._torch
        if not torch.are_deterministic_algorithms_enabled():
            warnings.filterwarnings("ignore", ".*deterministic", UserWarning)
            torch.use_deterministic_algorithms(True, warn_only=True)
            torch.utils.deterministic.fill_uninitialized_memory = False
        torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False

    def release(self) -> None:
        """All is as the program had it."""
        cudnn = self._torch.backends.cudnn
        cudnn.deterministic, cudnn.benchmark = self._before
        self._torch.utils.deterministic.fill_uninitialized_memory = self._filled
        self._torch.use_deterministic_algorithms(self._was, warn_only=self._only_warns)
