"""What is made the first time alone, because it is not there, and kept: by the test of an `if`, and what its arm does."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from syncscope.heat.counters import counts
from syncscope.model.heat import Heat, Reason
from syncscope.project import conventions
from syncscope.project.syntax import assigned, dotted, name_of


def of_first(
    node: ast.If, forgotten: Callable[[str], bool] = lambda _: False, fleeting: Callable[[str], bool] = lambda _: True
) -> Heat | None:
    """Cold where something is made because it is not there, and kept: `if self.mask is None: self.mask = ...`.

    `forgotten` says of what is kept whether each step takes it away again, `fleeting` of a name whether each binds it anew.
    """
    if _or_keeps_nothing(node.test):
        return None
    for part in node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]:
        if _is_first(part, node.body) or (
            isinstance(part, ast.Compare) and _misses(part, node.body, forgotten, fleeting)
        ):
            return Reason.FIRST(ast.unparse(part))
    return None


def of_missing(
    node: ast.If, scope: ast.AST, forgotten: Callable[[str], bool], fleeting: Callable[[str], bool]
) -> Heat | None:
    """Cold in the other arm of a test that finds it kept: `if "norm" in state: ... else: state["norm"] = x.norm()`.

    What a name of the `scope` is given before, `kept = state.get("norm")`, is asked for where that is.
    """
    match node.test:
        case ast.Compare(left=left, ops=[ast.IsNot()], comparators=[_]):
            denied: ast.cmpop = ast.Is()
        case ast.Compare(left=left, ops=[ast.In()], comparators=[_]):
            denied = ast.NotIn()
        case _:
            return None
    given = assigned(scope).get(left.id, []) if isinstance(left, ast.Name) else []
    before = [each for each in given if each.lineno < node.lineno]
    asked = before[0] if len(before) == 1 and isinstance(denied, ast.Is) else left
    test = ast.Compare(asked, [denied], node.test.comparators)
    return of_first(ast.If(test, node.orelse, []), forgotten, fleeting)


def _is_first(test: ast.expr, body: list[ast.stmt]) -> bool:
    """Whether a test holds the first time alone, as it is called, or as what it guards sees to that."""
    if any(_switches(each, test) for each in _straight(body)):
        return True
    if isinstance(test, ast.Name) and conventions.FIRST.match(test.id):
        return True
    if not isinstance(test, ast.Compare):
        return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and _lacks(test.operand, body)
    left, right, op = test.left, test.comparators[0], test.ops[0]
    match op:
        case ast.Lt():
            return isinstance(left, ast.Name) and _sets_both(body, left.id)
        case ast.NotEq():
            return any(_follows(each, left, right) for each in _straight(body))
        case ast.Eq():
            return isinstance(right, ast.Constant) and (_is_step_of_optimizer(left) or _is_own_counter(left))
    return False


def _lacks(asked: ast.expr, body: list[ast.stmt]) -> bool:
    """Whether what is denied is that something was made: `not self.initialized`, `not state`, `not hasattr(self, "grid")`."""
    name, attribute = name_of(asked), _asked_for_attribute(asked)
    if conventions.MADE.search(name) or name.endswith("state"):
        return True
    return bool(attribute) and any(_keeps(each, attribute) for each in _straight(body))


def _misses(
    test: ast.Compare, body: list[ast.stmt], forgotten: Callable[[str], bool], fleeting: Callable[[str], bool]
) -> bool:
    """Whether a comparison finds that something is not there, which the arm makes and keeps: `self.mask is None`."""
    left, right, op = test.left, test.comparators[0], test.ops[0]
    memo = _asked_for_key(left, op, right)
    kept = _path(memo[1]) if memo is not None else _asked_for_itself(left, op, right)
    if (memo is not None or not isinstance(op, ast.Is)) and conventions.OF_OPTIMIZER.search(kept):
        return True
    if memo is not None and counts(memo[0]):
        return False
    if not (kept and any(_keeps(each, kept, memo is not None) for each in _straight(body))):
        return False  # before anybody looks through the file for who takes it away again
    if memo is not None and "." not in kept:  # no part of an object
        return "cache" in kept.lower() or not fleeting(kept)
    return not forgotten(kept)


def _asked_for_itself(left: ast.expr, op: ast.cmpop, right: ast.expr) -> str:
    """What is missed as a whole, or is empty: `kept is None`, `len(kept) == n`; else ""."""
    match left, op, right:
        case _, ast.Is(), ast.Constant(value=None):
            return dotted(left)
        case ast.Call(func=func, args=[kept, *_]), ast.Eq(), _ if name_of(func) == "len":
            return dotted(kept)
    return ""


def _or_keeps_nothing(test: ast.expr) -> bool:
    """Whether it is made as well where a flag says that nothing is kept: `if not self.cached or self.kept is None`."""
    return isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) and any(map(_denies_cache, test.values))


def _denies_cache(part: ast.expr) -> bool:
    return isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not) and "cache" in name_of(part.operand)


def _asked_for_key(left: ast.expr, op: ast.cmpop, right: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The key that is missed, and in what: `key not in kept`, `kept.get(key) is None`."""
    match left, op, right:
        case _, ast.NotIn(), _:
            return left, right
        case ast.Call(func=ast.Attribute(value=kept, attr="get"), args=[key, *other]), ast.Is(), ast.Constant(
            value=None
        ):
            return (key, kept) if all(isinstance(n, ast.Constant) and n.value is None for n in other) else None
    return None


