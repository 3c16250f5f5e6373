"""What an item of a GPU makes of a tile of a contraction: by itself, or as one of a warp with a tensor core."""

from __future__ import annotations

from dataclasses import dataclass, replace

from syncscope.kernels.generate.tensor_cores import Kind

_PAD = 4  # columns of local memory after each row: items that write a column then meet different banks


@dataclass(frozen=True, slots=True)
class Schedule:
    """How the work is cut: tile, depth, block of an item, how many neighbours an item fetches, parts of k, whether tensor cores
    multiply, and how many tiles lie in local memory: of more than two those to come are copied there while others multiply."""

    bm: int
    bn: int
    bk: int
    tm: int
    tn: int
    lanes: int = 1
    split: int = 1
    cores: bool = False
    stages: int = 2

    @property
    def copied(self) -> bool:
        """Whether tiles are copied without passing through registers."""
        return self.stages > 2

    @property
    def items(self) -> int:
        """Work-items of a group."""
        return self.bm // self.tm * (self.bn // self.tn)


@dataclass(frozen=True, slots=True)
class Block:
    """What an item makes of a tile: vectors of `lanes` sums, `vectors` of them in each of its tm rows.

    C text says how tiles lie in local memory, which variables the sums are, how the next steps multiply, one sum, where row r
    and vector q lie in the matrix, and what comes between the products and the stores.
    """

    lanes: int
    vectors: int
    tiles: str
    kind: str
    multiply: str
    sum: str
    row: str
    column: str
    end: str = ""  # between the last product and the first store


def by_items(s: Schedule) -> Block:
    """Every item by itself, in blocks of 4 x 4. In a warp of 32 items 4 x 8 read fewer words of local memory than 2 x 16."""
    rows, columns, down, over = s.bm // s.tm, s.bn // s.tn, s.tm // 4, s.tn // 4
    in_warps = columns % 8 == 0 and rows % 4 == 0
    tx, ty = (
        (f"(lane % 8 + warp % {columns // 8} * 8)", f"(lane / 8 + warp / {columns // 8} * 4)")
        if in_warps
        else (f"(item % {columns})", f"(item / {columns})")
    )
    a = ", ".join(f"a{r} = a_tiles[now][step][{ty} + {r * rows}]" for r in range(down))
    b = ", ".join(f"b{x} = b_tiles[now][step][{tx} + {x * columns}]" for x in range(over))
    lines = [
        f"sums[{r}][{x}] = FMA((T4)(a{r // 4}.s{r % 4}), b{x}, sums[{r}][{x}]);"
        for r in range(s.tm)
        for x in range(over)
    ]
    width = (s.bm + _PAD) // 4, (s.bn + _PAD) // 4
    return Block(
        4, over, f"__local T4 a_tiles[2][{s.bk}][{width[0]}], b_tiles[2][{s.bk}][{width[1]}];", f"T4 sums[{s.tm}][{over}]",
        f"for (int step = 0; step < {s.bk}; step++) {{ const T4 {a}, {b};\n{chr(10).join(lines)} }}", "sums[r][q].s{lane}",
        f"m0 + {rows * 4} * (r / 4) + {ty} * 4 + r % 4", f"n0 + {columns * 4} * q + {tx} * 4",
    )  # fmt: skip


