"""What a trainer or its helper is handed, and sends to the device itself: it comes from a loader, which makes it on the host.

A network and a loss are handed what lies where they compute, and what goes `to(x.device)` may be there already.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from syncscope.model.fact import Fact
from syncscope.project import conventions, devices
from syncscope.project.modules import ProjectFunction
from syncscope.project.of_file import kept
from syncscope.project.syntax import name_of, walk
from syncscope.tensors.call import Call
from syncscope.tensors.facts import BATCH, TENSOR
from syncscope.tensors.instances import is_module
from syncscope.tensors.of_a_batch import CONVERTING, SAME, SHAPING
from syncscope.tensors.parameters import announced
from syncscope.tensors.sent_parts import devices_of_tensors, entry_named, to_a_device

HANDED = Fact(BATCH, confidence=1, why="what a trainer is handed is most often a loader's")
_LIKE_IT = CONVERTING | SHAPING | SAME | {"squeeze", "clone"}
_OF_MODELS = frozenset("parameters named_parameters state_dict load_state_dict train eval forward zero_grad".split())
_VIEWS = frozenset("items values keys".split())


def is_sent(call: Call) -> bool:
    """Whether a call `x.to(device)` sends what its function is handed, or a part of that: `batch.x`, `data[0]`."""
    function = call.frame.function
    return function is not None and id(call.node) in _sent(function)


@kept(8)  # each holds all of its file
def _sent(function: ProjectFunction) -> frozenset[int]:
    cls = function.cls
    computes = conventions.is_loss(function.name) or function.name in conventions.FORWARD
    if computes or (cls is not None and (is_module(cls) or conventions.is_loss(cls.name))):
        return frozenset()
    every = walk(function.node)
    beside = devices_of_tensors(every)
    sending = [
        each
        for each in every
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and to_a_device(each, function, beside)
    ]
    if not sending:
        return frozenset()
    handed, put = _handed(function, every), _put(every)
    return frozenset(
        id(each)
        for each in sending
        if _root(at := each.func.value) in handed  # type: ignore[attr-defined]  # of an attribute, as was asked
        and each.lineno <= put.get(ast.unparse(at), each.lineno)
    )


def _handed(function: ProjectFunction, every: list[ast.AST]) -> set[str]:
    """The names of what a function is handed, and of its parts, that are no networks and stand for nothing else later.

    Of what is announced as a tensor its callers say where it lies.
    """
    names = {*function.names, *(each.arg for each in function.node.args.kwonlyargs)} - {"self", "cls"}
    found = {each for each in names if announced(function, each).kind is not TENSOR}
    bound = [(targets, value) for targets, value in _bound(every) if _root(value) not in targets]
    for targets, value in bound:  # in the order in which they are written, nearly
        if _is_unsent(value) and _root(value) in found:
            found |= targets
    for targets, value in bound:
        if not (_is_unsent(value) and _root(value) in found):
            found -= targets
    return found - _networks(every)


def _is_unsent(value: ast.expr) -> bool:
    return not any(isinstance(each, ast.Attribute) and each.attr in ("to", "cuda") for each in walk(value))


def _put(every: list[ast.AST]) -> dict[str, int]:
    """The line in which an entry or an attribute is given another value, by how it is written: what it was before is gone."""
    targets = (target for each in every if isinstance(each, ast.Assign) for target in each.targets)
    places = [each for each in targets if isinstance(each, (ast.Subscript, ast.Attribute))]
    return {ast.unparse(each): each.lineno for each in reversed(places)}


def _bound(every: list[ast.AST]) -> Iterator[tuple[set[str], ast.expr]]:
    """The names that are bound, and to what, or to the parts of what; not what stands for an argument that is left out."""
    instead = {
        id(inner) for each in every if isinstance(each, ast.If) and _is_left_out(each.test) for inner in each.body
    }
    for each in every:
        match each:
            case ast.Assign(targets=[target], value=value) if id(each) not in instead:
                yield _names(target), value
            case ast.For(target=target, iter=over) | ast.comprehension(target=target, iter=over):
                yield _names(target), _gone_through(over)


def _is_left_out(test: ast.expr) -> bool:
    match test:
        case ast.Compare(left=ast.Name(), ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
            return True
    return False


def _names(target: ast.expr) -> set[str]:
    return {each.id for each in walk(target) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}


def _gone_through(over: ast.expr) -> ast.expr:
    """What a loop goes through: of `enumerate(tqdm(batches))`, `parts.items()`."""
    match over:
        case ast.Call(func=ast.Attribute(value=value, attr=attr), args=[]) if attr in _VIEWS:
            return value
        case ast.Call(func=ast.Name(), args=[value, *_]) | ast.Starred(value=value):
            return _gone_through(value)
    return over


def _root(node: ast.expr) -> str:
    """The name that something is a part of, perhaps converted or sent: `batch` of `batch["x"].float()`. None of a network."""
    while True:
        match node:
            case ast.Name(id=name):
                return "" if _is_network(name) else name
            case ast.Subscript(value=value, slice=key):
                named = entry_named(key).lower()
            case ast.Attribute(value=value, attr=named):
                pass
            case ast.Call(func=ast.Attribute(value=value, attr=word)) if word in _LIKE_IT:
                named = ""
            case _:
                return ""
        if named and _is_network(named):
            return ""
        node = value


def _is_network(name: str) -> bool:
    """Whether people call a network so, several, or what knows where one lives."""
    one = name.removesuffix("s")
    return devices.is_model(name) or devices.is_model(one) or devices.is_network(one) or devices.knows_device(name)


def _networks(every: list[ast.AST]) -> set[str]:
    """The names of what is called, or asked for what networks have."""
    called = {each.func.id for each in every if isinstance(each, ast.Call) and isinstance(each.func, ast.Name)}
    asked = (each for each in every if isinstance(each, ast.Attribute) and each.attr in _OF_MODELS)
    return called | {name_of(each.value) for each in asked if isinstance(each.value, ast.Name)}
