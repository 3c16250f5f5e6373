"""A contraction in the shape of a CPU: vectors of eight columns, operands packed into panels, no local memory.

An item makes tm x tn elements and walks k from front to back. A packed operand lies as it is read, [z][panel][k][width], and in
the type that is computed in: neither the cache nor the address translation is surprised, and packing is where padding, strides
and windows are resolved, and halves widened.
"""

from __future__ import annotations

from dataclasses import dataclass

from syncscope.kernels.generate.ir import Access, Contraction, Index
from syncscope.kernels.generate.text import DIVIDE, Fields, arguments, inside, loops, place, result, start, template

_STRETCH = (
    128,
    512,
)  # steps of k that go into one sum, where they are one loop and where they are several, which cost more to begin


@dataclass(frozen=True, slots=True)
class Schedule:
    """Rows and columns of an item, and which operands are packed first."""

    tm: int
    tn: int
    pack_a: bool
    pack_b: bool


def pack(c: Contraction, label: str, width: int) -> tuple[str, bytes]:
    """The kernel `<name>_pack_a` or `_pack_b`; ids are panel, block of k and z. Columns beyond the last repeat it."""
    access, axis = (c.a, "m") if label == "a" else (c.b, "n")
    fields = Fields()
    size, depth, block = fields("F", c.size(axis)), fields("K", c.size("k")), fields("block", block_of(c))
    z_lines, z_names = loops(fields, "z", c.z, "z")
    f_lines, f = loops(fields, axis, getattr(c, axis), "free")
    k_lines, k = loops(fields, "k", c.k, "k")
    bounds = [index for index, _ in access.inside]
    declared = "".join(f", bound{i}[{width}]" for i in range(len(bounds)))
    set_bounds = "".join(
        f" bound{i}[j] = {start(fields, f'b{i}', index, z_names)} + {place(fields, f'b{i}', axis, index, f)};"
        for i, index in enumerate(bounds)
    )

    def valid(j: str) -> str:
        given = [f"bound{i}[{j}] + {place(fields, f'b{i}', 'k', index, k)}" for i, index in enumerate(bounds)]
        return inside(fields, label, access, given)

    steps = getattr(access.at, axis)
    neighbours = bool(steps) and steps[-1] == 1
    run = [f"panel * {width} + {width} <= {size}", f"place[{width - 1}] - place[0] == {width - 1}"]
    if neighbours:  # then every index has steps on this axis
        steps_of = [getattr(index, axis)[-1] for index in bounds]
        run += [f"bound{i}[{width - 1}] - bound{i}[0] == {step * (width - 1)}" for i, step in enumerate(steps_of)]
    whole = " && ".join(filter(None, ("run", valid("0"), valid(str(width - 1)))))
    copies = " ".join(f"ST8(LOAD8(from + {i}), to + {i});" for i in range(0, width, 8))
    element = f"{valid('j')} ? LOAD(from_all, place[j]) : (T)0" if bounds else "LOAD(from_all, place[j])"
    singly = f"for (int j = 0; j < {width}; j++) to[j] = {element};"
    body = f"if ({whole}) {{ {copies} }} else {singly}" if neighbours and width % 8 == 0 else singly
    text = template("panels")(
        divide=DIVIDE, name=f"{c.name}_pack_{label}", block=block, size=size, width=width,
        last=width - 1, depth=depth, z_lines=z_lines, start=start(fields, "x", access.at, z_names), declared=declared,
        f_lines=f_lines, place=place(fields, "x", axis, access.at, f), set_bounds=set_bounds, run=" && ".join(run),
        k_lines=k_lines, from_k=place(fields, "x", "k", access.at, k), body=body,
        fields=fields.declaration(),
    )  # fmt: skip
    return text, fields.packed()