def by_warps(s: Schedule, kind: Kind, lie: tuple[str, str]) -> Block:
    """A warp by a tensor core, 16 x 8 at a time. A word of local memory is two neighbours of k. Where tiles are copied
    they are of numbers, as these `lie` in the operands, along k or the own axis; two are made a word where they are read."""
    halves = kind == "halves"
    over = s.bn // (4 * s.tn)
    if (halves and s.copied) or kind == "rounded":
        return _by_matrices(s, lie, kind)
    row, column = f"warp / {over} * {8 * s.tm}", f"warp % {over} * {4 * s.tn}"
    each = 2 if halves else 1  # words of a row that an item has of an instruction

    def word(x: str, along: str, step: str, at: str) -> str:
        if not s.copied:
            return f"{x}_tiles[now][{step}][{at}]"
        if along == "k":
            return f"*(__local const WORD *)&{x}_tiles[now][{at}][2 * ({step})]"
        return f"PAIR({x}_tiles[now][2 * ({step})][{at}], {x}_tiles[now][2 * ({step}) + 1][{at}])"

    parts = [
        f"const PART {x}{i}_{h} = "
        f"READ({word(x, along, f'step + {h % each * 4} + lane % 4', f'{at} + lane / 4 + {i * apart + h // each * 8}')});"
        for x, along, at, count, rows, apart in (
            ("a", lie[0], row, s.tm // 2, 2, 16),
            ("b", lie[1], column, s.tn // 2, 1, 8),
        )
        for i in range(count)
        for h in range(rows * each)
    ]
    taken = ("a{0}_0, a{0}_2, a{0}_1, a{0}_3, b{1}_0, b{1}_1" if halves else "a{0}_0, a{0}_1, b{1}_0").format
    lines = [
        f"MMA(sums[{2 * i}][{j}], sums[{2 * i + 1}][{j}], {taken(i, j)})"
        for i in range(s.tm // 2)
        for j in range(s.tn // 2)
    ]
    shapes = [
        copied(s, along, size) if s.copied else (s.bk // 2, width(size, halves))
        for along, size in zip(lie, (s.bm, s.bn), strict=True)
    ]
    tiles = " ".join(
        f"__local {'E' if s.copied else 'WORD'} {x}_tiles[{s.stages}][{rows}][{columns}] __attribute__((aligned(16)));"
        for x, (rows, columns) in zip("ab", shapes, strict=True)
    )
    # Sums of eight steps of floats are made in `upper` and `lower`: here, as PoCL loses arrays of inner blocks at barriers.
    sums = f"T sums[{s.tm}][{s.tn // 2}][2]" + (", upper[2], lower[2]" if kind == "thrice" else "")
    multiply = f"for (int step = 0; step < {s.bk // 2}; step += {4 * each}) {{\n{chr(10).join([*parts, *lines])} }}"
    return _stored(s, Block(
        2, s.tn // 2, f"{tiles} MMA_BEGIN", sums, multiply, "sums[r][q][{lane}]", f"m0 + {row} + r * 8 + lane / 4",
        f"n0 + {column} + q * 8 + lane % 4 * 2",
    ), column, halves)  # fmt: skip


def _stored(s: Schedule, block: Block, column: str, halves: bool) -> Block:
    """Two halves of an item are four bytes, and those of four items half a sector of memory, which takes a GPU longer to write
    than a whole one. So neighbours exchange two sums: each has four of a row then."""
    if not halves or s.tn % 4:
        return block
    end = f"""#pragma unroll
    for (int r = 0; r < {s.tm}; r++)
#pragma unroll
        for (int q = 0; q < {s.tn // 4}; q++) {{
            T one = lane % 2 ? sums[r][2 * q][0] : sums[r][2 * q + 1][0];
            T other = lane % 2 ? sums[r][2 * q][1] : sums[r][2 * q + 1][1];
            EXCHANGE(one)
            EXCHANGE(other)
            if (lane % 2) {{ sums[r][2 * q][0] = one; sums[r][2 * q][1] = other; }}
            else {{ sums[r][2 * q + 1][0] = one; sums[r][2 * q + 1][1] = other; }}
        }}
"""
    return replace(
        block, lanes=4, vectors=s.tn // 4, sum="sums[r][2 * q + {lane} / 2][{lane} % 2]", end=end,
        column=f"n0 + {column} + q * 16 + lane % 2 * 8 + lane % 4 / 2 * 4",
    )  # fmt: skip


def _by_matrices(s: Schedule, lie: tuple[str, str], kind: Kind) -> Block:
    """The same of what lies in local memory as it was copied and is multiplied as it is, read as matrices of 8 x 8 halves.
    The row's number says where 16 bytes stand, so that eight rows meet different banks without a pad. Where floats lie along
    k one is two halves to this; along the other axis they are read one by one."""
    over, floats = s.bn // (4 * s.tn), kind == "rounded"
    row, column = f"warp / {over} * {8 * s.tm}", f"warp % {over} * {4 * s.tn}"

    # Where columns of `b` are told one by one, an item's sums of two instructions are made four neighbours of the result.
    paired = lie[1] == "k"

    def tile(x: str, along: str, size: int) -> str:
        rows, columns = copied(s, along, size, kind)
        if floats and along != "k":
            return f"__local E {x}_tiles[{s.stages}][{rows}][{columns}] __attribute__((aligned(128)));\n"
        columns *= 2 if floats else 1
        turn = "((row) % 2 + (row) / 4 * 2)" if x == "b" and paired else "(row)"  # of the eight rows read together
        return (
            f"__local ushort {x}_tiles[{s.stages}][{rows}][{columns}] __attribute__((aligned(128)));\n"
            f"#define {x.upper()}_COLUMN(row, column) {_banked(columns, turn)}\n"
        )

    def read(x: str, along: str, at: str, names: list[str], first: str, second: str) -> str:
        """16 of the own axis by 16 halves along k: items 0 to 7, 8 to 15... tell the rows of a matrix each. `first` and
        `second` say how far a matrix is along the own axis and k."""
        if floats and along != "k":
            spots = [[place.replace("lane", str(8 * i)) for place in (first, second)] for i in range(4)]
            return " ".join(
                f"const uint {name} = as_uint({x}_tiles[now][step + lane % 4 + {deep} * 4][{at} + lane / 4 + {own} * 8]);"
                for name, (own, deep) in zip(names, spots, strict=True)
            )
        own, deep = f"{at} + {first} * 8 + lane % 8", f"2 * step + {second} * 8"
        if x == "b" and paired:
            own = f"{at} + {first} * 2 + lane % 8 / 2 * 4 + lane % 2"
        if along == "k":
            place, turned = (own, deep), ""
        else:
            place, turned = (f"{deep} + lane % 8", f"{at} + {first} * 8"), "_TURNED"
        spot = f"{x}_tiles[now][{place[0]}][{x.upper()}_COLUMN({place[0]}, {place[1]})]"
        return f"uint {', '.join(names)}; MATRICES{turned}({', '.join(names)}, &{spot})"

    parts = [
        read("a", lie[0], f"{row} + {16 * i}", [f"a{i}_{h}" for h in range(4)], "(lane / 8 % 2)", "(lane / 16)")
        for i in range(s.tm // 2)
    ]
    for j in range(0, s.tn // 2, 2):
        names = [f"b{j + h}_{i}" for h in range(2) for i in range(2)]
        parts.append(read("b", lie[1], f"{column} + {8 * j}", names, "(lane / 16)", "(lane / 8 % 2)"))
    lines = [
        f"MMA_ONCE(sums[{2 * i}][{j}], sums[{2 * i + 1}][{j}], a{i}_0, a{i}_1, a{i}_2, a{i}_3, b{j}_0, b{j}_1)"
        for i in range(s.tm // 2)
        for j in range(s.tn // 2)
    ]
    tiles = " ".join(tile(x, along, size) for x, along, size in zip("ab", lie, (s.bm, s.bn), strict=True))
    multiply = (
        f"for (int step = 0; step < {s.bk if floats else s.bk // 2}; step += 8) {{\n{chr(10).join([*parts, *lines])} }}"
    )
    at = f"m0 + {row} + r * 8 + lane / 4"
    sums = f"T sums[{s.tm}][{s.tn // 2}][2]"
    if paired:
        return Block(
            4, s.tn // 4, f"{tiles} MMA_BEGIN", sums, multiply, "sums[r][2 * q + {lane} / 2][{lane} % 2]", at,
            f"n0 + {column} + q * 16 + lane % 4 * 4",
        )  # fmt: skip
    return _stored(s, Block(
        2, s.tn // 2, f"{tiles} MMA_BEGIN", sums, multiply, "sums[r][q][{lane}]", at,
        f"n0 + {column} + q * 8 + lane % 4 * 2",
    ), column, not floats)  # fmt: skip


def _banked(columns: int, row: str) -> str:
    """Where a column of a row of so many halves stands, in C: 16 bytes stay together, and 128 are all banks once."""
    together = max(64 // columns, 1)  # rows that are all banks once
    return f"((column) ^ (({row} / {together}) % {min(columns // 8, 8)} * 8))"


def copied(s: Schedule, along: str, size: int, kind: Kind = "once") -> tuple[int, int]:
    """Rows and columns of a tile that is copied, along k or the other axis. Items of a warp that read floats one by one or in
    pairs, neighbours of k from four rows or of the other axis from four, meet different banks."""
    if along == "k":
        return size, s.bk + (8 if kind == "once" and s.bk % 16 == 0 else 0)
    return s.bk, size + {"once": _PAD, "rounded": 2 * _PAD}.get(kind, 0)


def width(size: int, halves: bool) -> int:
    """Words of a row of a tile that tensor cores multiply from, so that the items of a warp meet different banks: 8 or 24 more
    than a multiple of 32 words of four bytes, 4 or 12 more than one of 16 words of eight."""
    if halves:
        return size + (8 if size % 32 == 0 else 24)
    return size + 4
