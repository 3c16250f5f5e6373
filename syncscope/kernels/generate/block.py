"""What an item of a GPU makes of a tile of a contraction: by itself, or as one of a warp with a tensor core."""

from __future__ import annotations

from dataclasses import dataclass

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

    C text says how tiles lie in local memory, which variables the sums are, how the next steps multiply, one sum, and where
    row r and vector q lie in the matrix.
    """

    lanes: int
    vectors: int
    tiles: str
    kind: str
    multiply: str
    sum: str
    row: str
    column: str


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


def by_warps(s: Schedule, kind: Kind, lie: tuple[str, str] = ("m", "n")) -> Block:
    """A warp by a tensor core, 16 x 8 at a time. A word of local memory is two neighbours of k. Where tiles are copied
    they are of numbers, as these `lie` in the operands, along k or the own axis; two are made a word where they are read."""
    halves = kind == "halves"
    over = s.bn // (4 * s.tn)
    if halves and s.copied:
        return _by_matrices(s, lie)
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
    return Block(
        2, s.tn // 2, f"{tiles} MMA_BEGIN", sums,
        f"for (int step = 0; step < {s.bk // 2}; step += {4 * each}) {{\n{chr(10).join([*parts, *lines])} }}",
        "sums[r][q][{lane}]", f"m0 + {row} + r * 8 + lane / 4", f"n0 + {column} + q * 8 + lane % 4 * 2",
    )  # fmt: skip


def _by_matrices(s: Schedule, lie: tuple[str, str]) -> Block:
    """The same of halves that lie in local memory as they were copied, and are read as matrices of 8 x 8. The row's number says
    where eight neighbours stand, so that eight rows meet different banks without a pad."""
    over = s.bn // (4 * s.tn)
    row, column = f"warp / {over} * {8 * s.tm}", f"warp % {over} * {4 * s.tn}"
    shapes = [(size, s.bk) if along == "k" else (s.bk, size) for along, size in zip(lie, (s.bm, s.bn), strict=True)]
    tiles = " ".join(
        f"__local ushort {x}_tiles[{s.stages}][{rows}][{columns}] __attribute__((aligned(128)));\n"
        f"#define {x.upper()}_COLUMN(row, column) {_banked(columns)}\n"
        for x, (rows, columns) in zip("ab", shapes, strict=True)
    )

    def read(x: str, along: str, at: str, names: str, first: str, second: str) -> str:
        """16 of the own axis by 16 steps of k: items 0 to 7, 8 to 15... tell the rows of a matrix each. `first` and `second`
        say how far a matrix is along the own axis and k."""
        own, deep = f"{at} + {first} * 8", f"2 * step + {second} * 8"
        if along == "k":
            place, turned = (f"{own} + lane % 8", deep), ""
        else:
            place, turned = (f"{deep} + lane % 8", own), "_TURNED"
        spot = f"{x}_tiles[now][{place[0]}][{x.upper()}_COLUMN({place[0]}, {place[1]})]"
        return f"uint {names}; MATRICES{turned}({names}, &{spot})"

    parts = [
        read("a", lie[0], f"{row} + {16 * i}", f"a{i}_0, a{i}_1, a{i}_2, a{i}_3", "(lane / 8 % 2)", "(lane / 16)")
        for i in range(s.tm // 2)
    ]
    parts += [
        read(
            "b",
            lie[1],
            f"{column} + {8 * j}",
            f"b{j}_0, b{j}_1, b{j + 1}_0, b{j + 1}_1",
            "(lane / 16)",
            "(lane / 8 % 2)",
        )
        for j in range(0, s.tn // 2, 2)
    ]
    lines = [
        f"MMA(sums[{2 * i}][{j}], sums[{2 * i + 1}][{j}], a{i}_0, a{i}_1, a{i}_2, a{i}_3, b{j}_0, b{j}_1)"
        for i in range(s.tm // 2)
        for j in range(s.tn // 2)
    ]
    return Block(
        2, s.tn // 2, f"{tiles} MMA_BEGIN", f"T sums[{s.tm}][{s.tn // 2}][2]",
        f"for (int step = 0; step < {s.bk // 2}; step += 8) {{\n{chr(10).join([*parts, *lines])} }}",
        "sums[r][q][{lane}]", f"m0 + {row} + r * 8 + lane / 4", f"n0 + {column} + q * 8 + lane % 4 * 2",
    )  # fmt: skip


def _banked(columns: int) -> str:
    """Where a column of a row of so many halves stands, in C: 16 bytes stay together, and 128 are all banks once."""
    together = max(64 // columns, 1)  # rows that are all banks once
    return f"((column) ^ (((row) / {together}) % {min(columns // 8, 8)} * 8))"


def copied(s: Schedule, along: str, size: int) -> tuple[int, int]:
    """Rows and columns of a tile of floats that is copied, along k or the other axis. Items of a warp that read neighbours of k
    from four rows, or of the other axis from rows of even steps, meet different banks."""
    return (size, s.bk + (0 if s.bk % 16 else 8)) if along == "k" else (s.bk, size + _PAD)


def width(size: int, halves: bool) -> int:
    """Words of a row of a tile that tensor cores multiply from, so that the items of a warp meet different banks: 8 or 24 more
    than a multiple of 32 words of four bytes, 4 or 12 more than one of 16 words of eight."""
    if halves:
        return size + (8 if size % 32 == 0 else 24)
    return size + 4
