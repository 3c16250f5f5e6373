"""What a function is given, and sends to the device itself: what is asked of it before, most likely is asked on the host."""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections import defaultdict
from typing import NamedTuple

from syncscope.project.modules import ProjectFunction
from syncscope.project.of_file import kept
from syncscope.project.syntax import dotted, walk
from syncscope.tensors.frame import Frame


def is_sent_later(frame: Frame, node: ast.expr) -> bool:
    """Whether this is an argument, or a part of one, that a later line of its function sends: `x = x.float().to(self.device)`,
    `longer = x["longer"].to(device)`; and is not bound anew before that.
    """
    function = frame.function
    path = _path(node)
    if function is None or not path:
        return False
    known = _sent(function)
    if _root(path) not in known.given:
        return False
    sent = _first(known.sent.get(path, []), node.lineno)
    bound = _first(known.bound.get(_root(path), []), node.lineno)
    return sent is not None and (bound is None or sent <= bound)


class _Sent(NamedTuple):
    """The arguments of a function, and names of parts of them; by the path of each the lines that send it, or bind its name."""

    given: frozenset[str]
    sent: dict[str, list[int]]
    bound: dict[str, list[int]]


@kept(16)  # each holds all of its file
def _sent(function: ProjectFunction) -> _Sent:
    given = {*function.names} - {"self", "cls"}
    sent, bound, parts = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list), dict[str, bool]()
    for node in walk(function.node):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                bound[name].append(node.lineno)
            case ast.Call() if path := _sends(node):
                sent[path].append(node.end_lineno or node.lineno)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                parts[name] = (
                    parts.get(name, True) and _root(_path(value)) in given and isinstance(value, ast.Subscript)
                )
    given.update(name for name, is_part in parts.items() if is_part and len(bound[name]) == 1)
    return _Sent(frozenset(given), _sorted(sent), _sorted(bound))


def _sorted(lines: dict[str, list[int]]) -> dict[str, list[int]]:
    return {name: sorted(each) for name, each in lines.items()}


def _first(lines: list[int], after: int) -> int | None:
    """The first of some lines that comes after another."""
    at = bisect_right(lines, after)
    return lines[at] if at < len(lines) else None


def _path(node: ast.expr) -> str:
    """A name, or what stands in it under a key that is written out, `x["longer"]`; "" for anything else."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Subscript(value=value, slice=ast.Constant(value=str(key))) if path := _path(value):
            return f"{path}[{key!r}]"
    return ""


def _root(path: str) -> str:
    return path.partition("[")[0]


def _sends(call: ast.Call) -> str:
    """The path that a chain of calls sends: `x.float().cuda()`, `x.to(self.device)`; "" where it sends none."""
    match call.func:
        case ast.Attribute(attr="cuda"):
            pass
        case ast.Attribute(attr="to"):
            places = (*call.args, *(each.value for each in call.keywords))
            if not any("device" in dotted(each) for each in places):
                return ""
        case _:
            return ""
    node: ast.expr = call.func.value
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return _path(node)
