"""What a function says of others only where it seldom goes: outside of the batches that it trains on, and under rare tests."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator

from syncscope.heat import blocks
from syncscope.heat.parsed_text import parsed
from syncscope.model.heat import Heat, Reason
from syncscope.project.outline import FunctionText, Spoken
from syncscope.project.syntax import name_of, walk

_BLOCKS = re.compile(rb"\n[ \t]+(?:if|elif|for|while|with|async)\b")
_SELDOM = frozenset(
    (
        Reason.LISTED,
        Reason.OFF,
        Reason.ENDS_EPOCH,
        Reason.PACED,
        Reason.NO_GRAD,
        Reason.NOT_TRAINED,
        Reason.AFTER_ERROR,
        Reason.BEFORE_ERROR,
        Reason.WARNS,
        Reason.ODD,
    )
)
_OUTSIDE = frozenset((Reason.OUTSIDE, Reason.EPOCHS))  # of the batches, in a function that trains on them


class SpokenInSteps(Spoken):
    """What functions speak of where they run in steps."""

    def __init__(self, spoken: Spoken, off: Collection[str] = ()) -> None:
        self._off: dict[str, set[str]] = defaultdict(set)  # by the key of a function its flags that nothing turns on
        for key in off:
            function, _, flag = key.removesuffix(")").rpartition("(")
            self._off[function].add(flag)
        self.as_attribute, self._known, self._asking = spoken.as_attribute, spoken._known, spoken._asking
        self._all, self._aliases = spoken, spoken._aliases
        self._words = {}
        self._cold: dict[tuple[str, int], dict[bytes, bool]] = {}

    def by(self, function: FunctionText) -> tuple[bytes, ...]:
        """The words of a function, but for those that it says only where it seldom goes."""
        key = function.path, function.begin
        found = self._words.get(key)
        if found is None:
            cold = self.cold(function)
            found = self._words[key] = tuple(word for word in self._all.by(function) if word not in cold)
        return found

    def cold(self, function: FunctionText) -> dict[bytes, bool]:
        """The words that a function says only where it seldom goes, and whether all of that is outside of its batches."""
        key = function.path, function.begin
        found = self._cold.get(key)
        if found is None:
            said = self._all.by(function) if _BLOCKS.search(function.text()) else ()
            found = self._cold[key] = said_seldom(function, said, self._off.get(function.key, ())) if said else {}
        return found


def said_seldom(function: FunctionText, said: Collection[bytes], off: Collection[str] = ()) -> dict[bytes, bool]:
    """Those of these words of a function that are calls in cold blocks alone, and whether all are so as they stand outside of
    its training loop, in a function that holds one."""
    tree, code = parsed(function)
    return {} if tree is None else in_cold_blocks(tree, code, said, off)


def in_cold_blocks(
    tree: blocks.Function, code: bytes, said: Collection[bytes], off: Collection[str] = ()
) -> dict[bytes, bool]:
    """The same of a tree, whose lines count in a text; of attributes with what stands before the point, too."""
    uses: dict[bytes, list[Heat | None]] = defaultdict(list)
    for node, word, heat in _uses(tree, code, said, off):
        uses[word].append(heat)
        if isinstance(node, ast.Attribute):  # `validate.run` of a module, and another `run`
            uses[name_of(node.value).encode() + word].append(heat)
    return {
        word: all(each is not None and each.reason in _OUTSIDE for each in heats)
        for word, heats in uses.items()
        if all(each is not None and each.reason in _OUTSIDE | _SELDOM for each in heats)
    }


def _uses(
    tree: blocks.Function, code: bytes, said: Collection[bytes], off: Collection[str]
) -> Iterator[tuple[ast.expr, bytes, Heat | None]]:
    """Where a function says one of these words, each with how seldom it goes there; None: it does, or may keep it for later."""
    every, trains = walk(tree), blocks.trains(tree, code)
    inner = {id(part) for each in every if isinstance(each, _SCOPES) and each is not tree for part in walk(each)}
    never = {id(part) for each in every if isinstance(each, ast.If) for arm in _arms(each, off) for part in walk(arm)}
    called = {id(each.func) for each in every if isinstance(each, ast.Call)}
    for node in every:
        if not isinstance(node, (ast.Name, ast.Attribute)):
            continue
        word = b"." * isinstance(node, ast.Attribute) + name_of(node).encode()
        if word not in said:
            continue
        heat = blocks.of_call(tree, node, code) if id(node) not in inner else None
        if id(node) in never:
            heat = Reason.OFF()
        if heat is not None and heat.reason in _OUTSIDE and not (trains and id(node) in called):
            heat = None
        yield node, word, heat


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def _arms(node: ast.If, off: Collection[str]) -> list[ast.stmt]:
    """The arm of an `if` that nothing goes into, as the flag that it asks for is off."""
    match node.test:
        case ast.Name(id=name) if name in off:
            return node.body
        case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)) if name in off:
            return node.orelse
    return []
