"""Gradients of what is read in strides, taken apart: elements that are s apart are seen by the same taps.

A term that counts only where `(y - k) % s == 0` is a statement for each residue of y, in which k has one residue, too, and
every quotient by s is whole. Then no term is in vain, and each of the statements may be a product.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from syncscope.kernels.comprehension.algebra import Poly, poly
from syncscope.kernels.comprehension.products import lines
from syncscope.kernels.comprehension.program import Step, changed
from syncscope.kernels.comprehension.ranges import truth
from syncscope.kernels.comprehension.tree import Apply, Node, Number

_MOST = 16  # statements that one may become


def taken_apart(step: Step) -> list[Step]:
    """The statement, or one for each residue."""
    if step.op != "+" or not step.sets or not step.reduced:
        return [step]
    match step.value:
        case Apply("?", (condition, value, Number(0))):
            pass
        case _:
            return [step]
    found = [(c, _divided(c, step)) for c in _joined(condition)]
    strides = [d for _, d in found if d is not None]
    names = [n for y, k, _, _ in strides for n in (y, k)]
    pieces = 1
    for _, _, s, _ in strides:
        pieces *= s
    if not strides or len(set(names)) < len(names) or pieces > _MOST:
        return [step]
    rest = [c for c, d in found if d is None]
    made = []
    for residues in itertools.product(*(range(s) for _, _, s, _ in strides)):
        given: dict[str, Poly] = {}
        ranges = dict(step.ranges)
        for residue, (y, k, s, index) in zip(residues, strides, strict=True):
            other = next(q for q in range(s) if _at(index, y, residue, k, q) % s == 0)
            given |= {y: Poly.of(y) * s + residue, k: Poly.of(k) * s + other}
            ranges[y] = 0, -(-(step.size(y) - residue) // s)
            ranges[k] = 0, max(0, -(-(step.size(k) - other) // s))
        if any(ranges[n][1] <= 0 for n in step.out):
            continue
        left = tuple(q.replaced(given) for q in step.left)
        if any(ranges[n][1] <= 0 for n in step.reduced):
            only = {n: ranges[n] for n in step.out}
            made.append(replace(step, op="=", value=Number(0.0), ranges=only, left=left))
            continue
        new: Node = changed(value, given)
        for c in rest:
            one = changed(c, given)
            if truth(one) is not True:
                new = Apply("?", (one, new, Number(0)))
        made.append(replace(step, value=new, ranges=ranges, left=left))
    return made


def _joined(condition: Node) -> Iterator[Node]:
    if isinstance(condition, Apply) and condition.function == "&&":
        for part in condition.args:
            yield from _joined(part)
    else:
        yield condition


def _at(index: Poly, y: str, residue: int, k: str, other: int) -> int:
    value = index.replaced({y: Poly.of(residue), k: Poly.of(other)}).number
    assert value is not None
    return value


def _divided(condition: Node, step: Step) -> tuple[str, str, int, Poly] | None:
    """Of `(a * y + b * k + c) % s == 0`: the variable on the left, the one that is reduced, s, and what is divided."""
    match condition:
        case Apply("==", (Apply("%", (index, Number(int(s)))), Number(0))):
            p = poly(index)
            line = lines(p)
            if line is None or len(line[1]) != 2:
                return None
            own = [n for n in line[1] if n in step.out]
            gone = [n for n in line[1] if n in step.reduced]
            if len(own) == len(gone) == 1 and line[1][gone[0]] in (1, -1):
                return own[0], gone[0], s, p
    return None
