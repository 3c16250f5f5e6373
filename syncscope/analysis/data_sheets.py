"""The ceilings of devices as their vendors' data sheets have them: the SXM or OAM cards."""

from __future__ import annotations

from syncscope.analysis.roofline import Ceilings

# Memory in GB/s, TFLOPS of arithmetic in 32 bits (no TF32) and of matrices in 16 bits (dense)
SHEETS = {
    "V100": (900, 15.7, 125),
    "A100": (1555, 19.5, 312),
    "H100": (3350, 67, 989),
    "H200": (4800, 67, 989),
    "B200": (8000, 80, 2250),
    "MI250": (3277, 45.3, 362),
    "MI300X": (5300, 163.4, 1307),
}


def ceilings_of(name: str) -> Ceilings | None:
    """The ceilings of a device by its name; None where its data sheet is not here."""
    sheet = next((sheet for key, sheet in SHEETS.items() if key in name), None)
    return None if sheet is None else Ceilings(sheet[0] * 1e9, sheet[1] * 1e12, sheet[2] * 1e12)


def source_of(name: str) -> str:
    """Where `ceilings_of` has them from, in words."""
    return f"data sheet of {name}, 32 bits without TF32; 16 bits dense"
