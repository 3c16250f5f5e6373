"""A nest as OpenCL C: a team of work-items walks the elements of a point side by side, and their parts meet in local memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from syncscope.kernels.comprehension.algebra import Poly
from syncscope.kernels.comprehension.fuse import SHARE, Nest
from syncscope.kernels.comprehension.places import Places, nodes, replaced
from syncscope.kernels.comprehension.program import Load, Program, Step
from syncscope.kernels.comprehension.values import HELPERS, Seen, Values, c_name
from syncscope.kernels.elementwise import c_storage, compute_dtype, load, store
from syncscope.kernels.generate.text import DIVIDE, loops
from syncscope.kernels.programs import C_TYPE

Ints = tuple[int, ...]
_SHORT = 8  # a loop of fewer steps has its number written out, so that the compiler may unroll it
_FOLD = {
    "+": "{a} + {b}", "*": "{a} * {b}",
    "min": "({a} != {a} ? {a} : {b} != {b} ? {b} : {a} < {b} ? {a} : {b})",
    "max": "({a} != {a} ? {a} : {b} != {b} ? {b} : {a} > {b} ? {a} : {b})",
}  # fmt: skip
_LIMITS = {
    "float": ("INFINITY", "-INFINITY"), "double": ("(double)INFINITY", "-(double)INFINITY"), "long": ("LONG_MAX", "LONG_MIN"),
    "int": ("INT_MAX", "INT_MIN"), "short": ("SHRT_MAX", "SHRT_MIN"), "char": ("CHAR_MAX", "CHAR_MIN"),
    "uchar": ("UCHAR_MAX", "0"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Schedule:
    """The shape of a work-group: its items, how many of them share a point, and whether neighbours do.

    `ahead` is how many elements an item has under way at a time, `each` how many points it takes one after the other.
    """

    group: int
    deep: int = 1
    along: bool = True
    ahead: int = 1
    each: int = 1

    @property
    def wide(self) -> int:
        """Points that a group works on side by side."""
        return self.group // self.deep


class Written(Values):
    """A nest's kernel: its text, its numbers, the tensors and plain numbers it takes in that order, and its size."""

    def __init__(self, nest: Nest, s: Schedule, name: str, program: Program, strides: Mapping[str, Ints]) -> None:
        self.nest, self.s, self.name = nest, s, name
        places = Places(nest, program.shapes, strides)
        self.points, self.steps = places.points, places.steps
        super().__init__(program, self.points)
        self.outputs = {step.target: None for step in nest.steps if step.target in nest.stored}
        self.scratch: dict[str, str] = {}  # of local memory: its type by its name
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
        self.at = dict(zip(self.points, names, strict=True))
        self.at[SHARE] = "share"
        for wave in self.waves():
            (self.reduce if wave[0].reduced else self.assign)(wave)
        live = "point_ < " + total
        lid = "get_local_id(0)"
        team = f"{lid} / {s.deep}, y = {lid} % {s.deep}" if s.along else f"{lid} % {s.wide}, y = {lid} / {s.wide}"
        head = f"const int me = {lid}, x = {team};" if s.deep > 1 else f"const int x = {lid};"
        first = f"get_group_id(0) * {s.wide * s.each} + x"
        if s.each > 1:
            begin = f"#pragma unroll\n    for (int turn = 0; turn < {s.each}; turn++) {{\n"
            begin += f"    const int point_ = {first} + turn * {s.wide};"
        else:
            begin = f"{{\n    const int point_ = {first};"
        if s.deep > 1:
            begin += f"\n    const int live = {live}, point = min(point_, {total} - 1);"
        else:
            begin += f"\n    if ({live}) {{ const int point = point_;"
        local = "".join(f"    __local {c} {name}[{s.group}];\n" for name, c in self.scratch.items())
        share = "    const int share = get_group_id(1);\n" if nest.shares > 1 else ""
        body = "\n".join(f"    {line}" for line in self.lines)
        end = "}" if s.deep > 1 else "}}"
        parameters = [
            f"__global const {c_storage(self.program.dtypes[t])} *restrict {c_name(t)}, long {c_name(t)}_at"
            for t in self.inputs
        ]
        parameters += [
            f"__global {c_storage(self.program.dtypes[t])} *restrict {c_name(t)}, long {c_name(t)}_at"
            for t in self.outputs
        ]
        parameters += [f"{C_TYPE[self.real]} {c_name(t)}" for t in self.given]
        return f"""
{DIVIDE}{HELPERS}{self.fields.declaration()}
__kernel __attribute__((reqd_work_group_size({s.group}, 1, 1)))
void {self.name}({", ".join((*parameters, "Numbers p"))}) {{
{local}{share}    {head}
    {begin}
    {split}
{body}
    {end}
}}
"""

    def waves(self) -> Iterator[list[Step]]:
        """Steps that one loop can make: what a point has one of as soon as may be, then what is of equal length."""
        own = {step.target for step in self.steps}
        needs = {s.target: {x.tensor for x in nodes(s.value) if isinstance(x, Load)} & own for s in self.steps}
        left, done = list(self.steps), set[str]()
        while left:
            ready = [s for s in left if needs[s.target] <= done]
            first = min(ready, key=lambda s: (bool(self.lengths(s)), not s.reduced))
            kind = bool(first.reduced), self.lengths(first)
            wave = [s for s in ready if kind[1] and (bool(s.reduced), self.lengths(s)) == kind] or [first]
            yield wave
            done |= {s.target for s in wave}
            left = [s for s in left if s not in wave]

    def lengths(self, step: Step) -> Ints:
        return tuple(step.size(n) for n in step.ranges if n not in self.points)

    def assign(self, wave: list[Step]) -> None:
        """Statements without a sum: one once for the point, or several for each of its elements."""
        first = wave[0]
        own = [[n for n in s.ranges if n not in self.points] for s in wave]
        if not own[0]:
            c = C_TYPE[compute_dtype(first.dtype)]
            value = self.typed(first.value, first.dtype, self.lines, None)
            self.lines.append(f"const {c} v_{first.target} = {value};")
            self.keep(first, f"v_{first.target}", self.lines)
            return

        def body(at: str) -> list[str]:
            del at
            inside: list[str] = []
            seen: Seen = {}
            for s in (same(s, names, own[0]) for s, names in zip(wave, own, strict=True)):
                self.keep(s, self.typed(s.value, s.dtype, inside, seen), inside, every=True)
            return inside

        self.loop(own[0], list(self.lengths(first)), 1, body, share=False)

    def keep(self, step: Step, value: str, to: list[str], every: bool = False) -> None:
        """Writes an element, where it is wanted in memory; what a point has one of is one item's to write."""
        if step.target not in self.nest.stored:
            return
        place = f"{c_name(step.target)}_at + {self.index(step.left[0], to)}"
        if not step.sets:
            before = load(step.dtype, c_name(step.target), place, C_TYPE[compute_dtype(step.dtype)])
            value = _FOLD[step.op].format(a=f"({before})", b=f"({value})")
        write = store(step.dtype, c_name(step.target), place, value)
        conditions = [] if self.s.deep == 1 else ["live"] if every else ["live", "y == 0"]
        to.append(f"if ({' && '.join(conditions)}) {{ {write} }}" if conditions else write)

    def reduce(self, wave: list[Step]) -> None:
        """One loop for several reductions, then what the items of a team have is put together."""
        names = [[n for n in s.ranges if n not in self.points] for s in wave]
        types, ahead = {}, self.s.ahead
        for s in wave:
            c = C_TYPE[compute_dtype(s.dtype)]
            types[s.target] = c
            start = {"+": "0", "*": "1", "min": _LIMITS[c][0], "max": _LIMITS[c][1]}[s.op]
            self.lines.append(
                f"{c} a_{s.target}[{ahead}]; for (int u = 0; u < {ahead}; u++) a_{s.target}[u] = {start};"
            )

        def body(at: str) -> list[str]:
            inside: list[str] = []
            seen: Seen = {}
            for s in (same(s, own, names[0]) for s, own in zip(wave, names, strict=True)):
                value, acc = self.typed(s.value, s.dtype, inside, seen), f"a_{s.target}[{at}]"
                fold = _FOLD[s.op].format(a=acc, b="e")
                inside.append(f"{{ const {types[s.target]} e = {value}; {acc} = {fold}; }}")
            return inside

        self.loop(names[0], list(self.lengths(wave[0])), ahead, body, share=self.nest.shares > 1)
        for s in wave:
            acc = f"a_{s.target}"
            for u in range(1, ahead):
                self.lines.append(f"{acc}[0] = {_FOLD[s.op].format(a=f'{acc}[0]', b=f'{acc}[{u}]')};")
        if self.s.deep > 1:
            self.meet(wave, types)
        for s in wave:
            self.lines.append(f"const {types[s.target]} v_{s.target} = a_{s.target}[0];")
            self.keep(s, f"v_{s.target}", self.lines)

    def meet(self, wave: list[Step], types: Mapping[str, str]) -> None:
        """A tree over the items of each team; then all of them know the result."""
        s = self.s
        step = 1 if s.along else s.wide
        slots = {}
        used: dict[str, int] = {}
        for w in wave:
            c = types[w.target]
            used[c] = used.get(c, 0) + 1
            slots[w.target] = f"scratch_{c}_{used[c]}"
            self.scratch[slots[w.target]] = c
        out = self.lines.append
        out(" ".join(f"{slot}[me] = a_{t}[0];" for t, slot in slots.items()))
        out("barrier(CLK_LOCAL_MEM_FENCE);")
        out(f"for (int half_ = {s.deep // 2}; half_; half_ /= 2) {{ if (y < half_) {{")
        for w in wave:
            slot = slots[w.target]
            mine, other = f"one_{w.target}", f"two_{w.target}"
            out(f"        const {types[w.target]} {mine} = {slot}[me], {other} = {slot}[me + half_ * {step}];")
            out(f"        {slot}[me] = {_FOLD[w.op].format(a=mine, b=other)};")
        out("    } barrier(CLK_LOCAL_MEM_FENCE); }")
        first = f"x * {s.deep}" if s.along else "x"
        out(" ".join(f"a_{t}[0] = {slot}[{first}];" for t, slot in slots.items()) + " barrier(CLK_LOCAL_MEM_FENCE);")

    def loop(
        self, names: list[str], sizes: list[int], ahead: int, body: Callable[[str], list[str]], share: bool
    ) -> None:
        """Runs a body over variables, an item of a team taking every `deep`-th element, and several at a time."""
        deep = self.s.deep
        before_at, before_over = dict(self.at), dict(self.over)
        self.over |= {n: (0.0, float(size - 1)) for n, size in zip(names, sizes, strict=True)}
        number = next(self.count)
        if deep == 1 and not share and len(names) > 1 and ahead == 1:  # plain loops, one in another
            self.at |= {n: f"k{number}_{i}" for i, n in enumerate(names)}
            ends = [str(size) if size < _SHORT else self.number(size) for size in sizes]
            own = [self.at[n] for n in names]
            heads = [f"for (int {n} = 0; {n} < {end}; {n}++) {{" for n, end in zip(own, ends, strict=True)]
            lines_ = body("0")
            self.lines.append(" ".join(heads))
            self.lines += [f"    {line}" for line in lines_]
            self.lines.append("}" * len(heads))
        else:
            flat = f"k{number}"
            total = math.prod(sizes)
            split, found = loops(self.fields, f"k{number}_", tuple(sizes), flat)
            self.at |= dict(zip(names, found, strict=True))
            count = str(total) if total < _SHORT and not share else self.number(total)
            begin, end = ("y" if deep > 1 else "0"), count
            if share:
                length = self.number(-(-total // self.nest.shares))
                begin, end = f"share * {length} + {begin}", f"min({count}, share * {length} + {length})"
            self.lines.append(f"int {flat}_ = {begin};")
            lines_ = body("u")
            text = "\n        ".join(lines_)
            if ahead > 1:
                self.lines.append(
                    f"for (; {flat}_ < {end} - {(ahead - 1) * deep}; {flat}_ += {ahead * deep})\n#pragma unroll\n"
                    f"    for (int u = 0; u < {ahead}; u++) {{ const int {flat} = {flat}_ + u * {deep}; {split}\n"
                    f"        {text} }}"
                )
            self.lines.append(
                f"for (; {flat}_ < {end}; {flat}_ += {deep}) {{ const int {flat} = {flat}_, u = 0; {split}\n        {text} }}"
            )
        self.at, self.over = before_at, before_over


def same(step: Step, own: list[str], others: list[str]) -> Step:
    """A statement over other variables than its own."""
    given = {mine: Poly.of(other) for mine, other in zip(own, others, strict=True)}
    return replace(step, value=replaced(step.value, given), left=tuple(q.replaced(given) for q in step.left))
