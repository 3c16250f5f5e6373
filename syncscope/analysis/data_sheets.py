"""The ceilings of devices as their vendors' data sheets have them."""

from __future__ import annotations

from syncscope.analysis.roofline import Ceilings

# Memory in GB/s; TFLOPS of products in float32, in TF32 (0: it has none), and in 16 bits, all dense. The SXM or OAM card where
# none is named; of those that the name of a device begins like, the first counts.
SHEETS = {
    "V100": (900, 15.7, 0, 125),
    "A100-SXM4-80GB": (2039, 19.5, 156, 312),
    "A100 80GB": (1935, 19.5, 156, 312),
    "A100": (1555, 19.5, 156, 312),
    "H100 PCIe": (2000, 51, 378, 756),
    "H100": (3350, 67, 495, 989),
    "H200": (4800, 67, 495, 989),
    "B200": (8000, 80, 1125, 2250),
    "MI250": (3277, 90.5, 0, 362),
    "MI300X": (5300, 163.4, 653.7, 1307),
}


def ceilings_of(name: str) -> Ceilings | None:
    """The ceilings of a device by its name; None where its data sheet is not here."""
    sheet = next((sheet for key, sheet in SHEETS.items() if key in name), None)
    if sheet is None:
        return None
    memory, plain, tf32, half = sheet
    return Ceilings(memory * 1e9, plain * 1e12, half * 1e12, tf32 * 1e12)


def source_of(name: str) -> str:
    """Where `ceilings_of` has them from, in words."""
    return f"data sheet of {name}, dense; TF32 where kernels are called so"
