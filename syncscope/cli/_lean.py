"""Large arrays go back to the system as soon as they are done with: a report needs what it holds, not what it held."""

from __future__ import annotations

import contextlib
import ctypes

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # of glibc's mallopt
LARGE = 1_400_000  # bytes: more than the pieces that a file is read in, less than a column of a recording of 500 MB
SPARE = 64 << 20  # bytes at the end of the heap that are kept: pieces come and go


def return_large_arrays() -> None:
    """Have glibc map them apart for the rest of this process; elsewhere memory is as it is."""
    with contextlib.suppress(OSError, AttributeError, TypeError):  # no libc to be had, or one without
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(MMAP_THRESHOLD, LARGE)
        mallopt(TRIM_THRESHOLD, SPARE)
