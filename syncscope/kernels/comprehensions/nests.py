"""A nest as OpenCL C: a team of work-items walks the elements of a point side by side, and their parts meet in local memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from syncscope.kernels.comprehensions.expressions import Poly, Read, reads
from syncscope.kernels.comprehensions.fuse import SHARE, Nest
from syncscope.kernels.comprehensions.places import placed
from syncscope.kernels.comprehensions.program import Ints, Program, Step
from syncscope.kernels.comprehensions.values import HELPERS, Block, Values, c_name
from syncscope.kernels.elementwise import c_storage, compute_dtype, store
from syncscope.kernels.generate.text import DIVIDE, loops
from syncscope.kernels.programs import C_TYPE

HELD = 16  # elements of a tensor that an item may keep
_SHORT = 8  # a loop of fewer steps has its number written out, so that the compiler may unroll it
_EXTREME = "({{a}} != {{a}} ? {{a}} : {{b}} != {{b}} ? {{b}} : {{a}} {} {{b}} ? {{a}} : {{b}})"
_FOLD = {"+": "{a} + {b}", "*": "{a} * {b}", "min": _EXTREME.format("<"), "max": _EXTREME.format(">")}
_LIMITS = {
    "float": ("INFINITY", "-INFINITY"), "double": ("(double)INFINITY", "-(double)INFINITY"), "long": ("LONG_MAX", "LONG_MIN"),
    "int": ("INT_MAX", "INT_MIN"), "short": ("SHRT_MAX", "SHRT_MIN"), "char": ("CHAR_MAX", "CHAR_MIN"),
    "uchar": ("UCHAR_MAX", "0"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Schedule:
    """The shape of a work-group: its items, how many of them share a point, and whether neighbours do.

    `ahead` is how many elements an item has under way at a time, `each` how many points it takes one after the other, and
    `held` whether it keeps what it read of a point for the loops behind, if that is little.
    """

    group: int
    deep: int = 1
    along: bool = True
    ahead: int = 1
    each: int = 1
    held: bool = False

    @property
    def wide(self) -> int:
        """Points that a group works on side by side."""
        return self.group // self.deep


class Written(Values):
    """A nest's kernel: its text, its numbers, the tensors and plain numbers it takes in that order, and its size."""

    def __init__(self, nest: Nest, s: Schedule, name: str, program: Program, strides: Callable[[str], Ints]) -> None:
        self.nest, self.s, self.name = nest, s, name
        self.points, self.steps = placed(nest, strides)
        super().__init__(program, self.points)
        self.outputs = nest.writes
        self.scratch: dict[str, str] = {}  # of local memory: its type by its name
        self.held: dict[
            Ints, dict[Read, tuple[str, torch.dtype]]
        ] = {}  # by the lengths of loops, what was read in them
        self.source = self.text()
        self.numbers = self.fields.packed()

    @property
    def launch(self) -> tuple[Ints, Ints]:
        """The global and the local size."""
        groups = -(-math.prod(self.points.values()) // (self.s.wide * self.s.each))
        return (max(1, groups) * self.s.group, self.nest.shares), (self.s.group, 1)

    def text(self) -> str:
        s, nest = self.s, self.nest
        total = self.fields("points", math.prod(self.points.values()))
        split, names = loops(self.fields, "p", tuple(self.points.values()), "point")
        self.at = dict(zip(self.points, names, strict=True)) | {SHARE: "share"}
        for wave in self.waves():
            (self.reduce if wave[0].reduced else self.assign)(wave)
        lid = "get_local_id(0)"
        team = f"{lid} / {s.deep}, y = {lid} % {s.deep}" if s.along else f"{lid} % {s.wide}, y = {lid} / {s.wide}"
        point = f"get_group_id(0) * {s.wide * s.each} + x"
        turns = "{"
        if s.each > 1:
            turns, point = (
                f"#pragma unroll\n    for (int turn = 0; turn < {s.each}; turn++) {{",
                f"{point} + turn * {s.wide}",
            )
        if s.deep > 1:  # all items of a group meet at its barriers
            head, end = f"const int me = {lid}, x = {team};", "}"
            live = f"const int live = point_ < {total}, point = min(point_, {total} - 1);"
        else:
            head, end, live = f"const int x = {lid};", "}}", f"if (point_ < {total}) {{ const int point = point_;"
        local = "".join(f"    __local {c} {name}[{s.group}];\n" for name, c in self.scratch.items())
        share = "    const int share = get_group_id(1);\n" if nest.shares > 1 else ""
        body = "\n".join(f"    {line}" for line in self.point.lines)
        parameters = [
            f"__global {constant}{c_storage(self.program.dtypes[t])} *restrict {c_name(t)}, long {c_name(t)}_at"
            for constant, tensors in (("const ", self.inputs), ("", self.outputs))
            for t in tensors
        ]
        parameters += [f"{C_TYPE[self.real]} {c_name(t)}" for t in self.given]
        return f"""
{DIVIDE}{HELPERS}{self.fields.declaration()}
__kernel __attribute__((reqd_work_group_size({s.group}, 1, 1)))
void {self.name}({", ".join((*parameters, "Numbers p"))}) {{
{local}{share}    {head}
    {turns}
    const int point_ = {point};
    {live}
    {split}
{body}
    {end}
}}
"""

    def waves(self) -> Iterator[list[Step]]:
        """Steps that one loop can make: what a point has one of as soon as may be, then what is of equal length."""
        own = {step.target for step in self.steps}
        needs = {s.target: {x.tensor for x in reads(s.value) if not x.indexes} & own for s in self.steps}
        left, done = list(self.steps), set[str]()
        while left:
            ready = [s for s in left if needs[s.target] <= done]
            first = min(ready, key=lambda s: (bool(self.lengths(s)), not s.reduced))
            kind = bool(first.reduced), self.lengths(first)
            wave = [s for s in ready if kind[1] and (bool(s.reduced), self.lengths(s)) == kind] or [first]
            yield wave
            done |= {s.target for s in wave}
            left = [s for s in left if s not in wave]

    def inner(self, step: Step) -> list[str]:
        return [n for n in step.ranges if n not in self.points]

    def lengths(self, step: Step) -> Ints:
        return tuple(map(step.size, self.inner(step)))

    def alike(self, wave: Sequence[Step]) -> Iterator[Step]:
        """The statements over variables that all loops of these lengths share."""
        for s in wave:
            yield s.replaced({n: Poly.of(_variable(i)) for i, n in enumerate(self.inner(s))})

    def assign(self, wave: list[Step]) -> None:
        """Statements without a sum: one once for the point, or several for each of its elements."""
        first = wave[0]
        if not self.inner(first):
            value = self.typed(first.value, first.dtype, self.point)
            self.settle(first, value)
            return

        def body(to: Block, at: str) -> None:
            for s in self.alike(wave):
                self.keep(s, self.typed(s.value, s.dtype, to), to, "live")

        self.loop(first, 1, body, share=False)

    def settle(self, step: Step, value: str) -> None:
        """Gives the point its value, which one item writes where it is wanted in memory."""
        self.point.lines.append(f"const {C_TYPE[compute_dtype(step.dtype)]} v_{step.target} = {value};")
        self.keep(step, f"v_{step.target}", self.point, "live && y == 0")

    def keep(self, step: Step, value: str, to: Block, who: str) -> None:
        """Writes an element, where it is wanted in memory."""
        if step.target not in self.nest.stored:
            return
        place = f"{c_name(step.target)}_at + {self.index(step.left[0], to)}"
        write = store(step.dtype, c_name(step.target), place, value)
        to.lines.append(write if self.s.deep == 1 else f"if ({who}) {{ {write} }}")

    def reduce(self, wave: list[Step]) -> None:
        """One loop for several reductions, then what the items of a team have is put together."""
        types = {s.target: C_TYPE[compute_dtype(s.dtype)] for s in wave}
        out, ahead = self.point.lines.append, self.s.ahead
        for s in wave:
            c = types[s.target]
            start = {"+": "0", "*": "1", "min": _LIMITS[c][0], "max": _LIMITS[c][1]}[s.op]
            out(f"{c} a_{s.target}[{ahead}]; for (int u = 0; u < {ahead}; u++) a_{s.target}[u] = {start};")

        def body(to: Block, at: str) -> None:
            for s in self.alike(wave):
                value, sum_ = self.typed(s.value, s.dtype, to), f"a_{s.target}[{at}]"
                to.lines.append(
                    f"{{ const {types[s.target]} e = {value}; {sum_} = {_FOLD[s.op].format(a=sum_, b='e')}; }}"
                )

        self.loop(wave[0], ahead, body, share=self.nest.shares > 1)
        for s in wave:
            for u in range(1, ahead):
                parts = {"a": f"a_{s.target}[0]", "b": f"a_{s.target}[{u}]"}
                out(f"a_{s.target}[0] = {_FOLD[s.op].format(**parts)};")
        if self.s.deep > 1:
            self.meet(wave, types)
        for s in wave:
            self.settle(s, f"a_{s.target}[0]")

    def meet(self, wave: list[Step], types: dict[str, str]) -> None:
        """A tree over the items of each team; then all of them know the result."""
        s, out = self.s, self.point.lines.append
        used: dict[str, list[str]] = {}
        slots = {}
        for w in wave:
            same = used.setdefault(types[w.target], [])
            same.append(f"scratch_{types[w.target]}_{len(same) + 1}")
            slots[w.target] = same[-1]
            self.scratch[same[-1]] = types[w.target]
        out(" ".join(f"{slot}[me] = a_{t}[0];" for t, slot in slots.items()))
        out("barrier(CLK_LOCAL_MEM_FENCE);")
        out(f"for (int half_ = {s.deep // 2}; half_; half_ /= 2) {{ if (y < half_) {{")
        for w in wave:
            slot, mine, other = slots[w.target], f"one_{w.target}", f"two_{w.target}"
            there = f"me + half_ * {1 if s.along else s.wide}"
            out(f"        const {types[w.target]} {mine} = {slot}[me], {other} = {slot}[{there}];")
            out(f"        {slot}[me] = {_FOLD[w.op].format(a=mine, b=other)};")
        out("    } barrier(CLK_LOCAL_MEM_FENCE); }")
        first = f"x * {s.deep}" if s.along else "x"
        out(" ".join(f"a_{t}[0] = {slot}[{first}];" for t, slot in slots.items()) + " barrier(CLK_LOCAL_MEM_FENCE);")

    def loop(self, step: Step, ahead: int, body: Callable[[Block, str], None], share: bool) -> None:
        """Runs a body over a statement's variables, an item of a team taking every `deep`-th element, several at a time."""
        sizes, deep, out = self.lengths(step), self.s.deep, self.point.lines.append
        names, total = [_variable(i) for i in range(len(sizes))], math.prod(sizes)
        before_at, before_over = self.at, self.over
        self.over = self.over | {n: (0.0, float(size - 1)) for n, size in zip(names, sizes, strict=True)}
        flat, to = f"k{next(self.count)}", Block()
        if self.s.held and not share and total <= HELD * deep:  # each item has so few turns that they are written out
            split, found = loops(self.fields, f"{flat}_", sizes, flat)
            self.at = self.at | dict(zip(names, found, strict=True))
            to = Block(made=self.held.setdefault(sizes, {}), turns=-(-total // deep))
            body(to, f"u % {ahead}")
            guard = f"if ({flat} < {total}) " if total % deep else ""
            text = "\n        ".join(to.lines)
            place = f"const int {flat} = {'y' if deep > 1 else '0'} + u * {deep};"
            out(
                f"#pragma unroll\n    for (int u = 0; u < {to.turns}; u++) {{ {place} {guard}{{ {split}\n        {text} }} }}"
            )
        elif deep == 1 and not share and len(names) > 1 and ahead == 1:  # plain loops, one in another
            self.at = self.at | {n: f"{flat}_{i}" for i, n in enumerate(names)}
            ends = [str(size) if size < _SHORT else self.number(size) for size in sizes]
            own = [self.at[n] for n in names]
            heads = [f"for (int {n} = 0; {n} < {end}; {n}++) {{" for n, end in zip(own, ends, strict=True)]
            body(to, "0")
            out(" ".join(heads))
            self.point.lines.extend(f"    {line}" for line in to.lines)
            out("}" * len(heads))
        else:
            split, found = loops(self.fields, f"{flat}_", sizes, flat)
            self.at = self.at | dict(zip(names, found, strict=True))
            count = str(total) if total < _SHORT and not share else self.number(total)
            begin, end = ("y" if deep > 1 else "0"), count
            if share:
                length = self.number(-(-total // self.nest.shares))
                begin, end = f"share * {length} + {begin}", f"min({count}, share * {length} + {length})"
            out(f"int {flat}_ = {begin};")
            body(to, "u")
            text = "\n        ".join(to.lines)
            if ahead > 1:
                out(
                    f"for (; {flat}_ < {end} - {(ahead - 1) * deep}; {flat}_ += {ahead * deep})\n#pragma unroll\n"
                    f"    for (int u = 0; u < {ahead}; u++) {{ const int {flat} = {flat}_ + u * {deep}; {split}\n"
                    f"        {text} }}"
                )
            out(
                f"for (; {flat}_ < {end}; {flat}_ += {deep}) {{ const int {flat} = {flat}_, u = 0; {split}\n        {text} }}"
            )
        self.at, self.over = before_at, before_over


def _variable(i: int) -> str:
    """A variable that a point runs through: no name of a user's."""
    return f"{i} inner"
