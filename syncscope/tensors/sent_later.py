"""Arguments that a function sends to the device itself: what is asked of them before that, most likely is asked on the host."""

from __future__ import annotations

import ast
from functools import lru_cache

from syncscope.project.modules import ProjectFunction
from syncscope.project.syntax import dotted, name_of, statements
from syncscope.tensors.frame import Frame


def is_sent_later(frame: Frame, node: ast.expr) -> bool:
    """Whether this is an argument that a later line of its function sends: `x = x.float().to(self.device)`."""
    function = frame.function
    if function is None or not isinstance(node, ast.Name) or node.id not in function.names:
        return False
    return node.lineno < _sent(function).get(node.id, 0)


@lru_cache(maxsize=16)  # each holds all of its file
def _sent(function: ProjectFunction) -> dict[str, int]:
    """The names that are sent and bound anew, and the first line that does it."""
    found: dict[str, int] = {}
    for statement in statements(function.node):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call) if _sends(call, name):
                found[name] = min(statement.lineno, found.get(name, statement.lineno))
    return found


def _sends(call: ast.Call, name: str) -> bool:
    """Whether a chain of calls on a name sends it: `x.float().cuda()`, `x.to(self.device)`."""
    sent, node = False, call.func
    while isinstance(node, ast.Attribute):
        places = (*call.args, *(each.value for each in call.keywords))
        sent = sent or node.attr == "cuda" or (node.attr == "to" and any("device" in dotted(each) for each in places))
        node = node.value
        if isinstance(node, ast.Call):
            call, node = node, node.func
    return sent and name_of(node) == name
