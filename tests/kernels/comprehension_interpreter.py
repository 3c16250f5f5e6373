"""The notation by its definition, and by nothing of ours: a grammar, ranges by trying, statements point by point, in place."""

import itertools
import math
import re

import numpy as np

_WORD = re.compile(
    r"\s+|#.*|((?<![\w)])\.\d+|\d+\.?\d*(?:[eE][-+]?\d+)?|(?:\b(?:min|max)|[+*])=!?(?!=)|[A-Za-z_]\w*"
    r"|<=>|->|&&|\|\||[=!<>]=|//|.)"
)
_LEVELS = [["||"], ["&&"], ["==", "!="], ["<", "<=", ">", ">="], ["+", "-"], ["*", "/", "//", "%"]]
_START = {"=": 0, "+": 0, "*": 1, "min": math.inf, "max": -math.inf}
_MEET = {"=": lambda a, b: b, "+": lambda a, b: a + b, "*": lambda a, b: a * b, "min": min, "max": max}
_APPLY = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "<": lambda a, b: a < b, ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
    "&&": lambda a, b: bool(a and b), "||": lambda a, b: bool(a or b),
}  # fmt: skip
_CALLS = {
    "max": max, "min": min, "fmax": max, "fmin": min, "fabs": abs, "pow": pow, "rsqrt": lambda x: x**-0.5, "float": float,
    "double": float, "int": int, "int32": int, "int64": int, "fdivide": lambda x, y: x / y,
}  # fmt: skip


class _Text:
    """Words to nested tuples: a kind, and its parts."""

    def __init__(self, text):
        self.words = [w for w in _WORD.findall(text) if w] + ["", ""]
        self.at = 0

    def next(self, *wanted):
        word = self.words[self.at]
        if wanted and word not in wanted:
            return None
        self.at += 1
        return word

    def listed(self, item):
        found = []
        self.next("(")
        while not self.next(")"):
            found.append(item())
            self.next(",")
        return found

    def expression(self, level=0):
        if level == len(_LEVELS):
            return self.unary()
        left = self.expression(level + 1)
        while word := self.next(*_LEVELS[level]):
            left = (word, left, self.expression(level + 1))
        if level == 0 and self.next("?"):
            yes = self.expression()
            self.next(":")
            return "?", left, yes, self.expression()
        return left

    def unary(self):
        word = self.next()
        if word in "-!":
            return word, self.unary()
        if word == "(":
            inside = self.expression()
            self.next(")")
            return inside
        if re.match(r"\.?\d", word):
            return "number", float(word) if re.search(r"[.eE]", word) else int(word)
        if self.next("."):
            return "size", word, int(self.next())
        args = self.listed(self.expression) if self.words[self.at] == "(" else None
        other = self.unary() if self.next("else") else None
        return "call", word, args, other

    def parameter(self):
        self.next()
        dims = self.listed(self.expression) if self.words[self.at] == "(" else None
        return self.next(), dims

    def statement(self):
        target, left = self.next(), []
        if self.words[self.at] == "(":
            left = self.listed(self.next)
        op, value, ranges, seen, names = self.next(), self.expression(), {}, [], {}
        if self.next("<=>"):
            self.next()
            self.listed(self.expression)
        more = self.next("where")
        while more:
            if self.next("exists"):
                seen.append(self.expression())
            elif (name := self.next()) and self.next("in"):
                low = self.expression()
                self.next(":")
                ranges[name] = low, self.expression()
            else:
                self.next("=")
                names[name] = self.expression()
            more = self.next(",")
        return target, left, op, value, ranges, seen, names


def interpret(text, **given):
    """Results by name; `given` are numpy arrays and numbers."""
    words = _Text(text)
    words.at = 2
    parameters = words.listed(words.parameter)
    words.next("->")
    results = words.listed(words.next)
    known = {name: given[name] for name, _ in parameters}
    for name, dims in parameters:
        for dim, size in zip(dims or (), np.shape(given[name]), strict=True):
            if dim[0] == "call":
                known[dim[1]] = size
    words.next("{")
    while not words.next("}"):
        _run(words.statement(), known)
    return {name: known[name] for name in results}


