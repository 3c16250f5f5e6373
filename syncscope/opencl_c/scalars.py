"""The types of OpenCL C's numbers: their names and bits, of a literal, of what two are computed to."""

from __future__ import annotations

import re

SCALARS = ("bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "half", "float", "double")
SIZES = {"size_t": "ulong", "ptrdiff_t": "long", "intptr_t": "long", "uintptr_t": "ulong"}
BITS = dict(zip(SCALARS, (8, 8, 8, 16, 16, 32, 32, 64, 64, 16, 32, 64), strict=True))
FLOATING = {"half", "float", "double"}
UNSIGNED = {"unsigned": "uint", "unsigned int": "uint", "unsigned char": "uchar", "unsigned short": "ushort"}
UNSIGNED |= {"unsigned long": "ulong", "signed": "int", "signed char": "char", "long int": "long", "short int": "short"}
TYPE = re.compile(f"({'|'.join(SCALARS)})(2|3|4|8|16)?")


def of_literal(text: str) -> str:
    """The type of a number as it is written."""
    text = text.lower()
    if (not text.startswith("0x") and re.search(r"[.e]", text)) or "." in text:
        return {"f": "float", "h": "half"}.get(text[-1:], "double")
    if re.fullmatch(r"\d+f", text):
        return "float"
    return ("u" if "u" in text else "") + ("long" if "l" in text else "int")


def wider(left: str, right: str) -> str:
    """The type of an operation between two."""
    if left == right:
        return left
    if not left or not right:
        return ""
    vector = next((t for t in (left, right) if t[-1:].isdigit()), "")
    return vector or max(left, right, "int", key=SCALARS.index)
