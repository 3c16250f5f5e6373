"""Extremes that results do not depend on, as the maximum that keeps `exp` from overflow: they need no gradient.

Of every tensor is known how it follows one element m of the extreme: as `exp(power * m)` times, or `times * m` plus, something
that m does not change. A result that follows it by neither has no slope in it, whatever the tensors hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from syncscope.kernels.comprehension.expressions import Apply, Name, Node, Number, Poly, Read, names
from syncscope.kernels.comprehension.ranges import Ranges


class _Follows(NamedTuple):
    """How a value follows the extreme, and which element of it, by the value's index variables."""

    power: float = 0
    times: float = 0
    element: tuple[Poly, ...] | None = None


_NOT = _Follows()
_Known = Mapping[str, tuple[tuple[str, ...], _Follows | None]]  # by tensor: its indexes, and how it follows


def idle(ranges: Ranges, results: tuple[str, ...]) -> set[str]:
    """The targets of `max=!` and `min=!` on which no result depends."""
    extremes = [r.statement for r in ranges.statements if r.statement.op in ("min", "max") and r.statement.sets]
    return {s.target for s in extremes if s.target not in results and _gone(s.target, s.indexes, ranges, results)}


def _gone(extreme: str, indexes: tuple[str, ...], ranges: Ranges, results: tuple[str, ...]) -> bool:
    known: dict[str, tuple[tuple[str, ...], _Follows | None]] = {}
    for ranged in ranges.statements:
        s = ranged.statement
        if s.target == extreme:
            known[extreme] = indexes, _Follows(times=1, element=tuple(map(Poly.of, indexes)))
            continue
        found = _follows(ranged.value, known)
        if found is not None and found.element is not None and s.op != "=":
            moves = any(names(p) & set(ranged.reduced) for p in found.element)
            if moves or s.op != "+" or not s.sets or found.times:
                found = None
        if not s.sets and (found != _NOT or known.get(s.target, ((), _NOT))[1] != _NOT):
            found = None
        known[s.target] = s.indexes, found
    return all(known[r][1] == _NOT for r in results)


def _follows(node: Node, known: _Known) -> _Follows | None:
    """How an expression follows the extreme; None where that is not of either form."""
    parts = [_follows(x, known) for x in node.parts]
    still = all(x == _NOT for x in parts)
    match node:
        case Number() | Name():
            return _NOT
        case Read(tensor, _, other):
            own, found = known.get(tensor, ((), _NOT))
            if found is None or not still:
                return None
            if found.element is None:
                return found
            given = dict(zip(own, node.polys, strict=True))
            return None if other else found._replace(element=tuple(p.replaced(given) for p in found.element))
        case Apply(function, args):
            every = [x for x in parts if x is not None]
            elements = {x.element for x in every if x.element is not None}
            if still or len(every) < len(parts) or len(elements) > 1:
                return _NOT if still else None
            return _combined(function, every, args, elements.pop())
    return None


def _combined(
    function: str, parts: Sequence[_Follows], args: Sequence[Node], element: tuple[Poly, ...]
) -> _Follows | None:
    def made(power: float, times: float) -> _Follows:
        return _Follows(power, times, element) if power or times else _NOT

    powers, times = [x.power for x in parts], [x.times for x in parts]
    match function:
        case "exp" if not powers[0]:
            return made(times[0], 0)
        case "log" if not times[0]:
            return made(0, powers[0])
        case "neg":
            return made(powers[0], -times[0])
        case "+" | "-" if not any(powers):
            return made(0, times[0] + (times[1] if function == "+" else -times[1]))
        case "+" | "-" if not any(times) and powers[0] == powers[1]:
            return parts[0]
        case "?" if parts[0] == _NOT and parts[1] == parts[2]:
            return parts[1]
        case "*" if not any(times):
            return made(powers[0] + powers[1], 0)
        case "/" if not any(times):
            return made(powers[0] - powers[1], 0)
        case "*" if isinstance(args[1], Number) and not powers[0]:
            return made(0, times[0] * args[1].value)
    return None
