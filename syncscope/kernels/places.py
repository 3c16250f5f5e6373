"""Places that a device has for processes beside those of the programs themselves, whoever starts them.

A driver opens one context after the other, a sixth of a second each, and each takes of the device's memory: thirty programs
that start sixteen processes each would wait for minutes, and find no memory left.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys

import pyopencl as cl

from syncscope.files import cache_folder
from syncscope.kernels.device import device

_BOARD = ("pci_domain_id_nv", "pci_bus_id_nv", "pci_slot_id_nv")  # who sees one device of several calls it the first


def take(count: int, number: str) -> tuple[int, ...]:
    """One of so many places of the device, that is called `number` here: a descriptor, to be handed on to the process that is
    started. The place is free again when nobody has it open any more. None where nobody can say which are taken.

    Raises:
        BlockingIOError: all of them are.
    """
    if sys.platform == "win32":  # where files are not handed on
        return ()
    import fcntl

    folder = cache_folder("ocl-builders")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for place in range(count):
            handle = os.open(folder / f"{_named(number)}-{place}", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
            except OSError:
                os.close(handle)
                raise
            else:
                return (handle,)
    except OSError:  # a folder that is not to be written to, or without locks
        return ()
    raise BlockingIOError


def _named(number: str) -> str:
    """The device, on this machine: a cluster's machines may share the folder."""
    board = []
    for fact in _BOARD:
        with contextlib.suppress(cl.Error, AttributeError):
            board.append(str(getattr(device, fact)))
    parts = (platform.node(), device.name.strip(), *(board or (number,)))
    return "-".join("".join(x if x.isalnum() else "_" for x in part) for part in parts)
