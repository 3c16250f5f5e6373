"""OpenCL C to kernels that are ready to be called: read, specialised by macros, built once, with typed arguments."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import numpy as np
import pyopencl as cl
import torch

from syncscope.kernels import beside, callers, coming, pocl_header
from syncscope.kernels.coming import Coming
from syncscope.kernels.device import WHEEL, context, device, fp64, is_gpu, is_of_wheel

Item = TypeVar("Item")
Made = TypeVar("Made")
COMPILERS = max(1, min(8, (os.cpu_count() or 1) // 2))  # of the tuner's, which times kernels beside them
CL = Path(__file__).parent / "cl"
C_TYPE = {
    torch.float32: "float",
    torch.float64: "double",
    torch.int64: "long",
    torch.int32: "int",
    torch.int16: "short",
    torch.int8: "char",
    torch.uint8: "uchar",
    torch.bool: "uchar",
}
HALVES = {torch.float16: "half", torch.bfloat16: "bfloat16"}  # 16 bits in memory, computed in float
_NUMPY = {
    "float": np.float32,
    "double": np.float64,
    "long": np.int64,
    "int": np.int32,
    "short": np.int16,
    "char": np.int8,
    "uchar": np.uint8,
    "uint": np.uint32,
    "ulong": np.uint64,
    "Numbers": np.void,  # a struct, given as its bytes
    "Draw": np.void,
}
# Only the hot loops of PoCL's wheel suffer from vload8 and fma(): it leaves them as calls. A GPU has no such qualms, and
# may insist on alignment.
_PRELUDE = f"#define ON_GPU {int(is_gpu)}\n" + (CL / "prelude.cl").read_text()
if is_gpu and "NVIDIA" in device.platform.name:
    _PRELUDE += (CL / "nvidia.cl").read_text()
_HEADER = pocl_header.path(WHEEL) if is_of_wheel(device) else None


# The shape of `cl/rows.cl`: items of a work-group, and elements that an item takes at a time.
GROUP, WIDTH = (256, 4) if is_gpu else (1, 8)
# A kernel copied with its program's work done: asked of drivers of processors only, from OpenCL 2.1 on.
_CLONES = not is_gpu and tuple(map(int, device.version.split()[1].split("."))) >= (2, 1)
# Of a kernel's arguments, by its address: kernels live as long as the process.
_types: dict[int, list[type[np.generic] | None]] = {}
built = 0  # programs so far: a step in which this grows is no measure of others
_INCLUDE = re.compile(r'#include "([a-z_]+\.cl)"\n')

callers.keep()

_quieted = threading.Lock()
_compiling = 0  # threads that compile now
_filters: list[warnings.catch_warnings[None]] = []  # what they found, to be restored


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without pyopencl's word on each compilation that a driver remarks on. Filters of warnings are the whole process's, so the
    first thread that compiles sets ours, and the last takes it back."""
    global _compiling
    with _quieted:
        if not _compiling:
            _filters.append(warnings.catch_warnings())
            _filters[-1].__enter__()
            warnings.simplefilter("ignore", cl.CompilerWarning)
        _compiling += 1
    try:
        yield
    finally:
        with _quieted:
            _compiling -= 1
            if not _compiling:
                _filters.pop().__exit__(None, None, None)


def side_by_side(make: Callable[[Item], Made], items: Sequence[Item]) -> list[Made]:
    """What is made of each, several at a time on a GPU: its driver compiles without Python's lock."""

    def one(item: Item) -> Made:
        with coming.at_once():
            return make(item)

    if not is_gpu or len(items) < 2:
        return [one(x) for x in items]
    with ThreadPoolExecutor(COMPILERS, initializer=beside.by_a_pool) as compilers:
        return list(compilers.map(one, items))


@functools.cache
def build(source: str, name: str, *types: tuple[str, str]) -> cl.Kernel | Coming:
    """The kernel `name` of a source, its arguments typed by its own signature; `types` are macros that stand for C types."""
    global built
    built += 1
    return coming.build(name, lambda: _built(source, name, types))


