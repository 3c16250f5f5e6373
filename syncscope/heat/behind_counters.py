"""What a project calls only where steps are counted, or somebody looks for errors: in arms of `step % 1000 == 0` and
`opt.debug > 0`, and from what is called there alone."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache

from syncscope.heat import blocks, loops
from syncscope.heat.by_text import said_by_name
from syncscope.heat.parsed_text import parsed
from syncscope.model.heat import Reason
from syncscope.project.conventions import HOOKS, STEP_CALL
from syncscope.project.definitions import Definitions
from syncscope.project.outline import FunctionText, Spoken, plain
from syncscope.project.syntax import name_of, statements, walk

_COUNTS = re.compile(rb"^[ \t]*(?:if|elif)\b[^\n]*(?:\w[ \t]*%[ \t]*\w|divisible|debug)", re.MULTILINE)
_SELDOM = frozenset((Reason.WHEN, Reason.SELDOM, Reason.LISTED, Reason.ENDS_EPOCH))
_WORD = re.compile(rb"\w+")
_TRAINS = re.compile(r"backward|learn|train_|(^|_)step$|^_?update_")  # calls beside which an arm is itself a step
_STEPS = re.compile(rb"backward\(|\.step\(|\.learn\(")
_FARTHEST = 3  # functions that are called one by another, the first in such an arm
_SPREAD = 12  # functions that speak of one name at most: whatever more speak of is called in some step


class BehindCounters:
    """The functions that are called there alone. What `idle` files say does not count; `outside` has what stands outside
    of the functions of a file, by its path.
    """

    def __init__(
        self, definitions: Definitions, said: Spoken, idle: Collection[str], outside: Mapping[str, bytes]
    ) -> None:
        self._sources, self._defined, self._said = definitions.sources, definitions.defined, said
        self._idle, self._outside = idle, {path: text for path, text in outside.items() if path not in idle}
        self._functions = [each for each in definitions.functions() if each.path not in idle]
        self._parsed: dict[tuple[str, int], _Uses | None] = {}

    def found(self) -> list[FunctionText]:
        """All of them."""
        found: dict[str, FunctionText] = {}
        speaking = [each for each in self._functions if _counts(each.text())]
        names = {word for text in self._outside.values() if _counts(text) for word in _WORD.findall(text)}
        for _ in range(_FARTHEST):
            names |= {word.removeprefix(b".") for each in speaking for word in self._said.by(each)}
            asked = [each for name in sorted(names) for each in self._all_of(name) if each.key not in found]
            by_name = self._speaking_of({each.name.encode() for each in asked})
            speaking = [each for each in asked if self._is_seldom(each, by_name[each.name.encode()], found)]
            found.update((each.key, each) for each in speaking)
            names = set()
            if not speaking:
                break
        _tree.cache_clear()
        return [*found.values()]

    def _all_of(self, name: bytes) -> list[FunctionText]:
        """The functions of this name, where the project has few, and nothing says of any that it runs in steps."""
        same = [*self._defined.get(name, ()), *self._defined.get(b"." + name, ())]
        same = [each for each in same if each.path not in self._idle]
        if name.startswith(b"__") or len(same) > _SPREAD:
            return []
        return [] if any(map(_may_be_a_step, same)) else same

    def _speaking_of(self, names: Collection[bytes]) -> dict[bytes, list[FunctionText]]:
        """By each of these names the functions that speak of it."""
        found: dict[bytes, list[FunctionText]] = {name: [] for name in names}
        for each in self._functions if names else ():
            for name in {word.removeprefix(b".") for word in self._said.by(each)} & found.keys():
                found[name].append(each)
        return found

    def _is_seldom(
        self, function: FunctionText, speaking: Collection[FunctionText], found: Mapping[str, FunctionText]
    ) -> bool:
        """Whether all that speaks of a function calls it in such an arm, or is called so itself; and something does."""
        others = [each for each in speaking if each.name != function.name]  # those of derived classes call one another
        if len(others) > _SPREAD:
            return False
        told = self._told(function, others, found)
        return next(told, False) and all(told)  # behind the first that is not, nothing need be parsed

    def _told(
        self, function: FunctionText, others: Collection[FunctionText], found: Mapping[str, FunctionText]
    ) -> Iterator[bool]:
        """Whether each place that speaks of a function is in such an arm."""
        for each in others:
            yield from [True] if each.key in found else self._uses(each, function.name)
        name = function.name.encode()
        for path, text in self._outside.items():
            if name in text and name in _WORD.findall(plain(text)):
                yield from _uses_at_top(self._sources[path], function.name) if _may_train(text) else [False]

    def _uses(self, function: FunctionText, name: str) -> list[bool]:
        """Whether each place where a function says a name is a call in such an arm."""
        key = function.path, function.begin
        if key not in self._parsed:
            tree, code = parsed(function)
            self._parsed[key] = None if tree is None else _Uses(tree, code, walk(tree))
        uses = self._parsed[key]
        return [False] if uses is None else uses.of(name)


def _counts(text: bytes) -> bool:
    """Whether a text asks how many steps it was, or for errors; most do neither, which is seen in a tenth of the time."""
    return (b"%" in text or b"divisible" in text or b"debug" in text) and _COUNTS.search(text) is not None


def _may_be_a_step(function: FunctionText) -> bool:
    """Whether something says that a function runs in steps, or it is called by what a decorator makes of it."""
    is_hook = function.cls and function.name in HOOKS
    trains = _TRAINS.search(function.name) or _STEPS.search(function.text())
    named = said_by_name(function).reason is not Reason.MAYBE
    return bool(function.is_decorated() or is_hook or trains or named)


class _Uses:
    """What is said in a tree, by its names: who asks for one name of a function asks for the next."""

    def __init__(self, tree: blocks.Function, code: bytes, nodes: Collection[ast.AST]) -> None:
        self._tree, self._code = tree, code
        self._called = {id(each.func) for each in nodes if isinstance(each, ast.Call)}
        asked = {id(part) for each in nodes for part in _asked(each)}
        self._named: dict[str, list[ast.AST]] = defaultdict(list)
        for each in nodes:
            if isinstance(each, (ast.Name, ast.Attribute)) and id(each) not in asked:
                self._named[name_of(each)].append(each)

    def of(self, name: str) -> list[bool]:
        """Whether each place where it says a name is a call in such an arm."""
        return [
            id(each) in self._called and _is_behind(self._tree, each, self._code) for each in self._named.get(name, ())
        ]


def _may_train(text: bytes) -> bool:
    """Whether a loop at the top of a file may train: to parse a file costs more than what most say here."""
    return b"backward" in text or any(STEP_CALL.match(word.decode()) for word in set(_WORD.findall(text)))


@lru_cache(maxsize=1)
def _tree(source: bytes) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _uses_at_top(source: bytes, name: str) -> list[bool]:
    """The same of what stands outside of all functions; where nothing trains there, none is such an arm."""
    tree = _tree(source)
    if tree is None:
        return [False]
    top = loops.at_top(tree)
    inside = {id(part) for each in walk(tree) if isinstance(each, _FUNCTIONS) for part in walk(each)}
    nodes = [each for each in walk(tree) if id(each) not in inside]
    return _Uses(top, source, nodes).of(name) if top is not None else [False for each in nodes if name_of(each) == name]


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _asked(node: ast.AST) -> Sequence[ast.expr]:
    """What is a flag or a number here, whatever function is called so: `opt.debug > 0`, `if opt.debug`."""
    match node:
        case ast.Compare(left=left, comparators=others):
            return left, *others
        case ast.If(test=test) | ast.IfExp(test=test) | ast.UnaryOp(op=ast.Not(), operand=test):
            return (test,)
        case ast.BoolOp(values=values):
            return values
    return ()


def _is_behind(tree: blocks.Function, node: ast.AST, code: bytes) -> bool:
    """Whether a place is in such an arm, and n is not small, nor how many passes make a step."""
    heat = blocks.of_call(tree, node, code)
    seldom = heat is not None and heat.reason in _SELDOM and _FEW.search(heat.about[0]) is None
    return seldom and not any(
        _trains(each) for each in statements(tree) if isinstance(each, ast.If) and node in walk(each)
    )


def _trains(arm: ast.If) -> bool:
    """Whether an arm is a step: an agent that learns from what it has seen in so many."""
    calls = (name_of(each.func) for part in arm.body for each in walk(part) if isinstance(each, ast.Call))
    return any(map(_TRAINS.search, calls))


_FEW = re.compile(r"% *(?:\d|10)\b|accum")
