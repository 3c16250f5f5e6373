"""What an item does to local memory on its way through a function, and which two of these accesses race."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from syncscope.opencl_c.divergence import divergence
from syncscope.opencl_c.facts import KernelProgram, Routine
from syncscope.opencl_c.nodes import FENCED, assigned, base, callee, operands
from syncscope.opencl_c.text import Node, part, said, sign, walk

BUFFER = re.compile(r"%2$|&1$|\^1$")  # which of two that take turns: `tile[t % 2][l]`
CHANGES = ("assignment_expression", "update_expression", "init_declarator")
DEEPEST = 3  # loops around loops of which each round is looked at twice
LOOKED_AT = 256  # accesses of an array since the last barrier


@dataclass(frozen=True, slots=True)
class Access:
    """A write or a read of local memory: which, where, under which guards."""

    array: str
    index: tuple[str, ...]
    node: Node
    writes: bool
    guards: tuple[Node, ...]  # innermost first
    terms: frozenset[str]  # what of the index differs between items
    summands: frozenset[str]
    places: tuple[frozenset[str], ...]  # the terms of each dimension
    scaled: bool  # one of these is multiplied: each item has several elements of its own
    by_id: bool  # they are the item's own number, and nothing that is computed of it

    @property
    def key(self) -> tuple[str, ...]:
        """The array and the index, as texts."""
        return (self.array, *self.index)


class LocalMemory:
    """What an item does to local memory on its way through a function."""

    def __init__(self, program: KernelProgram, routine: Routine, arrays: set[str], scalars: set[str]) -> None:
        self.program = program
        self.arrays = arrays
        self.scalars = scalars
        self.differing = divergence(program, routine)
        self.computed = set(computed(program, routine))
        self.since: dict[str, list[Access]] = {}  # the last barrier
        # what a loop has changed since an access of an earlier round
        self.moved: dict[int, tuple[Access, frozenset[str]]] = {}
        # what is read and written at two places is exchanged: `x[i]` and `x[j]`
        self.read: set[tuple[str, ...]] = set()
        self.written: set[tuple[str, ...]] = set()
        self.races: dict[int, tuple[Access, Access]] = {}  # the first of each access, by its first byte

    def visit(self, node: Node | None, depth: int) -> None:
        """Goes through a statement or an expression, with so many loops around it."""
        if node is None:
            return
        kind = node.type
        if kind in FENCED:
            self.parts(node, depth, "initializer", "condition")
            for again in range(2 if depth < DEEPEST else 1):
                if again:
                    made = frozenset(
                        base(assigned(n)[0] or part(n, "argument")) for n in self.program.inside(node, *CHANGES)
                    )
                    self.moved |= {
                        id(a): (a, made) for a in chain.from_iterable(self.since.values()) if holds(node, a.node)
                    }
                self.parts(node, depth + 1, "body", "update", "condition")
        elif kind == "if_statement":
            self.parts(node, depth, "condition")
            before = self.since
            self.since = copied(before)
            self.parts(node, depth, "consequence")
            after, self.since = self.since, copied(before)
            self.parts(node, depth, "alternative")
            for array, found in after.items():
                known = set(map(id, self.since.setdefault(array, [])))
                self.since[array] += [access for access in found if id(access) not in known]
        elif kind == "assignment_expression":
            left, name = part(node, "left"), said(part(node, "left"))
            self.parts(node, depth, "right")
            if name in self.arrays:  # a pointer, to something else from here on
                self.since.pop(name, None)
            elif not (sign(node) == "=" or self.seen(left, False)) or not self.seen(left, True):
                self.visit(left, depth)
        elif kind == "declaration":
            for one in node.children_by_field_name("declarator"):
                self.visit(part(one, "value"), depth)
        elif (
            (kind == "update_expression" and self.seen(part(node, "argument"), True))
            or kind == "sizeof_expression"
            or (kind in ("subscript_expression", "identifier") and self.seen(node, False))
        ):
            pass
        elif kind in ("call_expression", "expression_statement") and self.may_wait(
            callee(node) or said(node).strip("; ")
        ):
            self.since = {}
        elif kind == "call_expression" and any(said(n) in self.arrays for n in self.program.inside(node, "identifier")):
            inside = [n for n in self.program.inside(node, "subscript_expression") if n.parent.type != n.type]
            if callee(node) in self.program.named or not inside:
                self.since = {}  # what is done there is not looked at
            for read in inside:
                self.seen(read, False)
        else:
            for child in node.named_children:
                self.visit(child, depth)

    def parts(self, node: Node, depth: int, *names: str) -> None:
        """Goes through some parts of a node."""
        for name in names:
            self.visit(part(node, name), depth)

    def may_wait(self, name: str) -> bool:
        """Whether a call is a barrier, holds one, or is a macro of which nothing is known."""
        unknown = name.isidentifier() and name.isupper() and name not in self.program.named
        return unknown or self.program.is_barrier(name) or name in self.program.with_barrier

    def seen(self, node: Node, writes: bool) -> bool:
        """Notes an element of local memory that is read or written; whether it is one."""
        index, owner = [], node
        while owner.type == "subscript_expression":
            index.append(next((n for n in owner.named_children[1:]), None))
            owner = part(owner, "argument")
        if index and (said(owner) not in self.arrays or None in index):
            return False
        if not index and said(owner) not in self.scalars:
            return False
        if self.differing.differs(owner):  # a pointer of its own, to a part of its own
            return True
        summands = [t for one in index for t in operands(one, ("+", "-"))]
        differing = [t for t in summands if self.differing.differs(t)]
        access = Access(
            said(owner),
            tuple("".join(said(one).split()) for one in index),  # of a variable none
            node,
            writes,
            tuple(self.differing.guards(node)),
            frozenset(map(normal, differing)),
            frozenset(map(normal, summands)),
            tuple(frozenset(normal(t) for t in operands(i, ("+", "-")) if self.differing.differs(t)) for i in index),
            any(t.type == "binary_expression" for t in differing),
            all(
                self.differing.values.get(t.id, "").startswith("item") and said(t) not in self.computed
                for t in differing
            ),
        )
        near = self.since.setdefault(access.array, [])
        before = next(
            (a for a in near[-LOOKED_AT:] if races(a, access, self.moved.get(id(a), (a, frozenset()))[1])), None
        )
        if before is not None:
            self.races.setdefault(node.start_byte, (before, access))
        near.append(access)
        (self.written if writes else self.read).add(access.key)
        return True


def copied(since: dict[str, list[Access]]) -> dict[str, list[Access]]:
    """The same lists once more: what is added to one is not in the other."""
    return {array: list(found) for array, found in since.items()}


def holds(outer: Node, inner: Node) -> bool:
    """Whether one node lies in the other."""
    return bool(outer.start_byte <= inner.start_byte and inner.end_byte <= outer.end_byte)


def normal(term: Node) -> str:
    """A term as a text that is the same in whatever order its factors stand."""
    return "*".join(sorted("".join(said(factor).split()) for factor in operands(term, ("*",))))


def computed(program: KernelProgram, routine: Routine) -> Iterator[str]:
    """The names that are made of an item's number by a calculation: `l + 32`."""
    for node in program.inside(routine.body, "init_declarator", "assignment_expression"):
        target, value = assigned(node)
        if value.type == "binary_expression" or sign(node) not in ("", "="):
            yield base(target)


