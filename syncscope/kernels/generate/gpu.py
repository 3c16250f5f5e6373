"""A contraction in the shape of a GPU: tiles in local memory, blocks of 4 x 4 in registers.

A work-group makes a tile of bm x bn. Of each operand it holds the next bk steps of k in local memory, k outermost, twice: while
the items multiply from one half they fetch into registers what then goes to the other half, and one barrier a step is enough.
Halves are widened as they are fetched. For tensor cores they stay as they are, and two neighbours of k, floats too, are a word
of local memory; a warp makes a block of 8 tm x 4 tn.
"""

from __future__ import annotations

import math
from dataclasses import replace

from syncscope.kernels.generate import tensor_cores
from syncscope.kernels.generate.block import Block, Schedule, by_items, by_warps
from syncscope.kernels.generate.ir import Access, Contraction, Index, deepened
from syncscope.kernels.generate.operands import Side, contiguous, copied_as, fetches, wide
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
    a, b = Side(c, s, fields, "a", how_a, z_names, kind), Side(c, s, fields, "b", how_b, z_names, kind)
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


def _walk(s: Schedule, block: Block, a: Side, b: Side, chunk: str) -> str:
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