def _follows(statement: ast.stmt, left: ast.expr, right: ast.expr) -> bool:
    """Whether a statement keeps what a test found to be another than was kept, unless that is another in every step:
    `if getattr(self, "size", None) != size: self.size = size`.
    """
    if not isinstance(statement, ast.Assign):
        return False
    targets = {ast.unparse(each) for each in statement.targets if not isinstance(each, ast.Name)}
    sides = ((left, right), (right, left))
    return any(
        _place(kept) in targets and ast.dump(statement.value) == ast.dump(now) and not counts(now)
        for kept, now in sides
    )


def _place(node: ast.expr) -> str:
    """What is asked for, as it is written where it is set: `self.size` of `getattr(self, "size", None)`, `kept["size"]`."""
    match node:
        case ast.Call(func=ast.Name(id="getattr"), args=[holder, ast.Constant(value=str(name)), *_]):
            return f"{ast.unparse(holder)}.{name}"
        case ast.Call(func=ast.Attribute(value=holder, attr="get"), args=[key, *_]):
            return f"{ast.unparse(holder)}[{ast.unparse(key)}]"
    return ast.unparse(node)


def _is_step_of_optimizer(node: ast.expr) -> bool:
    """Whether something is how many steps an optimizer has made: `state["step"]`, `group["step"]`."""
    match node:
        case ast.Subscript(value=holder, slice=ast.Constant(value="step")):
            return bool(conventions.OF_OPTIMIZER.search(_path(holder)))
    return False


def _is_own_counter(node: ast.expr) -> bool:
    """Whether something is how many steps an object has seen: `self.training_step`, `self.num_calls`."""
    return dotted(node).startswith("self.") and conventions.OWN_COUNTER.match(name_of(node)) is not None


def _asked_for_attribute(node: ast.expr | None) -> str:
    """The attribute that `hasattr(self, "grid")` asks for, dotted; "" for anything else."""
    match node:
        case ast.Call(func=ast.Name(id="hasattr"), args=[holder, ast.Constant(value=str(name))]) if dotted(holder):
            return f"{dotted(holder)}.{name}"
    return ""


def _straight(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block, and of the arms in it."""
    for each in body:
        yield each
        if isinstance(each, ast.If):
            yield from _straight([*each.body, *each.orelse])


def _sets_both(body: list[ast.stmt], name: str) -> bool:
    """Whether a block sets a number that was asked for, and keeps it: `if norm < 0: self.norm = x.mean(); norm = self.norm`."""
    targets = [target for each in body if isinstance(each, ast.Assign) for target in each.targets]
    kept = (dotted(target.value if isinstance(target, ast.Subscript) else target) for target in targets)
    return name in map(name_of, targets) and any(each.startswith("self.") for each in kept)


_OF_FLAGS = frozenset("tensor as_tensor Tensor BoolTensor".split())


def _switches(statement: ast.stmt, test: ast.expr) -> bool:
    """Whether a statement makes sure that a test says no from then on: `self.to_check = False`, or `self.checked = True`."""
    denied = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    asked = test.operand if isinstance(test, ast.UnaryOp) else test
    match statement:
        case ast.Assign(targets=[ast.Attribute() as target], value=value):
            pass
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr="fill_" | "copy_"), args=[value])):
            pass
        case _:
            return False
    if isinstance(target, ast.Attribute) and target.attr == "data":
        target = target.value
    return _flag(value) is denied and isinstance(asked, ast.Attribute) and dotted(target) == dotted(asked) != ""


def _flag(node: ast.expr) -> bool | None:
    """The flag that is written here, in a tensor or not: `True`, `torch.tensor([True])`; None where it is none."""
    while isinstance(node, ast.Call) and name_of(node.func) in _OF_FLAGS and node.args:
        node = node.args[0]
        if isinstance(node, ast.List) and len(node.elts) == 1:
            node = node.elts[0]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, bool) else None


def _path(node: ast.expr) -> str:
    """What holds something, in words: `self.seen`, and `self.seen[kind]`, too."""
    return ast.unparse(node) if isinstance(node, ast.Subscript) and dotted(node.value) else dotted(node)


def _keeps(statement: ast.stmt, name: str, memo: bool = False) -> bool:
    """Whether a statement keeps something: in the attribute of this name, as its item (of any name where it is a `memo`), or
    what has this name as an item.
    """
    match statement:
        case ast.Expr(
            value=ast.Call(
                func=ast.Attribute(value=holder, attr="register_buffer"), args=[ast.Constant(value=str(named)), *_]
            )
        ):
            return f"{dotted(holder)}.{named}" == name
    if not isinstance(statement, ast.Assign):
        return False
    items = [_path(target.value) for target in statement.targets if isinstance(target, ast.Subscript)]
    targets = [*map(dotted, statement.targets)]
    kept = ("." in name and name in (*items, *targets)) or (memo and name in items)
    return kept or (bool(items) and name in (*targets, dotted(statement.value)))