def block_of(c: Contraction) -> int:
    """Steps of k that one item packs."""
    return max(64, -(-c.size("k") // 64))


def tiles(c: Contraction, s: Schedule) -> int:
    """How many items lie side by side; without packing none spans two rows of pixels."""
    if s.pack_b or not c.n:
        return -(-c.size("n") // s.tn)
    return c.size("n") // c.n[-1] * -(-c.n[-1] // s.tn)


def source(c: Contraction, s: Schedule) -> tuple[str, bytes]:
    """The kernel `c.name`; ids are block of rows, block of columns and z. A packed operand is given in place of the own one."""
    fields = Fields()
    tm, tn, vectors = s.tm, s.tn, range(s.tn // 8)
    m_size, n_size, k_size = (fields(x.upper(), c.size(x)) for x in "mnk")
    z_lines, z_names = loops(fields, "z", c.z, "z")
    n_lines, n_names, column = _columns(c, s, fields)
    count = fields("tiles", tiles(c, s))
    k_names = [f"k_{i}" for i in range(len(c.k))]
    flat = all(packed or len(c.k) < 2 for packed in (s.pack_a, s.pack_b))
    if flat:
        sizes, k_names = [k_size], ["k_0"] * bool(c.k)
    else:  # short loops are written out, so that the compiler may unroll them
        sizes = [str(size) if size < 8 else fields(f"k{i}", size) for i, size in enumerate(c.k)]
    pairs = [(f"sums[{r}][{v}]", f"s{r}_{v}") for r in range(tm) for v in vectors]
    none = f"T8 {', '.join(f'{own} = (T8)(0)' for _, own in pairs)};"
    walks = [f"for (int k_{i} = 0; k_{i} < {size}; k_{i}++)" for i, size in enumerate(sizes)]
    before, after = none, f"const T8 sums[{tm}][{s.tn // 8}] = {{{', '.join(own for _, own in pairs)}}};"
    most = _STRETCH[0 if flat else 1]
    if c.size("k") > most and sizes:  # the first loop in stretches, each with sums of its own: less is lost by rounding
        turns = max(1, most if flat else most * c.k[0] // c.size("k"))
        stretch = f"for (int from = 0; from < {sizes[0]}; from += {turns})"
        walks[0] = f"for (int k_0 = from; k_0 < min({sizes[0]}, from + {turns}); k_0++)"
        before = f"T8 sums[{tm}][{s.tn // 8}] = {{{', '.join('(T8)(0)' for _ in pairs)}}};\n    {stretch} {{ {none}"
        after = f"{' '.join(f'{total} += {own};' for total, own in pairs)} }}"
    if s.pack_a:
        a_rows = f"a += a_at + ({_copy(c.a)}(({m_size} + {tm - 1}) / {tm}) + get_global_id(0)) * {k_size} * {tm};"
        a_values, a_next = [f"a[{r}]" for r in range(tm)], f"a += {tm};"
    else:
        row_lines = []
        for r in range(tm):
            m_lines, m_names = loops(fields, "m", c.m, f"m{r}")
            row_lines.append(
                f"    const int m{r} = min(m + {r}, {m_size} - 1); {m_lines} "
                f"__global const S *row{r} = a + {place(fields, 'a', 'm', c.a.at, m_names)};"
            )
        a_rows = f"a += a_at + {start(fields, 'a', c.a.at, z_names)};\n" + "\n".join(row_lines)
        a_values, a_next = [f"LOAD(row{r}, a_k)" for r in range(tm)], ""
    a_k = "" if s.pack_a else f"const int a_k = {place(fields, 'a', 'k', c.a.at, k_names)};"
    if s.pack_b:
        panels = f"(({n_size} + {tn - 1}) / {tn})"
        b_start = f"b += b_at + ({_copy(c.b)}{panels} + get_global_id(1)) * {k_size} * {tn};"
        b_from, b_next = "b", f"b += {tn};"
    else:
        n_place = place(fields, "b", "n", c.b.at, n_names)
        b_start = f"b += b_at + {start(fields, 'b', c.b.at, z_names)} + {n_place};"
        b_from, b_next = f"(b + {place(fields, 'b', 'k', c.b.at, k_names)})", ""
    loads = " ".join(f"const T8 b{v} = {'LD8' if s.pack_b else 'LOAD8'}({b_from} + {v * 8});" for v in vectors)
    multiply = "\n".join("        " + " ".join(f"s{r}_{v} += x{r} * b{v};" for v in vectors) for r in range(tm))
    values = " ".join(f"const T x{r} = {value};" for r, value in enumerate(a_values))
    text = template("vectors")(
        divide=DIVIDE, name=c.name, of_a="T" if s.pack_a else "S", of_b="T" if s.pack_b else "S", arguments=arguments(c),
        tm=tm, m=m_size, tiles=count, z_lines=z_lines, n_lines=n_lines, a_rows=a_rows, b_start=b_start, before=before,
        walks=" ".join(walks), loads=loads, a_k=a_k, values=values, multiply=multiply, a_next=a_next, b_next=b_next,
        after=after, store=_store(c, s, fields, z_names, column), fields=fields.declaration(),
    )  # fmt: skip
    return text, fields.packed()


def _copy(access: Access) -> str:
    """Which z a packed operand is taken from: one that does not depend on z is packed once."""
    return "(long)z * " if depends_on_z(access) else "0L * "


def depends_on_z(access: Access) -> bool:
    """Whether an operand differs from one z to the next."""
    return any(any(index.z) for index in (access.at, *(bound for bound, _ in access.inside)))


def _columns(c: Contraction, s: Schedule, fields: Fields) -> tuple[str, list[str], str]:
    """Statements that place a tile among the columns, the names of its first column's loops, and how many columns are left."""
    if s.pack_b or len(c.n) < 2:
        return f"const int n = tile * {s.tn};", ["n"] * len(c.n), "p.N - n"
    last = fields("row", c.n[-1])
    lines, names = loops(fields, "t", (*c.n[:-1], -(-c.n[-1] // s.tn)), "tile")
    first = f"const int n_last = ({names[-1]}) * {s.tn};"
    flat = names[0]
    for i, name in enumerate(names[1:-1], 1):
        flat = f"({flat}) * {fields(f't{i}', c.n[i])} + {name}"
    line = f"{lines} {first} const int n = ({flat}) * {last} + n_last;"
    return line, [*names[:-1], "n_last"], f"{last} - n_last"


def _store(c: Contraction, s: Schedule, fields: Fields, z_names: list[str], left: str) -> str:
    """The end of the kernel. Eight neighbours in the result are one store."""
    m_lines, m_names = loops(fields, "m", c.m, "row")
    n_lines, n_names = loops(fields, "n", c.n, "column")
    out_n, out_m = place(fields, "out", "n", c.out, n_names), place(fields, "out", "m", c.out, m_names)
    bias_line, bias_m, bias_n = "", "0", "0"
    if c.bias is not None:
        bias_line = f"bias += bias_at + {start(fields, 'bias', c.bias, z_names)};"
        bias_m, bias_n = place(fields, "bias", "m", c.bias, m_names), place(fields, "bias", "n", c.bias, n_names)
    added = f" + beta * LOAD(bias, {bias_m})" if c.bias is not None else ""
    vector = f"if (run) {{ STORE8(alpha * sums[r][v]{added}, out + row_at + spots[0]); continue; }}"
    simple = bias_n == "0" and c.then == "x"
    spots = bias_n != "0"
    return template("eights")(
        start=start(fields, "out", c.out, z_names), bias_line=bias_line, left=left, vectors=s.tn // 8, tm=s.tm,
        bias_spots=", bias_spots[8]" if spots else "", n_lines=n_lines, out_n=out_n,
        bias_spot=f" bias_spots[j] = {bias_n};" if spots else "", m_lines=m_lines, out_m=out_m,
        vector=vector if simple else "",
        one=result(c, "lanes[j]", "row_at + spots[j]", bias_m + (" + bias_spots[j]" if spots else "")),
    )  # fmt: skip


def swapped(c: Contraction) -> Contraction:
    """The same with rows for columns."""

    def turned(index: Index) -> Index:
        return Index(index.start, index.z, index.n, index.m, index.k)

    def access(x: Access) -> Access:
        return Access(turned(x.at), tuple((turned(index), size) for index, size in x.inside))

    bias = None if c.bias is None else turned(c.bias)
    return Contraction(c.name, c.z, c.n, c.m, c.k, access(c.b), access(c.a), turned(c.out), bias, c.then)
