"""Nanoseconds as milliseconds: the number for a file, and in words."""

from __future__ import annotations


def ms(ns: float | None) -> float | None:
    """Milliseconds, exact to the nanosecond; None stays None."""
    return None if ns is None else round(ns / 1e6, 6)


def in_ms(ns: float, unit: str = " ms") -> str:
    """`12.34 ms`; without the unit for a column that has it in its head."""
    return f"{ns / 1e6:.2f}{unit}"


def about_ms(ns: float) -> str:
    """`12.3 ms`, two decimals below a millisecond, and seconds from one on: for a sentence that gives an estimate."""
    if ns >= 1e9:
        return f"{ns / 1e9:.2f} s"
    return f"{ns / 1e6:.1f} ms" if ns >= 1e6 or ns == 0 else in_ms(ns)
