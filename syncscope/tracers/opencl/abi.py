"""What Python and icd.c share with the drivers: the shape of a dispatch table and of the list of hooks."""

from __future__ import annotations

import ctypes as c

ABI = 4  # as in icd.c
ICD2_TAG = 0x4F50454E434C3331  # "OPENCL1" in the first slot: the loader manages the dispatch
SLOTS = 149  # of the OpenCL 3.0 table; the list is append-only


class Hook(c.Structure):
    """One replaceable function: its name without `cl`, its slot in the dispatch table, the address of our own."""

    _fields_ = (("name", c.c_char_p), ("slot", c.c_int64), ("address", c.c_void_p))


def table_of(handle: int) -> int:
    """Address of the dispatch table that calls on this OpenCL object go through."""
    table = c.c_uint64.from_address(handle).value
    tagged = c.c_uint64.from_address(table).value == ICD2_TAG
    return c.c_uint64.from_address(handle + 8).value if tagged else table
