"""Local memory that one item writes and another reads, or reads and another overwrites, without a barrier in between.

What happens
------------
The items of a group run in an order of the device's own. Without a barrier one of them reads before the other has written: the
result is wrong on some devices, sizes and runs. Also the other way round: in a loop, the next round's write comes before the
last reader of this one.

What to do
----------
`barrier(CLK_LOCAL_MEM_FENCE)` between writing and reading, and between the last read and the next write. Items of one warp or
wavefront do not run in step either, unless the standard's sub-groups say so.

When a fix pays
---------------
Always. A barrier costs some ten nanoseconds; with `reqd_work_group_size` of one sub-group, `sub_group_barrier` costs less.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from syncscope.model.example import KernelExample, Shows
from syncscope.model.finding import Severity
from syncscope.model.ops import Family
from syncscope.opencl_c import Sighting, seen
from syncscope.opencl_c.divergence import Divergence
from syncscope.opencl_c.facts import BARRIER, FENCED, KernelProgram, Routine, callee, said
from syncscope.opencl_c.text import Node, walk

SEVERITY = Severity.WARNING
FAMILY = Family.KERNEL
SEEN_AS = ()
DEEPEST = 3  # loops around loops of which each round is looked at twice
EXAMPLES = (
    KernelExample(
        """
        __kernel void reverse(__global float *x) {
            __local float part[64];
            int l = get_local_id(0);
            part[l] = x[get_global_id(0)];
            x[get_global_id(0)] = part[63 - l];  // !
        }
        """,
        instead="""
        __kernel void reverse(__global float *x) {
            __local float part[64];
            int l = get_local_id(0);
            part[l] = x[get_global_id(0)];
            barrier(CLK_LOCAL_MEM_FENCE);
            x[get_global_id(0)] = part[63 - l];
        }
        """,
        shows=Shows.WRONG,
        run="""
        x = np.arange(64, dtype=np.float32)
        run("reverse", 64, 64, x)
        right = x.tolist() == list(range(63, -1, -1))
        """,
    ),
    KernelExample(
        """
        __kernel void rows(__global float *sums, __global const float *x, int rounds) {
            __local float part[64];
            int l = get_local_id(0);
            float sum = 0;
            for (int r = 0; r < rounds; r++) {
                part[l] = x[r * 64 + l];  // !
                barrier(CLK_LOCAL_MEM_FENCE);
                for (int k = 0; k < 64; k++)
                    sum += part[k];
            }
            sums[get_global_id(0)] = sum;
        }
        """
    ),
    KernelExample(
        """
        __kernel void own(__global float *x) {
            __local float part[256];
            int l = get_local_id(0);
            for (int k = 0; k < 4; k++)
                part[4 * l + k] = x[4 * l + k];
            x[4 * l] = part[4 * l] + part[4 * l + 1];
        }
        """
    ),
)


@dataclass(frozen=True, slots=True)
class Access:
    """A write or a read of local memory: which, where, under which guard."""

    array: str
    index: tuple[str, ...]
    node: Node
    writes: bool
    guards: tuple[Node, ...]  # innermost first
    terms: frozenset[str]  # what of the index differs between items
    summands: tuple[Node, ...]
    scaled: bool  # one of these is multiplied: each item has several elements of its own


def find(program: KernelProgram) -> Iterator[Sighting]:
    for routine in program.routines:
        arrays = {v.name for v in routine.variables.values() if v.space == "local" and (v.sizes or v.is_pointer)}
        if not arrays:
            continue
        told: set[tuple[int, int]] = set()
        since: list[Access] = []  # the last barrier
        for access in Walk(program, routine, arrays).accesses(routine.body, 0):
            if access is None:
                since = []
                continue
            for before in since:
                span = (access.node.start_byte, access.node.end_byte)
                if before.array == access.array and span not in told and races(before, access):
                    told.add(span)
                    yield sighting(program, routine, before, access)
                    break
            since.append(access)


class Walk:
    """The accesses of a function in the order in which an item makes them; None is a barrier, or what may be one."""

    def __init__(self, program: KernelProgram, routine: Routine, arrays: set[str]) -> None:
        self.program = program
        self.arrays = arrays
        self.differing = Divergence(routine)

    def accesses(self, node: Node, depth: int) -> Iterator[Access | None]:
        """Those below a node."""
        kind = node.type
        if kind in FENCED:
            for field in ("initializer", "condition"):
                if (part := node.child_by_field_name(field)) is not None:
                    yield from self.accesses(part, depth)
            for _ in range(2 if depth < DEEPEST else 1):
                for field in ("body", "update", "condition"):
                    if (part := node.child_by_field_name(field)) is not None:
                        yield from self.accesses(part, depth + 1)
        elif kind == "assignment_expression":
            left = node.child_by_field_name("left")
            yield from self.accesses(node.child_by_field_name("right"), depth)
            if (made := self.access(left, True)) is None:
                yield from self.accesses(left, depth)
            else:
                if said(node.child_by_field_name("operator")) != "=":
                    yield self.access(left, False)
                yield made
        elif kind == "subscript_expression" and (read := self.access(node, False)) is not None:
            yield read
        elif kind == "call_expression" and self.may_wait(callee(node)):
            yield None
        elif kind == "call_expression" and any(said(n) in self.arrays for n in walk(node) if n.type == "identifier"):
            inside = [n for n in walk(node) if n.type == "subscript_expression" and n.parent.type != n.type]
            if callee(node) in self.program.named or not inside:
                yield None  # what is done there is not looked at
            else:
                yield from (a for n in inside if (a := self.access(n, False)) is not None)
        else:
            for child in node.named_children:
                yield from self.accesses(child, depth)

    def may_wait(self, name: str) -> bool:
        """Whether a call is a barrier, holds one, or is a macro of which nothing is known."""
        known = name in self.program.named
        return bool(BARRIER.match(name)) or name in self.program.with_barrier or (not known and name.isupper())

    def access(self, node: Node, writes: bool) -> Access | None:
        """An element of local memory."""
        index, owner = [], node
        while owner.type == "subscript_expression":
            index.append(next((n for n in owner.named_children[1:]), None))
            owner = owner.child_by_field_name("argument")
        if said(owner) not in self.arrays or not index or None in index:
            return None
        terms = [t for one in index for t in summands(one) if self.differing.differs(t)]
        guards = self.differing.guards(node)
        return Access(
            said(owner),
            tuple("".join(said(one).split()) for one in index),
            node,
            writes,
            tuple(guards),
            frozenset("".join(said(t).split()) for t in terms),
            tuple(t for one in index for t in summands(one)),
            any(t.type == "binary_expression" for t in terms),
        )


def summands(node: Node) -> Iterator[Node]:
    """The terms of a sum."""
    while node.type == "parenthesized_expression" and len(node.named_children) == 1:
        node = node.named_children[0]
    if node.type == "binary_expression" and said(node.child_by_field_name("operator")) in ("+", "-"):
        yield from summands(node.child_by_field_name("left"))
        yield from summands(node.child_by_field_name("right"))
    else:
        yield node


def races(before: Access, after: Access) -> bool:
    """Whether two items may come to the same element, one of them to write it."""
    if not (before.writes or after.writes) or (before.writes and after.writes):
        return False
    write, read = (before, after) if before.writes else (after, before)
    if write.index == read.index:
        alone = bool(write.guards) and not write.terms
        return alone and read.guards[:1] != write.guards[:1]
    if any(own_element(guard, write, read) for guard in read.guards):
        return False
    if len(write.index) != len(read.index) or any(splits(g, write, read) for g in write.guards if g in read.guards):
        return False
    if write.terms == read.terms and (write.scaled or not write.terms):
        return False
    return bool(write.terms or read.terms)


def own_element(guard: Node, write: Access, read: Access) -> bool:
    """Whether a guard lets only the item read that wrote: `if (l == 0) y = x[0]` after `x[l] = ...`."""
    test = guard.child_by_field_name("condition")
    same = {f"{one}=={other}" for one in write.index for other in read.index}
    same |= {f"{other}=={one}" for one in write.index for other in read.index} | {f"!{one}" for one in write.index}
    return "".join(said(test).split()).strip("()") in same


def splits(guard: Node, write: Access, read: Access) -> bool:
    """Whether a guard that both stand under keeps them apart: under `l < step`, `x[l]` and `x[l + step]` never meet."""
    compared = [n for n in walk(guard.child_by_field_name("condition")) if n.type == "binary_expression"]
    bounds = {"".join(said(n.child_by_field_name(side)).split()) for n in compared for side in ("left", "right")}
    apart = {"".join(said(t).split()) for access in (write, read) for t in access.summands} - write.terms - read.terms
    return bool(bounds & apart)


def sighting(program: KernelProgram, routine: Routine, before: Access, after: Access) -> Sighting:
    """A race in words. What is volatile was meant for items in step, which some devices had."""
    what, then = program.quote(before.node), program.quote(after.node)
    line = before.node.start_point[0] - after.node.start_point[0]
    where = "in the round before" if line >= 0 else f"{-line} line{'s' * (line < -1)} above"
    said_first = "written" if before.writes else "read"
    verb = "reads" if before.writes else "overwrites"
    message = f"{then} {verb} local memory without a barrier since {what} was {said_first} by another item, {where}"
    return seen(after.node, message, 1 if routine.variables[after.array].is_volatile else 3)
