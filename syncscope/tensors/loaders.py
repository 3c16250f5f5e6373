"""Loaders, by what people call them: also behind what shows how far they are, logs, or gives their batches one by one."""

from __future__ import annotations

import ast

from syncscope.heat import loops
from syncscope.project import conventions
from syncscope.project.names import ancestry
from syncscope.project.syntax import assigned, dotted, name_of, walk
from syncscope.tensors.frame import Frame

_FARTHEST = 3  # names that are looked up for what they were given
_PARTS = frozenset("items keys values parameters named_parameters modules named_modules children".split())
_OTHERS = frozenset("len range trange sum min max zip map filter sorted".split())  # give no batches of what they take


def loader_of(frame: Frame, node: ast.expr) -> str:
    """What the loader is called that is gone through: of `enumerate(tqdm(loader))`, of `log.every(10, loader)`, and of the name
    of one of these; the innermost name where nothing is called like one.
    """
    return _behind(frame, node, 0) or _innermost(node)


def trained_on(frame: Frame, node: ast.For | ast.AsyncFor) -> bool:
    """Whether a loop trains on what it goes over, and sends it to a device: `for x, y in generator: net(x.cuda())`."""
    name, source = frame.function.name if frame.function is not None else "", frame.module.source
    if not loops.trains(node, name, source) or loops.of_loop(node, name, source) != loops.TRAINING:
        return False
    over = node.iter
    while isinstance(over, ast.Call) and name_of(over.func) not in _PARTS and over.args:
        over = over.args[0]
    if isinstance(over, ast.Call) and name_of(over.func) in _PARTS:
        return False
    taken = {each.id for each in walk(node.target) if isinstance(each, ast.Name)}
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Attribute)
        and each.func.attr in ("cuda", "to")
        and _root(each.func.value) in taken - conventions.MODELS
        for part in node.body
        for each in walk(part)
    )


def _root(node: ast.expr) -> str:
    """The name that a value is a part of: `batch` of `batch["x"]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return name_of(node)


def _behind(frame: Frame, node: ast.expr, depth: int) -> str:
    name = name_of(node.value if isinstance(node, ast.Subscript) else node)  # `self.loaders["train"]`
    if conventions.is_loader(name):
        return name
    if isinstance(node, ast.Call) and name_of(node.func) not in _OTHERS:
        return next((found for each in node.args if (found := _behind(frame, each, depth))), "")
    if name and depth < _FARTHEST:
        made = (each for each in _given(frame, node) if isinstance(each, ast.Call))
        return next((found for each in made if (found := _behind(frame, each, depth + 1))), "")
    return ""


def _innermost(node: ast.expr) -> str:
    while isinstance(node, ast.Call) and node.args:
        node = node.args[0]
    return name_of(node)


def _given(frame: Frame, node: ast.expr) -> list[ast.expr]:
    """What its function gives a name, what was last given where it is asked first, or a class one of its attributes."""
    path = dotted(node)
    if path.startswith("self."):
        kin = ancestry(frame.cls) if frame.cls is not None else ()
        return next((found for each in kin if (found := assigned(each.node).get(path))), [])
    scope = frame.function.node if frame.function is not None else frame.module.tree
    given = assigned(scope).get(path, [])
    return sorted(given, key=lambda each: (each.lineno > node.lineno, -each.lineno))