def _run(statement, known):
    target, left, op, value, ranges, seen, names = statement
    there = target in known
    every = [*_calls(value, names, known), *(c for x in seen for c in _calls(x, names, known))]
    if there:
        every.append(("call", target, [("call", n, None, None) for n in left], None))
    ends = {n: range(*(_value(x, known, {}, names, True) for x in pair)) for n, pair in ranges.items()}
    own = list(dict.fromkeys([*left, *_variables(value, names, known)]))
    while unknown := [n for n in own if n not in ends]:
        found = {}
        for padded in (False, True):
            for _, tensor, args, other in every:
                for arg, size in zip(args, known[tensor].shape, strict=True):
                    free = set(_variables(arg, names, known))
                    if (other is None) == padded or len(free - ends.keys()) != 1 or _reads(arg, known):
                        continue
                    (name,) = free - ends.keys()
                    fits = _fitting(arg, name, free - {name}, size, ends, known, names)
                    if not padded or arg == ("call", name, None, None):
                        found.setdefault(name, set(fits)).intersection_update(fits)
            if found:
                break
        assert found, f"no range for {unknown}"
        ends |= {n: range(min(fits), max(fits) + 1) for n, fits in found.items()}
    shape = tuple(ends[n].stop for n in left)
    made, written = (known[target].copy() if there else np.zeros(shape)), set()
    kind = op.rstrip("!").removesuffix("=") or "="
    for values in itertools.product(*(ends[n] for n in own)):
        at = dict(zip(own, values, strict=True))
        spot = tuple(at[n] for n in left)
        if op.endswith("!") and spot not in written:
            made[spot] = _START[kind]
        written.add(spot)
        made[spot] = _MEET[kind](made[spot], _value(value, known, at, names))
    known[target] = made


def _fitting(index, name, others, size, ends, known, names):
    """For which values of a variable an index stays inside, whatever the others are."""
    rest = [dict(zip(others, values, strict=True)) for values in itertools.product(*(ends[n] for n in others))]
    return [
        v
        for v in range(2 * size + 64)
        if all(0 <= _value(index, known, at | {name: v}, names, True) < size for at in rest)
    ]


def _parts(node):
    return [*(node[2] or ()), *([node[3]] if node[3] else [])] if node[0] == "call" else node[1:]


def _walk(node, names):
    if node[0] in ("number", "size"):
        return
    yield node
    if node[0] == "call" and node[1] in names:
        yield from _walk(names[node[1]], names)
    for part in _parts(node):
        yield from _walk(part, names)


def _calls(node, names, known):
    """The reads of tensors in it."""
    return [x for x in _walk(node, names) if x[0] == "call" and x[2] is not None and np.ndim(known.get(x[1], 0))]


def _reads(node, known):
    return bool(_calls(node, {}, known))


def _variables(node, names, known):
    """The index variables in it, in order."""
    calls = (x for x in _walk(node, names) if x[0] == "call" and x[2] is None)
    return [x[1] for x in calls if x[1] not in known and x[1] not in names and x[1] not in ("inf", "true", "false")]


def _value(node, known, at, names, whole=False):
    """A number; `whole` in an index, where quotients round down."""
    match node:
        case ("number", value):
            return value
        case ("size", tensor, dim):
            return known[tensor].shape[dim]
        case ("?", condition, yes, no):
            return _value(yes if _value(condition, known, at, names, whole) else no, known, at, names, whole)
        case ("call", name, args, other):
            if args is None or not args:
                if name in names:
                    return _value(names[name], known, at, names, whole)
                if name in known:
                    return known[name].item() if isinstance(known[name], np.ndarray) else known[name]
                return {"inf": math.inf, "true": True, "false": False}[name] if name not in at else at[name]
            if name not in known:
                function = _CALLS.get(name) or getattr(math, name)
                return function(*(_value(x, known, at, names, whole) for x in args))
            spot = tuple(int(_value(x, known, at, names, True)) for x in args)
            if any(not 0 <= i < size for i, size in zip(spot, known[name].shape, strict=True)):
                assert other is not None, (name, spot)
                return _value(other, known, at, names, whole)
            return known[name][spot].item()
        case ("-", x):
            return -_value(x, known, at, names, whole)
        case ("!", x):
            return not _value(x, known, at, names, whole)
    a, b = (_value(x, known, at, names, whole) for x in node[1:])
    return _APPLY["//" if whole and node[0] == "/" else node[0]](a, b)
