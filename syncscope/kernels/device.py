"""Which OpenCL device stands behind `torch.device("ocl")`: a GPU, else the system's PoCL, else the wheel's."""

from __future__ import annotations

import importlib.metadata
import os
import re
import warnings
from dataclasses import dataclass
from time import sleep

import pyopencl as cl

from syncscope import opencl_driver
from syncscope.errors import UserError
from syncscope.kernels import pocl_cpu

ENV = "SYNCSCOPE_OCL_DEVICE"
WHEEL = "pocl-binary-distribution"


@dataclass(frozen=True, slots=True)
class Info:
    """What a reader of measurements must know about the device."""

    name: str
    platform: str
    driver: str
    kind: str  # GPU, CPU or ACCELERATOR
    compute_units: int
    memory: int  # bytes
    max_allocation: int  # bytes
    fp64: bool

    @property
    def total_memory(self) -> int:
        """`memory`, as `torch.cuda.get_device_properties` calls it."""
        return self.memory

    @property
    def multi_processor_count(self) -> int:
        """`compute_units`, as CUDA calls them."""
        return self.compute_units


NO_DRIVER = "install your GPU's OpenCL driver, or `pip install pocl-binary-distribution` to run on the CPU"


def devices() -> dict[str, cl.Device]:
    """Every OpenCL device by its `platform:device` numbers.

    Raises:
        UserError: no platform at all.
    """
    try:
        platforms = cl.get_platforms()
    except cl.LogicError as error:  # the loader's CL_PLATFORM_NOT_FOUND_KHR
        said, hint = opencl_driver.unnamed(()) or (f"no OpenCL platform found ({error})", NO_DRIVER)
        raise UserError(said, hint) from error
    found = {}
    for i, platform in enumerate(platforms):
        for j, device in enumerate(platform.get_devices()):
            found[f"{i}:{j}"] = device
    if not found:
        raise UserError("the OpenCL platforms here have no device", NO_DRIVER)
    return found


def _pocl(device: cl.Device) -> str:
    """The version of PoCL, or "" of another driver."""
    found = re.search(r"PoCL (\d+\.\d+)", device.platform.version)
    return found[1] if found else ""


def is_of_wheel(device: cl.Device) -> bool:
    """Whether the driver is the PoCL that came by pip."""
    try:
        return _pocl(device) == importlib.metadata.version(WHEEL)
    except importlib.metadata.PackageNotFoundError:
        return False


def _rank(device: cl.Device) -> tuple[int, int, float]:
    """Smallest is best: a GPU, then drivers of the system, then the wheel's PoCL; of two PoCLs the newer."""
    is_gpu = bool(device.type & cl.device_type.GPU)
    return 0 if is_gpu else 1, int(is_of_wheel(device)), -float(_pocl(device) or 0)


def choose(wish: str | None = None) -> cl.Device:
    """The device to use; `wish` (else the environment's SYNCSCOPE_OCL_DEVICE) is part of a name, or `platform:device`.

    Raises:
        UserError: no OpenCL at all, or the wish names nothing that is here; the hint lists what is.
    """
    found = devices()
    wish = os.environ.get(ENV, "") if wish is None else wish
    if not wish:
        best = min(found.values(), key=_rank)
        if lost := opencl_driver.unnamed(one.platform.name for one in found.values()):
            warnings.warn(f"{lost[0]}. Until then ocl is {best.name.strip()}. {lost[1]}", stacklevel=2)
        return best
    if wish in found:
        return found[wish]
    for device in sorted(found.values(), key=_rank):
        if wish.lower() in f"{device.name} {device.platform.name} {device.platform.version}".lower():
            return device
    here = "; ".join(f"{number} is {device.name.strip()} ({device.platform.name})" for number, device in found.items())
    raise UserError(f"{ENV}={wish!r} names no OpenCL device", f"there is: {here}")


def info() -> Info:
    """The chosen device, for reports and rooflines."""
    return Info(
        name=device.name.strip(),
        platform=f"{device.platform.name} ({device.platform.version})",
        driver=device.driver_version,
        kind=next((kind for kind in ("GPU", "ACCELERATOR") if device.type & getattr(cl.device_type, kind)), "CPU"),
        compute_units=device.max_compute_units,
        memory=device.global_mem_size,
        max_allocation=device.max_mem_alloc_size,
        fp64=fp64,
    )


def opened(device: cl.Device) -> cl.Context:
    """A context of the device. Where there is no memory for it, it is asked for again: what builds kernels for another program
    leaves within seconds.

    Raises:
        UserError: there is none later, either.
    """
    pauses = list(PAUSES)
    while True:
        try:
            return cl.Context([device])
        except cl.Error as error:
            if error.code not in _FULL:
                raise
            if not pauses:
                raise UserError(f"the driver opens no context on {device.name.strip()} ({error})", NO_ROOM) from error
        sleep(pauses.pop(0))


PAUSES = (0.5, 1.0, 2.0, 4.0)  # seconds before the next try
# What drivers say where there is no memory: NVIDIA's speaks of the host's where the device's own is taken. To pyopencl only the
# first of them is an error of memory.
_FULL = (
    cl.status_code.MEM_OBJECT_ALLOCATION_FAILURE,
    cl.status_code.OUT_OF_HOST_MEMORY,
    cl.status_code.OUT_OF_RESOURCES,
)
NO_ROOM = (
    "the device's memory is full, or this machine's: end other programs that use the device, or start fewer at a time; "
    "SYNCSCOPE_OCL_DEVICE names another device"
)
device = choose()
pocl_cpu.name_unknown(device)
context = opened(device)
is_gpu = bool(device.type & cl.device_type.GPU)
fp64 = bool(device.double_fp_config)
atomics64 = "cl_khr_int64_base_atomics" in device.extensions