def _built(source: str, name: str, types: tuple[tuple[str, str], ...]) -> cl.Kernel:
    global built
    whole, options = _PRELUDE + source, ["-w"]
    if _HEADER is not None:
        whole, options = pocl_header.declarations(_HEADER, whole) + whole, [*options, f"-D{pocl_header.GUARD}"]
    there = beside.first(whole, options)
    with _quiet():
        began = perf_counter()
        # Drivers keep what they compiled; pyopencl's own cache would ask PoCL for a binary, which compiles everything twice.
        program = cl.Program(context, whole).build(options, cache_dir=False)
        beside.built(whole, options, there, perf_counter() - began)
    kernel = cl.Kernel(program, name)
    signature = re.search(rf"__kernel\s[^;{{}}]*\bvoid\s+{name}\s*\(([^)]*)\)", source)
    assert signature, name
    known = dict(types)
    arguments = []
    for declared in signature[1].split(","):
        words = declared.replace("const", "").split()
        arguments.append(None if "*" in declared else _NUMPY[known.get(words[0], words[0])])
    kernel.set_scalar_arg_dtypes(arguments)
    _types[kernel.int_ptr] = arguments
    built += coming.ahead  # it is there in another step than it was asked for
    return kernel


def with_arguments(kernel: cl.Kernel | Coming, arguments: Sequence[object]) -> cl.Kernel:
    """The same kernel once more, with arguments of its own that stay as they are until others are set."""
    kernel = coming.kernel(kernel)
    # On PoCL making one from its program takes 300 us, and an operator over rows that a mask selects is noted down each time.
    own = kernel.clone() if _CLONES else cl.Kernel(kernel.program, kernel.function_name)
    for at, (kind, value) in enumerate(zip(_types[kernel.int_ptr], arguments, strict=True)):
        own.set_arg(at, value if kind in (None, np.void) else kind(value))
    return own


def kernel(file: str, name: str, **macros: str | int) -> cl.Kernel | Coming:
    """The kernel `name` of `cl/<file>.cl`, with macros defined; a macro may be a C type, such as T="float"."""
    return _kernel(file, name, tuple(sorted(macros.items())))


@functools.cache
def _kernel(file: str, name: str, macros: tuple[tuple[str, str | int], ...]) -> cl.Kernel | Coming:
    defines = "".join(f"#define {key} {value}\n" for key, value in macros)
    types = [(key, value) for key, value in macros if isinstance(value, str) and value in _NUMPY]
    return build(defines + text(file), name, *types)


@functools.cache
def text(file: str) -> str:
    """`cl/<file>.cl`, with what it includes."""
    return _INCLUDE.sub(lambda found: (CL / found[1]).read_text(), (CL / f"{file}.cl").read_text())


def rows_kernel(
    file: str,
    name: str,
    dtype: torch.dtype,
    rows: int,
    columns: int,
    made: torch.dtype | None = None,
    **macros: str | int,
) -> cl.Kernel | Coming:
    """A kernel of a file that includes `rows.cl`, with teams that suit so many rows of so many neighbouring elements."""
    shape = {"GROUP": GROUP, "V": WIDTH, "LANES": lanes(rows, columns)}
    return kernel(file, name, **elements(dtype, made), **shape | macros)


def elements(dtype: torch.dtype, made: torch.dtype | None = None) -> dict[str, str]:
    """The macros of a kernel that reads tensors of one dtype and writes them (`made`: of another); see `cl/prelude.cl`."""
    made = made or dtype
    return {
        "T": C_TYPE[computed(dtype)],
        "S": "ushort" if dtype in HALVES else C_TYPE[dtype], "STORED": HALVES.get(dtype, "plain"),
        "O": "ushort" if made in HALVES else C_TYPE[made], "MADE": HALVES.get(made, "plain"),
    }  # fmt: skip


def computed(dtype: torch.dtype) -> torch.dtype:
    """What kernels compute in for a dtype in memory."""
    return torch.float32 if dtype in HALVES else dtype


def floating(*dtypes: torch.dtype) -> bool:
    """Whether kernels can load, compute in and store these floating-point numbers."""
    return all(dtype in HALVES or (dtype.is_floating_point and supported(dtype)) for dtype in dtypes)


def lanes(rows: int, columns: int) -> int:
    """Items that walk one row side by side: a line of the cache at least, more where rows alone would not fill the device."""
    count = 1
    while count < min(GROUP, columns) and (count < 32 or rows * count < device.max_compute_units * 1024):
        count *= 2
    return count


def supported(dtype: torch.dtype) -> bool:
    """Whether kernels can compute in this dtype."""
    return dtype in C_TYPE and (fp64 or dtype != torch.float64)
