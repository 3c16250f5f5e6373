"""Which files outlive a run: those of caches, and what is no file at all. Everything else is as it was when a run is over."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

NAMED = "XDG_CACHE_HOME TORCH_HOME HF_HOME TRITON_CACHE_DIR CUDA_CACHE_PATH POCL_CACHE_DIR SYNCSCOPE_CACHE_DIR"
COMPILED = "TORCHINDUCTOR_CACHE_DIR"  # else a folder of the temporary one, whose name begins so:
INDUCTOR = "torchinductor_"
SHARED_MEMORY = "/dev/shm/"
NO_FILES = ("/dev/", "/proc/", "/sys/")


class Caches:
    """The caches of a program that runs in this folder, in this environment; `own` is a folder of ours."""

    def __init__(self, own: Path) -> None:
        named = (os.environ.get(name, "") for name in (*NAMED.split(), COMPILED))
        hidden = (str(Path.home() / name) for name in (".cache", ".triton", ".nv"))
        self._home = with_end(os.path.realpath("."))
        self._own = with_end(os.path.realpath(own))
        self._folders = tuple(with_end(os.path.realpath(folder)) for folder in (*filter(None, named), *hidden))
        self._compiled = with_end(os.path.realpath(tempfile.gettempdir())) + INDUCTOR

    def hold(self, path: str) -> bool:
        """Whether what is made, changed or removed at this path (links resolved) stays so."""
        if path.startswith(NO_FILES):
            return not path.startswith(SHARED_MEMORY)
        if "__pycache__" in path or path.startswith((self._own, self._compiled)) or path + os.sep == self._own:
            return True
        longest = max((len(folder) for folder in self._folders if with_end(path).startswith(folder)), default=0)
        works_there = path.startswith(self._home) and len(self._home) >= longest  # who works at home has them below
        return longest > 0 and not works_there


def with_end(folder: str) -> str:
    """The name of a folder as what lies in it begins."""
    return folder.rstrip(os.sep) + os.sep
