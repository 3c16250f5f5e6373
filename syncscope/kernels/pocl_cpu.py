"""Gives PoCL a CPU name its compiler knows, where LLVM is older than the CPU.

PoCL asks LLVM for the host's CPU; LLVM answers `generic` for one that is younger than itself, and clang then refuses every
program with "unknown target CPU 'generic'" (pocl/pocl issue 1049). Or it answers with an older relative: a Zen 4 is a
`znver3` to LLVM 14, which has no AVX-512, while the library of built-ins that PoCL links was picked by the CPU's features
and hands vectors of 16 floats over in AVX-512 registers: such kernels crash or are not made at all. The name is a plain
`char *` in PoCL's device object, beside the target triple, and a `cl_device_id` is the address of that object: we put a name
there that clang knows and this CPU can run. Where PoCL's name fits, or the object does not look as expected, nothing is
touched.
"""

from __future__ import annotations

import ctypes
import itertools
import os
from pathlib import Path

import pyopencl as cl

_WORD = ctypes.sizeof(ctypes.c_void_p)
_OBJECT = 2048  # bytes of the device object that are searched; the name was seen at 640
_AVX512 = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
_WITHOUT_AVX512 = {b"generic", b"znver1", b"znver2", b"znver3"}
_keep: list[ctypes.Array[ctypes.c_char]] = []  # PoCL holds the pointer for the life of the process


def name_unknown(device: cl.Device) -> str | None:
    """Names the CPU of a PoCL device whose compiler has none for it, or one too narrow; the name given, None if none was."""
    cpuinfo = Path("/proc/cpuinfo")
    if "PoCL" not in device.platform.version or not cpuinfo.exists() or os.uname().machine != "x86_64":
        return None
    flags = set(cpuinfo.read_text().partition("flags")[2].partition("\n")[0].split())
    wide = flags >= _AVX512
    unfit = _WITHOUT_AVX512 if wide else {b"generic"}
    name = (
        "skylake-avx512" if wide else "haswell" if "avx2" in flags else "x86-64"
    )  # as wide as the library of built-ins
    try:
        memory = os.open("/proc/self/mem", os.O_RDONLY)  # read this way, a wild pointer fails instead of crashing
    except OSError:
        return None

    def read(address: int, size: int) -> bytes:
        try:
            return os.pread(memory, size, address)
        except (OSError, OverflowError):
            return b""

    try:
        words = read(device.int_ptr, _OBJECT)
        pointers = [int.from_bytes(words[i : i + _WORD], "little") for i in range(0, len(words), _WORD)]
        for i, (triple, cpu) in enumerate(itertools.pairwise(pointers)):
            if read(triple, 7) == b"x86_64-" and read(cpu, 16).partition(b"\0")[0] in unfit:
                _keep.append(ctypes.create_string_buffer(name.encode()))
                place = ctypes.c_void_p.from_address(device.int_ptr + (i + 1) * _WORD)
                place.value = ctypes.addressof(_keep[-1])
                return name
    finally:
        os.close(memory)
    return None
