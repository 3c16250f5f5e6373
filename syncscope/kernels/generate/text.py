"""Pieces of OpenCL C that both shapes of a contraction are written with: loops from flat numbers, places from loops.

Kernels compute in T; operands and bias lie in memory as S, the result as O, and are read and written by LOAD and STORE.
"""

from __future__ import annotations

import functools
import itertools
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from syncscope.kernels.generate.ir import AXES, Access, Contraction, Index, Ints

# Division by a number known at the launch, for dividends below 2 ** 31 (Granlund and Montgomery, 1994, figure 4.1).
DIVIDE = "#define DIVIDE(x, by) ((int)((mul_hi((uint)(x), (uint)p.by##_factor) + (uint)(x)) >> p.by##_shift))\n"


def divided(by: int) -> tuple[int, int]:
    """The factor and the shift that DIVIDE takes."""
    shift = (by - 1).bit_length()
    return (1 << 32) * ((1 << shift) - by) // by + 1, shift


@dataclass(slots=True)
class Fields:
    """The numbers that a kernel takes in one struct: sizes and steps, by name. What is 0 or 1 is written out instead."""

    values: dict[str, int] = field(default_factory=dict)

    def __call__(self, name: str, value: int) -> str:
        """The C expression of a number."""
        self.values[name] = value
        return f"p.{name}"

    def divisor(self, name: str, value: int) -> str:
        """As a call, and `DIVIDE(x, name)` works."""
        self.values[f"{name}_factor"], self.values[f"{name}_shift"] = divided(value)
        return self(name, value)

    def declaration(self) -> str:
        """The struct's C type, `Numbers`."""
        return f"typedef struct {{ int {', '.join(self.values)}; }} Numbers;\n"

    def packed(self) -> bytes:
        """The struct's bytes."""
        return struct.pack(f"{len(self.values)}I", *(value & 0xFFFFFFFF for value in self.values.values()))


@functools.cache
def template(name: str) -> Callable[..., str]:
    """`<name>.cl` of this folder, as a function of its parts: each `@part@` is replaced by the argument of that name."""
    text = (Path(__file__).parent / f"{name}.cl").read_text().partition("\n\n")[2]  # behind what it says of itself
    pieces = re.split(r"@(\w+)@", text)
    names = set(pieces[1::2])

    def filled(**parts: object) -> str:
        assert set(parts) == names, (name, set(parts) ^ names)
        return "".join(
            str(parts[piece]) if odd else piece for piece, odd in zip(pieces, itertools.cycle((0, 1)), strict=False)
        )

    return filled


def loops(fields: Fields, axis: str, sizes: Ints, flat: str) -> tuple[str, list[str]]:
    """Statements that take the number of an element on an axis apart, and the names of its loops."""
    names, lines, rest = [], [], flat
    for i in range(len(sizes) - 1, 0, -1):
        size = fields.divisor(f"{axis}{i}", sizes[i])
        lines.append(f"const int {flat}_{i} = {rest} - DIVIDE({rest}, {axis}{i}) * {size};")
        names.append(f"{flat}_{i}")
        if i > 1:
            lines.append(f"const int {flat}_q{i} = DIVIDE({rest}, {axis}{i});")
        rest = f"{flat}_q{i}" if i > 1 else f"DIVIDE({rest}, {axis}{i})"
    if sizes:
        names.append(rest)
    return " ".join(lines), names[::-1]


def place(fields: Fields, label: str, axis: str, index: Index, names: list[str]) -> str:
    """What the loops of one axis add to an index; "0" if nothing."""
    parts = []
    for i, (step, name) in enumerate(zip(getattr(index, axis), names, strict=True)):
        if step:
            factor = "" if step == 1 else fields(f"{label}_{axis}{i}", step) + " * "
            parts.append(f"{'(long)' if axis == 'z' else ''}{factor}{name}")
    return " + ".join(parts) or "0"


def start(fields: Fields, label: str, index: Index, z_names: list[str]) -> str:
    """An index before the loops of m, n and k."""
    first = f"{fields(f'{label}_start', index.start)} + " if index.start else ""
    return first + place(fields, label, "z", index, z_names)


def inside(fields: Fields, label: str, access: Access, given: list[str]) -> str:
    """Whether the bounded indexes, written as C, are in their ranges; "" if there are none."""
    sizes = [fields(f"{label}_size{j}", size) for j, (_, size) in enumerate(access.inside)]
    return " && ".join(f"(uint)({g}) < (uint){size}" for g, size in zip(given, sizes, strict=True))


def result(c: Contraction, x: str, at: str, bias: str) -> str:
    """The statement that turns a sum into an element of the result."""
    return f"{{ {_finished(c, x, f'LOAD(bias, {bias})')} STORE({c.then}, out, {at}); }}"


def results(c: Contraction, sums: list[str], at: str, bias: str) -> str:
    """The statement that turns sums into neighbours of the result, which are one store. They are within one loop of n."""
    step = c.bias.n[-1] if c.bias is not None and c.bias.n else 0
    # One that is the same for all is read once: the compiler must think that it may lie where results are written.
    once = f"const T given = LOAD(bias, {bias});" if c.bias is not None and not step else ""
    given = ["given" if once else f"LOAD(bias, {bias} + {lane * step})" for lane in range(len(sums))]
    each = (f"{{ {_finished(c, x, given[lane])} made[{lane}] = {c.then}; }}" for lane, x in enumerate(sums))
    names = ", ".join(f"made[{lane}]" for lane in range(len(sums)))
    vector = f"(JOIN(T, {len(sums)}))({names})"
    return f"{{ T made[{len(sums)}]; {once} {' '.join(each)} STORE{len(sums)}({vector}, out + {at}); }}"


def _finished(c: Contraction, x: str, bias: str) -> str:
    """Variables that `then` is written in; a bias that it asks for as `y` is not added."""
    if c.bias is not None and re.search(r"\by\b", c.then):
        return f"const T y = {bias}, x = alpha * {x};"
    return f"const T x = alpha * {x}" + (f" + beta * {bias};" if c.bias is not None else ";")


def arguments(c: Contraction, made: str = "O") -> str:
    """What comes after the operands, in the order of `contract`: bias, result, factors, numbers."""
    bias = "__global const S *bias, long bias_at, " if c.bias is not None else ""
    return f"{bias}__global {made} *out, long out_at, T alpha, T beta, Numbers p"


def fits(c: Contraction) -> bool:
    """Whether all places, within one step of z, can be counted in 31 bits."""
    indexes = (c.a.at, c.b.at, c.out, *([] if c.bias is None else [c.bias]))
    spans = [
        abs(index.start)
        + sum(
            abs(step) * (size - 1)
            for axis in AXES[1:]
            for size, step in zip(getattr(c, axis), getattr(index, axis), strict=True)
        )
        for index in indexes
    ]
    return bool(max(*spans, c.size("m") * c.size("n"), c.size("k")) < 1 << 31)
