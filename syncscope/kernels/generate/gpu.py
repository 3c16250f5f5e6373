"""A contraction in the shape of a GPU: tiles in local memory, blocks of 4 x 4 in registers.

A work-group makes a tile of bm x bn. Of each operand it holds the next bk steps of k in local memory, k outermost, twice: while
the items multiply from one half they fetch into registers what then goes to the other half, and one barrier a step is enough.
Halves are widened as they are fetched. For tensor cores they stay as they are, and two neighbours of k, floats too, are a word
of local memory; a warp makes a block of 8 tm x 4 tn.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from syncscope.kernels.generate import tensor_cores
from syncscope.kernels.generate.block import Block, Schedule, by_items, by_warps
from syncscope.kernels.generate.ir import Access, Contraction, Index, deepened
from syncscope.kernels.generate.tensor_cores import Kind
from syncscope.kernels.generate.text import (
    DIVIDE,
    Fields,
    arguments,
    inside,
    loops,
    place,
    result,
    results,
    start,
    template,
)

BAND = 8  # tiles of columns that are made side by side, row of tiles by row, so that they share what the cache holds


@dataclass(frozen=True, slots=True)
class Fetch:
    """How a group brings bk x width elements of an operand: neighbours of an item lie along an axis."""

    along: str  # "k", or the operand's own axis
    wide: int  # neighbours that are one load: four, or of halves that are copied eight; 0 where they come one by one
    lanes: int  # neighbours that an item takes in one go
    across: int  # items side by side
    rounds: int

    @staticmethod
    def of(along: str, wide: int, s: Schedule, width: int) -> Fetch | None:
        """None where the tile cannot be dealt out evenly, or an item's neighbours of k not in pairs where cores want them."""
        run, other = (s.bk, width) if along == "k" else (width, s.bk)
        for lanes in (wide,) if wide else sorted((1, 2, 4), key=lambda x: (x != s.lanes, x)):
            across = run // lanes
            if across and run % lanes == 0 and s.items % across == 0 and other % (s.items // across) == 0:
                rounds = other // (s.items // across)
                if not s.cores or s.copied or (lanes if along == "k" else rounds) % 2 == 0:
                    return Fetch(along, wide, lanes, across, rounds)
        return None


def contiguous(c: Contraction, access: Access, axis: str) -> str:
    """The axis on which neighbours of an operand lie close together for longest."""

    def run(x: str) -> float:
        sizes, steps = getattr(c, x), getattr(access.at, x)
        return sizes[-1] / abs(steps[-1]) if sizes and steps[-1] else 0.0

    return "k" if run("k") > run(axis) else axis


def wide(c: Contraction, access: Access, along: str, aligned: bool, run: int = 4) -> bool:
    """Whether any `run` neighbours that begin at a multiple of so many are one aligned load."""
    sizes, steps = getattr(c, along), getattr(access.at, along)
    if not aligned or not sizes or steps[-1] != 1 or access.at.start % run:
        return False
    if any(getattr(index, along)[-1] for index, _ in access.inside):  # neighbours may not be inside together
        return False
    if sizes[-1] % run and not access.padded:
        return False
    others = [s for x in "zmnk" for s in getattr(access.at, x)[: -1 if x == along else None]]
    return all(step % run == 0 for step in others)


def steady(c: Contraction, s: Schedule) -> bool:
    """Whether the bk steps that are fetched together never leave the innermost loop of k."""
    return len(c.k) > 1 and c.k[-1] % s.bk == 0


def eights(c: Contraction, aligned: tuple[bool, ...]) -> bool:
    """Whether both operands can be brought eight neighbours at a time, which halves must be to be copied."""
    sides = zip((c.a, c.b), "mn", aligned, strict=False)
    return all(wide(c, access, contiguous(c, access, axis), even, 8) for access, axis, even in sides)


def fetches(c: Contraction, s: Schedule, aligned: tuple[bool, ...], halves: bool) -> tuple[Fetch, Fetch] | None:
    """How both operands are brought; None where a schedule cannot. `aligned` says of the operands and the result whether they
    begin at a multiple of four elements, of halves eight."""
    along = contiguous(c, c.a, "m"), contiguous(c, c.b, "n")
    run = 8 if halves and s.copied else 4
    if run == 8 and not eights(c, aligned):
        return None
    a = Fetch.of(along[0], run * wide(c, c.a, along[0], aligned[0]), s, s.bm)
    b = Fetch.of(along[1], run * wide(c, c.b, along[1], aligned[1]), s, s.bn)
    return None if a is None or b is None else (a, b)


def copied_as(c: Contraction, s: Schedule, aligned: tuple[bool, ...]) -> Kind:
    """What tiles of floats for TF32 are made of: "rounded" ones are multiplied as they were copied, in whole vectors."""
    how = fetches(c, s, aligned, False)
    return (
        "rounded"
        if how and c.a.rounded and c.b.rounded and all(side.wide for side in how) and s.tn % 4 == 0
        else "once"
    )


def packed(c: Contraction) -> Contraction | None:
    """The contraction with its left operand copied first, [z][k][m], so that k may be walked in the order that suits the right
    one: what is seen through windows then lies inside or outside for many steps. None where this would not help."""
    if not c.b.inside or c.a.inside or len(c.m) > 1 or contiguous(c, c.b, "n") != "n" or wide(c, c.b, "n", True):
        return None
    d = deepened(c)
    if len(d.k) < 2 or d.k[-1] % 8:
        return None
    width = -(-d.size("m") // 4) * 4
    shared = not any(d.a.at.z)
    z = [0 if shared else math.prod(d.z[i + 1 :]) * d.size("k") * width for i in range(len(d.z))]
    k = [math.prod(d.k[i + 1 :]) * width for i in range(len(d.k))]
    return replace(d, a=Access(Index(0, tuple(z), (1,) * len(d.m), (0,) * len(d.n), tuple(k))))


def packing(c: Contraction) -> tuple[str, bytes, int]:
    """The kernel `<name>_pack_a` that makes the copy for `packed`, and how many elements it has."""
    d, fields = deepened(c), Fields()
    width, depth, copies = -(-d.size("m") // 4) * 4, d.size("k"), d.size("z") if any(d.a.at.z) else 1
    fields.divisor("width", width)
    fields.divisor("depth", depth)
    total = fields("total", copies * depth * width)
    z_lines, z_names = loops(fields, "z", d.z, "z")
    m_lines, m_names = loops(fields, "m", d.m, "m")
    k_lines, k_names = loops(fields, "k", d.k, "k")
    at = " + ".join(
        (
            start(fields, "x", d.a.at, z_names),
            place(fields, "x", "m", d.a.at, m_names),
            place(fields, "x", "k", d.a.at, k_names),
        )
    )
    text = template("pack")(
        divide=DIVIDE, name=c.name, total=total, m=fields("M", d.size("m")), loops=f"{z_lines} {m_lines} {k_lines}", at=at,
        fields=fields.declaration(),
    )  # fmt: skip
    return text, fields.packed(), copies * depth * width


def source(c: Contraction, s: Schedule, aligned: tuple[bool, ...], kind: Kind = "thrice") -> tuple[str, bytes]:
    """The kernel `c.name` and the numbers it takes. With `split` its result is the workspace, row-major (part, z, m, n).
    `kind` says what tensor cores multiply, and how often, where the schedule has them.

    Raises:
        ValueError: this tile cannot be dealt out to these items.
    """
    kind = copied_as(c, s, aligned) if s.copied and kind == "once" else kind
    fields = Fields()
    m, n, k = (fields(x.upper(), c.size(x)) for x in "mnk")
    z_lines, z_names = loops(fields, "z", c.z, "z")
    how_a, how_b = fetches(c, s, aligned, s.cores and kind == "halves") or (None, None)
    if how_a is None or how_b is None:
        raise ValueError(f"{s} cannot fetch its operands")
    a = _Side(c, s, fields, "a", c.a, "m", how_a, z_names, kind)
    b = _Side(c, s, fields, "b", c.b, "n", how_b, z_names, kind)
    block = by_warps(s, kind, (how_a.along, how_b.along)) if s.cores else by_items(s)
    z_and_part = (
        f"const int z = get_group_id(1) / {(parts := fields('parts', s.split))}, part = get_group_id(1) % {parts};"
        if s.split > 1
        else "const int z = get_group_id(1), part = 0;"
    )
    nothing = " ".join(f"{block.sum.format(lane=lane)} = 0;" for lane in range(block.lanes))
    chunk = fields("chunk", -(-c.size("k") // (s.split * s.bk)) * s.bk)
    store = _store(c, s, block, fields, z_names, aligned[2], s.cores and kind == "thrice")
    text = template("contraction")(
        divide=DIVIDE, products=tensor_cores.text(kind, s.copied) if s.cores else "", name=c.name,
        fetching=_RAW if s.cores and kind == "halves" else _WIDENED, arguments=arguments(c, "T" if s.split > 1 else "O"),
        items=s.items, m=m, n=n, k=k, bm=s.bm, bn=s.bn, tm=s.tm, band=BAND, chunk=chunk, z_and_part=z_and_part,
        z_lines=z_lines, tiles=block.tiles, sums=block.kind, vectors=block.vectors, nothing=nothing,
        begin=a.begin + b.begin, walk=_walk(s, block, a, b, chunk), store=block.end + store, fields=fields.declaration(),
    )  # fmt: skip
    return text, fields.packed()


def _walk(s: Schedule, block: Block, a: _Side, b: _Side, chunk: str) -> str:
    """The walk along k: what comes is fetched while what is there is multiplied."""
    if s.copied:
        return template("copied")(
            bk=s.bk, stages=s.stages, left=s.stages - 2, chunk=chunk, fetch=a.fetch + b.fetch, multiply=block.multiply
        )
    return template("fetched")(
        bk=s.bk, fetch=a.fetch + b.fetch, keep_first=a.keep("0") + b.keep("0"), keep=a.keep("now") + b.keep("now"),
        multiply=block.multiply,
    )  # fmt: skip


# What a tile in local memory is made of (E), and how it is fetched.
_WIDENED = "#define E T\n#define FETCH(p, i) LOAD(p, i)\n#define FETCH4(p) LOAD4(p)\n"
_RAW = "#define E ushort\n#define FETCH(p, i) (p)[i]\n#define FETCH4(p) (*(__global const ushort4 *)(p))\n"


class _Side:
    """The text that brings one operand: `begin` before the loop, `fetch` to registers, `keep` to local memory."""

    def __init__(
        self, c: Contraction, s: Schedule, fields: Fields, label: str, access: Access, axis: str, how: Fetch,
        z_names: list[str], kind: Kind,
    ) -> None:  # fmt: skip
        x, own = label, how.along != "k"
        self.how, self.kind = how, kind
        size = f"p.{axis.upper()}"
        down = s.items // how.across
        free_count = (1 if how.wide else how.lanes) if own else how.rounds
        # Items beyond the matrix fetch its last elements again, and keep nothing of what they make.
        last = f"({size} - 1) / {how.wide} * {how.wide}" if how.wide and own else f"{size} - 1"
        spot = f"{axis}0 + {x}_spot" + (" + j" if own else f" + j * {down}")
        free_lines, free = loops(fields, axis, getattr(c, axis), f"{x}_free")
        bounds = [index for index, _ in access.inside]
        free_bounds = "".join(
            f" {x}_bound{i}[j] = {start(fields, f'{x}_b{i}', index, z_names)} + "
            f"{place(fields, f'{x}_b{i}', axis, index, free)};"
            for i, index in enumerate(bounds)
        )
        declared = "".join(f", {x}_bound{i}[{free_count}]" for i in range(len(bounds)))
        here, there = f"item % {how.across} * {how.lanes}", f"item / {how.across}"
        spots = (
            f"const int {x}_spot = {here}, {x}_step = {there}"
            if own
            else f"const int {x}_spot = {there}, {x}_step = {here}"
        )
        kept = f"""{"JOIN(E, 4)" if how.wide else "E"} {x}_next[{how.rounds}]{"" if how.wide else f"[{how.lanes}]"};"""
        self.begin = f"""
    {x} += {x}_at + {start(fields, x, access.at, z_names)};
    {spots};
    int {x}_place[{free_count}]{declared};
#pragma unroll
    for (int j = 0; j < {free_count}; j++) {{
        const int {x}_free = min({spot}, {last});
        {free_lines}
        {x}_place[j] = {place(fields, x, axis, access.at, free)};{free_bounds}
    }}
    {"" if s.copied else kept}
"""
        in_pairs = s.cores and not s.copied
        turn = f"2 * ({x}_step + i / 2 * {down}) + i % 2" if in_pairs else f"{x}_step + i * {down}"
        step = turn if own else f"{x}_step" + ("" if how.wide else " + j")
        if steady(
            c, s
        ):  # a step of k stays within the innermost loop: where the others stand is worked out once for all
            k_lines, k = loops(fields, "k", c.k, "k0")
            k[-1] = f"({k[-1]} + {x}_k)"
        else:
            k_lines, k = loops(fields, "k", c.k, f"{x}_k")
            step = f"k0 + {step}"
        j = ("0" if how.wide else "j") if own else "i"
        given = [f"{x}_bound{i}[{j}] + {place(fields, f'{x}_b{i}', 'k', index, k)}" for i, index in enumerate(bounds)]
        # What is read before the end of k is finite or not, as it comes; beyond the end both operands are zero.
        end = "" if steady(c, s) or (c.size("k") and c.size("k") % (s.bk * s.split) == 0) else f"{x}_k < k_end"
        valid = " && ".join(filter(None, (end, inside(fields, x, access, given))))
        at = f"{x}_place[{j}] + {place(fields, x, 'k', access.at, k)}"
        if s.copied:
            load = self._copies(x, own, down, f"{x} + {at}", valid or "1")
        elif how.wide:
            load = f"{x}_next[i] = " + (f"{valid} ? " if valid else "") + f"FETCH4({x} + {at})"
            load += " : (JOIN(E, 4))(0);" if valid else ";"
        else:
            load = f"{x}_next[i][j] = " + (f"{valid} ? FETCH({x}, {at}) : (E)0;" if valid else f"FETCH({x}, {at});")
        lanes = 0 if how.wide else how.lanes
        self.fetch = self._each(f"const int {x}_k = {step}; {k_lines} {load}", how.rounds, lanes)
        if s.copied:
            self._keep = ""
        elif s.cores:
            self._keep = self._each(self._in_words(x, own, down), how.rounds // 2 if own else how.rounds)
        else:
            self._keep = self._each(self._as_it_is(x, own, down), how.rounds, lanes)

    def _copies(self, x: str, own: bool, down: int, at: str, valid: str) -> str:
        """Neighbours that are one load, or one, to where they lie alike."""
        row, column = (f"{x}_step + i * {down}", f"{x}_spot") if own else (f"{x}_spot + i * {down}", f"{x}_step")
        if self.how.wide == 8:
            return f"COPY8(&{x}_tiles[there][{row}][{x.upper()}_COLUMN({row}, {column})], {at}, {valid})"
        if self.kind == "rounded" and not own:  # a float is two halves there
            return f"COPY4(&{x}_tiles[there][{row}][{x.upper()}_COLUMN({row}, 2 * ({column}))], {at}, {valid})"
        if self.how.wide:
            return f"COPY4(&{x}_tiles[there][{row}][{column}], {at}, {valid})"
        return f"COPY(&{x}_tiles[there][{row}][{column} + j], {at}, {valid})"

    def _as_it_is(self, x: str, own: bool, down: int) -> str:
        if self.how.wide and own:
            return f"{x}_tiles[@][{x}_step + i * {down}][{x}_spot / 4] = {x}_next[i];"
        if self.how.wide:
            return " ".join(
                f"((__local T *){x}_tiles[@][{x}_step + {lane}])[{x}_spot + i * {down}] = {x}_next[i].s{lane};"
                for lane in range(4)
            )
        row, column = (
            (f"{x}_step + i * {down}", f"{x}_spot + j") if own else (f"{x}_step + j", f"{x}_spot + i * {down}")
        )
        return f"((__local T *){x}_tiles[@][{row}])[{column}] = {x}_next[i][j];"

    def _in_words(self, x: str, own: bool, down: int) -> str:
        """Neighbours of k in pairs: of two rounds, or of one load."""
        lane = ".s{}" if self.how.wide else "[{}]"

        def word(row: str, column: str, first: str, second: str) -> str:
            return f"{x}_tiles[@][{row}][{column}] = PAIR({x}_next{first}, {x}_next{second});"

        if own:
            words = (
                word(f"{x}_step + i * {down}", f"{x}_spot + {j}", *(f"[2 * i + {h}]{lane.format(j)}" for h in (0, 1)))
                for j in range(self.how.lanes)
            )
        else:
            words = (
                word(f"{x}_step / 2 + {j}", f"{x}_spot + i * {down}", *(f"[i]{lane.format(2 * j + h)}" for h in (0, 1)))
                for j in range(self.how.lanes // 2)
            )
        return " ".join(words)

    def keep(self, half: str) -> str:
        return self._keep.replace("@", half)

    def _each(self, body: str, rounds: int, lanes: int = 0) -> str:
        """For every round `i`, and every neighbour `j` where they come one by one."""
        inner = "" if not lanes else f"#pragma unroll\n            for (int j = 0; j < {lanes}; j++) "
        head = f"#pragma unroll\n        for (int i = 0; i < {rounds}; i++)"
        return f"{head}\n{inner}{{ {body} }}\n" if inner else f"{head} {{ {body} }}\n"


def _store(
    c: Contraction, s: Schedule, block: Block, fields: Fields, z_names: list[str], aligned: bool, again: bool
) -> str:
    """The end of the kernel: each item's sums go to the result, or to its part of the workspace. `again` is whether sums that
    are no number are to be made anew, one after the other."""
    m_lines, m_names = loops(fields, "m", c.m, "m")
    n_lines, n_names = loops(fields, "n", c.n, "n")
    if s.split > 1:
        base = f"out += out_at + ((long)part * (get_num_groups(1) / {'p.parts'}) + z) * p.M * p.N;"
        at_m, at_n, m_lines, n_lines = "m * p.N", "n", "", ""
        whole = c.size("n") % 4 == 0
    else:
        base = f"out += out_at + {start(fields, 'out', c.out, z_names)};"
        at_m, at_n = place(fields, "out", "m", c.out, m_names), place(fields, "out", "n", c.out, n_names)
        whole = aligned and wide(c, Access(c.out), "n", True)
    bias = ""
    bias_line = ""
    if c.bias is not None and s.split == 1:
        bias_line = f"bias += bias_at + {start(fields, 'bias', c.bias, z_names)};"
        bias = f"{place(fields, 'bias', 'm', c.bias, m_names)} + {place(fields, 'bias', 'n', c.bias, n_names)}"
    at = f"{at_m} + {at_n}"
    sums = [block.sum.format(lane=lane) for lane in range(block.lanes)]
    if whole and s.split > 1:
        ends = [f"STORE{block.lanes}_plain((JOIN(T, {block.lanes}))({', '.join(sums)}), out + {at});"]
    elif whole:
        ends = [results(c, sums, at, bias)]
    else:
        ends = [f"out[{at}] = {x};" if s.split > 1 else result(c, x, at, bias) for x in sums]
    inner = "\n".join(
        f"            {{ const int n = {block.column} + {lane}; {n_lines}\n#pragma unroll\n"
        f"            for (int r = 0; r < {s.tm}; r++) {{\n            const int m = {block.row}; {m_lines}\n"
        f"            if (m < p.M && n < p.N) {end} }} }}"
        for lane, end in enumerate(ends)
    )
    store = f"""#pragma unroll
    for (int q = 0; q < {block.vectors}; q++) {{
{inner}
    }}
"""
    if again:
        one = f"out[{at}] = sum;" if s.split > 1 else result(c, "sum", at, bias)
        store = _anew(c, s, block, fields, z_names, one, store)
    return f"""    {base}
    {bias_line}
{store}"""


def _anew(c: Contraction, s: Schedule, block: Block, fields: Fields, z_names: list[str], one: str, store: str) -> str:
    """An item's end by float32's own multiply-add, one element (`one`) after the other, where one of its sums is no number."""
    (m_lines, m), (n_lines, n), (k_lines, k) = (loops(fields, x, getattr(c, x), x) for x in "mnk")

    def load(x: str, access: Access, axis: str, names: list[str]) -> str:
        def at(label: str, index: Index) -> str:
            return f"{place(fields, label, axis, index, names)} + {place(fields, label, 'k', index, k)}"

        bounds = (
            f"{start(fields, f'{x}_b{i}', index, z_names)} + {at(f'{x}_b{i}', index)}"
            for i, (index, _) in enumerate(access.inside)
        )
        value, valid = f"LOAD({x}, {at(x, access.at)})", inside(fields, x, access, list(bounds))
        return f"({valid} ? {value} : 0)" if valid else value

    sums = [block.sum.format(lane=lane) for lane in range(block.lanes)]
    return template("anew")(
        tm=s.tm, vectors=block.vectors, lanes=block.lanes, odd=" | ".join(f"isnan({x})" for x in sums), row=block.row,
        column=block.column, loops=f"{m_lines} {n_lines}", k_loops=k_lines, a=load("a", c.a, "m", m), b=load("b", c.b, "n", n),
        one=one, store=store,
    )  # fmt: skip
