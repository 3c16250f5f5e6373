"""Gradients of what is read in strides, taken apart: elements that are s apart are seen by the same taps.

A term that counts only where `(y - k) % s == 0` is a statement for each residue of y, in which k has one residue, too, and
every quotient by s is whole. Then no term is in vain, and each of the statements may be a product.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from syncscope.kernels.comprehensions.expressions import Apply, Node, Number, Poly, conditional, poly, replaced, truth
from syncscope.kernels.comprehensions.program import Step

_MOST = 16  # statements that one may become


@dataclass(frozen=True, slots=True)
class _Stride:
    """`index % by == 0`, of a variable on the left and one that is reduced."""

    index: Poly
    own: str
    tap: str
    by: int

    def tap_of(self, residue: int) -> int:
        """The residue that the tap has where the variable on the left has this one."""
        return next(q for q in range(self.by) if self._at(residue, q) % self.by == 0)

    def _at(self, own: int, tap: int) -> int:
        return self.index.replaced({self.own: Poly.of(own), self.tap: Poly.of(tap)}).number or 0


def taken_apart(step: Step) -> list[Step]:
    """The statement, or one for each residue."""
    match step.value:
        case Apply("?", (condition, value, Number(0))) if step.op == "+" and step.reduced:
            conditions = list(_all(condition))
        case _:
            return [step]
    strides = [s for c in conditions if (s := _stride(c, step))]
    rest = [c for c in conditions if not _stride(c, step)]
    variables = [n for s in strides for n in (s.own, s.tap)]
    if not strides or len(set(variables)) < len(variables) or math.prod(s.by for s in strides) > _MOST:
        return [step]
    made = []
    for residues in itertools.product(*(range(s.by) for s in strides)):
        given: dict[str, Poly] = {}
        ranges = dict(step.ranges)
        for residue, s in zip(residues, strides, strict=True):
            for name, first in ((s.own, residue), (s.tap, s.tap_of(residue))):
                given[name] = Poly.of(name) * s.by + first
                ranges[name] = 0, max(0, -(-(step.size(name) - first) // s.by))
        one = replace(step, value=value).replaced(given, ranges=ranges)
        if not one.count(step.out):
            continue
        if one.count(step.reduced):
            left = [c for c in (replaced(c, given) for c in rest) if truth(c) is not True]
            made.append(replace(one, value=conditional(left, one.value)))
        else:
            made.append(replace(one, op="=", value=Number(0.0), ranges={n: ranges[n] for n in step.out}))
    return made


def _all(condition: Node) -> Iterator[Node]:
    """What must hold together."""
    if isinstance(condition, Apply) and condition.function == "&&":
        for part in condition.args:
            yield from _all(part)
    else:
        yield condition


def _stride(condition: Node, step: Step) -> _Stride | None:
    """Of `(a * y + b * k + c) % s == 0`."""
    match condition:
        case Apply("==", (Apply("%", (index, Number(int(by)))), Number(0))):
            line = poly(index).line()
            own = [n for n in line[1] if n in step.out] if line else []
            gone = [n for n in line[1] if n in step.reduced] if line else []
            if line and len(line[1]) == 2 and len(own) == len(gone) == 1 and line[1][gone[0]] in (1, -1):
                return _Stride(poly(index), own[0], gone[0], by)
    return None
