"""What counts steps: the remainder of such a number says how seldom a test holds, that of a size says nothing of it."""

from __future__ import annotations

import ast
import re

from syncscope.heat.loops import LOOPS, trains
from syncscope.project.syntax import dotted, name_of, statements, walk

_NAMED = re.compile(
    r"(^|_)(global_?|time_?|train_?)?(steps?|it|iters?|itrs?|iterations?|epochs?|counter|calls|ticks?|rounds?|updates?|episodes?|rollouts?)"
    r"(_?(i|id|idx|index|no|nr|nb|num|number|count|counter|so_far|done|seen))?$|"
    r"^(batch|data)_?(i|id|idx|index|no|nr|nb|num|number|count|counter)$|^i_?(batch|iter|step|epoch)$",
    re.IGNORECASE,
)
_SHORT = re.compile(r"^_*(i|n|t|k|idx|index|ind|count|number)$")  # a counter too, where nothing else is known of it
_SIZES = frozenset("shape size numel len dim ndim".split())
_MANY = re.compile(r"batch|loader|epoch|sample|data|steps?$|iter")  # what a loop over many steps goes over


def counts(
    node: ast.expr, function: ast.AST | None = None, cls: ast.ClassDef | None = None, source: bytes = b""
) -> bool:
    """Whether an expression counts steps, epochs or batches, as its names and what gives them their values say.

    `function` is what it stands in (None: nothing is known of that), `cls` the class around it, `source` the text of the file.
    """
    if _is_size(node):
        return False
    return any(
        _is_kept_counter(each)
        if isinstance(each, ast.Subscript)
        else isinstance(each, (ast.Name, ast.Attribute)) and _is_counter(each, function, cls, source)
        for each in walk(node)
    )


def _is_kept_counter(node: ast.Subscript) -> bool:
    """Whether a counter is kept under its name: `state["iter_num"]`."""
    key = node.slice
    return isinstance(key, ast.Constant) and isinstance(key.value, str) and _NAMED.search(key.value) is not None


def _is_size(node: ast.AST) -> bool:
    """Whether an expression asks how large something is."""
    return any(name_of(each) in _SIZES for each in walk(node) if isinstance(each, (ast.Name, ast.Attribute)))


def _is_counter(
    node: ast.Name | ast.Attribute, function: ast.AST | None, cls: ast.ClassDef | None, source: bytes
) -> bool:
    name = name_of(node)
    if isinstance(node, ast.Attribute):
        return bool(_NAMED.search(name) or _SHORT.match(name)) or (
            cls is not None and _is_incremented(cls, dotted(node))
        )
    given = _given(function, name) if function is not None else []
    assigned = [each.value for each in given if isinstance(each, ast.Assign)]
    if any(map(_adds_to_epochs, assigned)):
        return True
    if any(map(_is_size, assigned)):
        return False
    if _NAMED.search(name):
        return True
    counted = _counted_by_loop(name, given, function, source)
    if counted is not None:
        return counted
    aliases = [each for each in assigned if not isinstance(each, ast.Constant)]
    if len(given) == len(aliases) == 1 and isinstance(aliases[0], (ast.Attribute, ast.BinOp)):
        return counts(aliases[0], None, cls, source)
    return _SHORT.match(name) is not None


def _counted_by_loop(name: str, given: list[ast.AST], function: ast.AST | None, source: bytes) -> bool | None:
    """Whether a loop over steps gives a name its values, or adds to it; None where no loop does so."""
    loops = [each for each in given if isinstance(each, LOOPS)]
    if loops:
        return any(_over_steps(each, function, source) for each in loops)
    if function is None or not any(isinstance(each, ast.AugAssign) for each in given):
        return None
    around = (loop for loop in statements(function) if isinstance(loop, LOOPS))
    return any(_over_steps(loop, function, source) and name in _named_in(loop) for loop in around)


def _adds_to_epochs(node: ast.expr) -> bool:
    """Whether the batches of all epochs are counted: `epoch * len(loader) + i`."""
    match node:
        case ast.BinOp(left=ast.BinOp(left=one, op=ast.Mult(), right=other), op=ast.Add()):
            return any(name_of(each).endswith("epoch") for each in (one, other)) and _is_size(node)
    return False


def _over_steps(loop: ast.For | ast.AsyncFor | ast.While, function: ast.AST | None, source: bytes) -> bool:
    """Whether each pass of a loop is a step, or holds some: it trains, stands at the top level, or goes over batches."""
    name = getattr(function, "name", "")
    if not name or trains(loop, name, source):
        return True
    return not isinstance(loop, ast.While) and any(_MANY.search(name_of(each)) for each in walk(loop.iter))


def _given(scope: ast.AST, name: str) -> list[ast.AST]:
    """The statements of a scope that give a name its value."""
    found: list[ast.AST] = []
    for each in statements(scope):
        if isinstance(each, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor)):
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            if any(isinstance(part, ast.Name) and part.id == name for target in targets for part in walk(target)):
                found.append(each)
    return found


def _named_in(loop: ast.AST) -> set[str]:
    """The names to which a loop adds."""
    return {name_of(each.target) for each in statements(loop) if isinstance(each, ast.AugAssign)}


def _is_incremented(cls: ast.ClassDef, path: str) -> bool:
    """Whether a method, other than the one that sets up, adds a number to an attribute."""
    for method in cls.body:
        if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) or method.name == "__init__":
            continue
        for each in statements(method):
            match each:
                case ast.AugAssign(target=target, op=ast.Add(), value=ast.Constant()) if dotted(target) == path != "":
                    return True
                case ast.Assign(targets=[target], value=ast.BinOp(left=left, op=ast.Add(), right=ast.Constant())) if (
                    dotted(target) == dotted(left) == path != ""
                ):
                    return True
    return False