def races(before: Access, after: Access, moved: frozenset[str]) -> bool:
    """Whether two items may come to the same element, one of them to write it; names that have `moved` between them bound
    nothing: under `l < step`, halved in each round, `x[l]` meets the `x[l + step]` of the round before."""
    if before.writes == after.writes:
        return False
    write, read = (before, after) if before.writes else (after, before)
    if write.index == read.index:
        alone = bool(write.guards) and not write.terms
        tests = {said(part(guard, "condition")) for guard in read.guards}
        return alone and said(part(write.guards[0], "condition")) not in tests
    if any(own_element(g, write, read) for g in read.guards) or any(own_element(g, read, write) for g in write.guards):
        return False
    if any(one != other and BUFFER.search(one + other) for one, other in zip(write.index, read.index, strict=False)):
        return False
    if len(write.index) != len(read.index) or any(
        splits(g, write, read, moved) for g in write.guards if g in read.guards
    ):
        return False
    if write.terms == read.terms and write.places != read.places:
        return True  # `x[row][column]` and `x[column][row]`
    rest = (write.summands | read.summands) - write.terms
    if write.terms == read.terms and (write.scaled or not write.terms or all("*" in term for term in rest)):
        return False  # `x[row * width + l]` and `x[other * width + l]` are of one column
    return bool(write.terms or read.terms)


def own_element(guard: Node, write: Access, read: Access) -> bool:
    """Whether a guard lets only the item read that wrote: `if (l == 0) y = x[0]` after `x[l] = ...`."""
    test = "".join(said(part(guard, "condition")).split()).strip("()")
    pairs = [(one, other) for one in write.index for other in read.index]
    pairs += [(term, "0") for term in write.terms if read.summands - {"0"} == write.summands - {term}]
    same = {f"{one}=={other}" for one, other in pairs} | {f"{other}=={one}" for one, other in pairs}
    return test in same | {f"!{one}" for one, other in pairs if other == "0"}


def splits(guard: Node, write: Access, read: Access, moved: frozenset[str]) -> bool:
    """Whether a guard that both stand under keeps them apart: under `l < step` (or `l % (2 * step) == 0`), `x[l]` and
    `x[l + step]` never meet."""
    if "%" in said(part(guard, "condition")):
        return True
    compared = [n for n in walk(part(guard, "condition")) if n.type == "binary_expression"]
    bounds = {normal(part(n, side)) for n in compared for side in ("left", "right")}
    bounds = {bound for bound in bounds if not moved & set(re.findall(r"\w+", bound))}
    return bool(bounds & ((write.summands | read.summands) - write.terms - read.terms))
