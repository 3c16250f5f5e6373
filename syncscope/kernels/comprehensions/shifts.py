"""Extremes that results do not depend on, as the maximum that keeps `exp` from overflow: they need no gradient.

Of every tensor is known how it follows one element m of the extreme: as `exp(power * m)` times, or `times * m` plus, something
that m does not change. A result that follows it by neither has no slope in it, whatever the tensors hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from syncscope.kernels.comprehensions.expressions import Apply, Node, Number, Poly, Read, names
from syncscope.kernels.comprehensions.statements import Function, Statement


class _Follows(NamedTuple):
    """How a value follows the extreme, and which element of it, by the value's index variables."""

    power: float = 0
    times: float = 0
    element: tuple[Poly, ...] | None = None


_NOT = _Follows()
_Known = Mapping[str, tuple[tuple[str, ...], _Follows | None]]  # by tensor: its indexes, and how it follows


def idle(f: Function) -> set[str]:
    """The targets of `max=!` and `min=!` on which no result depends."""
    extremes = [s for s in f.statements if s.op in ("min", "max") and s.target not in f.results]
    return {s.target for s in extremes if _gone(s, f)}


def _gone(extreme: Statement, f: Function) -> bool:
    known: dict[str, tuple[tuple[str, ...], _Follows | None]] = {}
    for s in f.statements:
        if s.target == extreme.target:
            known[s.target] = extreme.out, _Follows(times=1, element=tuple(map(Poly.of, extreme.out)))
            continue
        found = _follows(s.value, known)
        if found is not None and found.element is not None and s.op != "=":
            moves = any(names(p) & set(s.reduced) for p in found.element)
            if moves or s.op != "+" or found.times:
                found = None
        known[s.target] = s.out, found
    return all(known[r][1] == _NOT for r in f.results)


def _follows(node: Node, known: _Known) -> _Follows | None:
    """How an expression follows the extreme; None where that is not of either form."""
    parts = [_follows(x, known) for x in node.parts]
    still = all(x == _NOT for x in parts)
    match node:
        case Read(tensor, indexes, other):
            own, found = known.get(tensor, ((), _NOT))
            if found is None or not still:
                return None
            if found.element is None:
                return found
            given = dict(zip(own, indexes, strict=True))
            return None if other else found._replace(element=tuple(p.replaced(given) for p in found.element))
        case Apply(function, args) if not still:
            every = [x for x in parts if x is not None]
            elements = {x.element for x in every if x.element is not None}
            if len(every) < len(parts) or len(elements) > 1:
                return None
            power, times = _combined(function, [x[:2] for x in every], args) or (None, None)
            return (
                None
                if power is None or times is None
                else _Follows(power, times, elements.pop())
                if power or times
                else _NOT
            )
    return _NOT if still else None


def _combined(function: str, parts: list[tuple[float, float]], args: tuple[Node, ...]) -> tuple[float, float] | None:
    """Power and times of what a function makes of values with these."""
    power, times = parts[0]
    other, more = parts[1] if len(parts) > 1 else (0, 0)
    match function:
        case "exp" if not power:
            return times, 0
        case "log" if not times:
            return 0, power
        case "neg":
            return power, -times
        case "+" if not power and not other:
            return 0, times + more
        case "-" if not power and not other:
            return 0, times - more
        case "+" | "-" if not times and not more and power == other:
            return power, 0
        case "?" if parts[0] == (0, 0) and parts[1] == parts[2]:
            return parts[1]
        case "*" if not times and not more:
            return power + other, 0
        case "/" if not times and not more:
            return power - other, 0
        case "*" if isinstance(args[1], Number) and not power:
            return 0, times * args[1].value
    return None
