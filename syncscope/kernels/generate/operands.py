"""How a work-group brings both operands of a tile to local memory (gpu.py): which neighbours are one load, which item fetches
what, and the C text of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from syncscope.kernels.generate.block import Schedule
from syncscope.kernels.generate.ir import Access, Contraction
from syncscope.kernels.generate.tensor_cores import Kind
from syncscope.kernels.generate.text import Fields, inside, loops, place, start, template


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


class Side:
    """The text that brings one operand: `begin` before the loop, `fetch` to registers or local memory, `keep` from those to
    this. Its variables begin with the operand's name, `a` or `b`."""

    def __init__(
        self, c: Contraction, s: Schedule, fields: Fields, name: str, how: Fetch, z_names: list[str], kind: Kind
    ) -> None:
        self.c, self.s, self.fields, self.how, self.z_names, self.kind = c, s, fields, how, z_names, kind
        self.x = name
        self.access, self.axis = (c.a, "m") if name == "a" else (c.b, "n")
        self.own = how.along != "k"  # neighbours of an item lie along the operand's own axis
        self.down = s.items // how.across  # rows of items, each a round's worth apart
        self.bounds = [index for index, _ in self.access.inside]
        self.begin = self._begin()
        self.fetch = self._fetch()
        self._keep = self._kept()

    def keep(self, half: str) -> str:
        """Puts what came into half of the local memory."""
        return self._keep.replace("@", half)

    def _begin(self) -> str:
        """Where an item stands, and the places of what it fetches on the operand's own axis."""
        x, axis, how, fields = self.x, self.axis, self.how, self.fields
        size = f"p.{axis.upper()}"
        count = (1 if how.wide else how.lanes) if self.own else how.rounds
        here, there = f"item % {how.across} * {how.lanes}", f"item / {how.across}"
        spot, step = (here, there) if self.own else (there, here)
        lines, free = loops(fields, axis, getattr(self.c, axis), f"{x}_free")
        bounds = "".join(
            f" {x}_bound{i}[j] = {start(fields, f'{x}_b{i}', index, self.z_names)} + "
            f"{place(fields, f'{x}_b{i}', axis, index, free)};"
            for i, index in enumerate(self.bounds)
        )
        kept = f"""{"JOIN(E, 4)" if how.wide else "E"} {x}_next[{how.rounds}]{"" if how.wide else f"[{how.lanes}]"};"""
        return template("operand")(
            x=x, start=start(fields, x, self.access.at, self.z_names), spot=spot, step=step, count=count,
            bounds="".join(f", {x}_bound{i}[{count}]" for i in range(len(self.bounds))),
            free=f"{axis}0 + {x}_spot" + (" + j" if self.own else f" + j * {self.down}"),
            # Items beyond the matrix fetch its last elements again, and keep nothing of what they make.
            last=f"({size} - 1) / {how.wide} * {how.wide}" if how.wide and self.own else f"{size} - 1",
            loops=lines, place=place(fields, x, axis, self.access.at, free), set_bounds=bounds,
            kept="" if self.s.copied else kept,
        )  # fmt: skip

    def _fetch(self) -> str:
        """The next steps of k."""
        x, c, s, how, fields = self.x, self.c, self.s, self.how, self.fields
        in_pairs = s.cores and not s.copied
        turn = f"2 * ({x}_step + i / 2 * {self.down}) + i % 2" if in_pairs else f"{x}_step + i * {self.down}"
        step = turn if self.own else f"{x}_step" + ("" if how.wide else " + j")
        if steady(c, s):  # within the innermost loop of k: where the others stand is worked out once for all
            k_lines, k = loops(fields, "k", c.k, "k0")
            k[-1] = f"({k[-1]} + {x}_k)"
        else:
            k_lines, k = loops(fields, "k", c.k, f"{x}_k")
            step = f"k0 + {step}"
        j = ("0" if how.wide else "j") if self.own else "i"
        given = [
            f"{x}_bound{i}[{j}] + {place(fields, f'{x}_b{i}', 'k', index, k)}" for i, index in enumerate(self.bounds)
        ]
        # What is read before the end of k is finite or not, as it comes; beyond the end both operands are zero.
        end = "" if steady(c, s) or (c.size("k") and c.size("k") % (s.bk * s.split) == 0) else f"{x}_k < k_end"
        valid = " && ".join(filter(None, (end, inside(fields, x, self.access, given))))
        at = f"{x}_place[{j}] + {place(fields, x, 'k', self.access.at, k)}"
        if s.copied:
            load = self._copies(f"{x} + {at}", valid or "1")
        elif how.wide:
            load = f"{x}_next[i] = " + (f"{valid} ? " if valid else "") + f"FETCH4({x} + {at})"
            load += " : (JOIN(E, 4))(0);" if valid else ";"
        else:
            load = f"{x}_next[i][j] = " + (f"{valid} ? FETCH({x}, {at}) : (E)0;" if valid else f"FETCH({x}, {at});")
        return self._each(f"const int {x}_k = {step}; {k_lines} {load}", how.rounds, 0 if how.wide else how.lanes)

    def _kept(self) -> str:
        """What comes through registers to local memory; copies come there by themselves."""
        how = self.how
        if self.s.copied:
            return ""
        if self.s.cores:
            return self._each(self._in_words(), how.rounds // 2 if self.own else how.rounds)
        return self._each(self._as_it_is(), how.rounds, 0 if how.wide else how.lanes)

    def _copies(self, at: str, valid: str) -> str:
        """Neighbours that are one load, or one, to where they lie alike."""
        x, down = self.x, self.down
        row, column = (f"{x}_step + i * {down}", f"{x}_spot") if self.own else (f"{x}_spot + i * {down}", f"{x}_step")
        if self.how.wide == 8:
            return f"COPY8(&{x}_tiles[there][{row}][{x.upper()}_COLUMN({row}, {column})], {at}, {valid})"
        if self.kind == "rounded" and not self.own:  # a float is two halves there
            return f"COPY4(&{x}_tiles[there][{row}][{x.upper()}_COLUMN({row}, 2 * ({column}))], {at}, {valid})"
        if self.how.wide:
            return f"COPY4(&{x}_tiles[there][{row}][{column}], {at}, {valid})"
        return f"COPY(&{x}_tiles[there][{row}][{column} + j], {at}, {valid})"

    def _as_it_is(self) -> str:
        x, down = self.x, self.down
        if self.how.wide and self.own:
            return f"{x}_tiles[@][{x}_step + i * {down}][{x}_spot / 4] = {x}_next[i];"
        if self.how.wide:
            return " ".join(
                f"((__local T *){x}_tiles[@][{x}_step + {lane}])[{x}_spot + i * {down}] = {x}_next[i].s{lane};"
                for lane in range(4)
            )
        row, column = (
            (f"{x}_step + i * {down}", f"{x}_spot + j") if self.own else (f"{x}_step + j", f"{x}_spot + i * {down}")
        )
        return f"((__local T *){x}_tiles[@][{row}])[{column}] = {x}_next[i][j];"

    def _in_words(self) -> str:
        """Neighbours of k in pairs: of two rounds, or of one load."""
        x, down = self.x, self.down
        lane = ".s{}" if self.how.wide else "[{}]"

        def word(row: str, column: str, first: str, second: str) -> str:
            return f"{x}_tiles[@][{row}][{column}] = PAIR({x}_next{first}, {x}_next{second});"

        if self.own:
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

    def _each(self, body: str, rounds: int, lanes: int = 0) -> str:
        """For every round `i`, and every neighbour `j` where they come one by one."""
        inner = "" if not lanes else f"#pragma unroll\n            for (int j = 0; j < {lanes}; j++) "
        head = f"#pragma unroll\n        for (int i = 0; i < {rounds}; i++)"
        return f"{head}\n{inner}{{ {body} }}\n" if inner else f"{head} {{ {body} }}\n"
