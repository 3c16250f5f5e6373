"""Hot or cold by the test of an `if`: what stands in its arms, or behind it where it ends what it stands in."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from syncscope.heat.counters import counts
from syncscope.model.heat import Heat, Reason
from syncscope.project import cold_names, conventions, devices
from syncscope.project.syntax import dotted, name_of, statements, walk

_DELAY = re.compile(
    r"(^|_)(policy|actor)(_update)?_(delay|freq(uency)?|interval)$|(^|_)update_(policy|actor)_freq(uency)?$"
)
"""Of an actor that is trained less often than its critics: two or three steps, wherever people say how many."""
_PACE = re.compile(
    r"accum|^(?!.*(target|log|eval|print|save|test)).*(update|train|learn)\w*_(every|freq(uency)?|interval)"
)
"""Of what is played between two updates: such a test guards an update, which is the step."""
_OFTEN = 10  # steps: what waits once in so many is told, in a line


def of_test(
    node: ast.expr,
    number: Callable[[ast.expr], int | None] = lambda _: None,
    counted: Callable[[ast.expr], bool] = counts,
) -> Heat | None:
    """Cold inside `if step % n == 0` and the like; `number` says what is known of an n, `counted` what counts."""
    if _evaluates(node):
        return Reason.WHEN(ast.unparse(node))
    for part in _asked_for(node):
        said = _of_part(part, node, number, counted)
        if said is not None:
            return said
    return None


def _of_part(
    part: ast.expr, node: ast.expr, number: Callable[[ast.expr], int | None], counted: Callable[[ast.expr], bool]
) -> Heat | None:
    """What one part of a test says of what all of it guards."""
    inner = part.operand if isinstance(part, ast.UnaryOp) else part
    inner = inner.left if isinstance(inner, ast.Compare) else inner
    if _is_in_list(part) and counted(inner):
        return Reason.LISTED(ast.unparse(node))
    if _is_last(part):
        return Reason.ENDS_EPOCH(ast.unparse(node))
    divided = _remainder(inner) or _divisible(part)
    if divided is not None:
        return _of_remainder(part, node, divided[1], number) if counted(divided[0]) else None
    if _is_for_host(part):
        return Reason.WHEN(ast.unparse(part))
    if _moved(part):
        return Reason.WHEN_MOVED(ast.unparse(part))
    name = name_of(inner)
    if inner is part and devices.on_cpu(name):
        return Reason.WHEN(name)
    if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not) and name == "training":
        return Reason.NOT_TRAINED(ast.unparse(inner))
    return Reason.WHEN(ast.unparse(node)) if _asks_seldom(part) else None


def _of_remainder(
    part: ast.expr, node: ast.expr, divisor: ast.expr, number: Callable[[ast.expr], int | None]
) -> Heat | None:
    """What `step % n == 0` says: how seldom it holds, where n is known."""
    steps = number(divisor)
    if steps is not None:
        if steps <= 1 or not _is_for_one(part):
            return None
        return (Reason.SOMETIMES if steps <= _OFTEN else Reason.SELDOM)(ast.unparse(node), str(steps))
    delayed = _DELAY.search(name_of(divisor)) is not None
    if _is_for_most(part) or (not delayed and _PACE.search(ast.unparse(divisor))):
        return None
    return (Reason.DELAYED if delayed else Reason.WHEN)(ast.unparse(node))


def _evaluates(node: ast.expr) -> bool:
    """Whether a test is true where nothing is trained: `mode == "dev" or mode == "test"`, `split in ("val", "test")`."""
    match node:
        case ast.BoolOp(op=ast.Or(), values=values):
            return all(map(_evaluates, values))
        case ast.BoolOp(values=values):
            return any(map(_evaluates, values))
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=text)]):
            return conventions.asks_for(name_of(left), text, False)
        case ast.Compare(left=left, ops=[ast.In()], comparators=[ast.Tuple(elts=texts) | ast.List(elts=texts)]) if (
            texts
        ):
            return all(conventions.asks_for(name_of(left), getattr(each, "value", None), False) for each in texts)
    return False


def _is_in_list(test: ast.expr) -> bool:
    """Whether a test is true for those that a list names: `iteration in testing_iterations`, of a counter few of its values."""
    match test:
        case ast.Compare(
            ops=[ast.In()], comparators=[ast.Name() | ast.Attribute() | ast.List() | ast.Tuple() | ast.Set()]
        ):
            return True
    return False


def _is_last(test: ast.expr) -> bool:
    """Whether a test is true for the last of what a loop goes over: `i == len(loader) - 1`."""
    match test:
        case ast.Compare(
            ops=[ast.Eq()],
            comparators=[
                ast.BinOp(
                    left=ast.Call(func=ast.Name(id="len"), args=[over]), op=ast.Sub(), right=ast.Constant(value=1)
                )
            ],
        ):
            return conventions.OVER_BATCHES.search(name_of(over)) is not None
    return False


def _is_for_host(test: ast.expr) -> bool:
    """Whether a test is true where there is no device, or none is to be used: `mode == "cpu"`, `x.device.type == "cpu"`."""
    match test:
        case ast.Compare(ops=[ast.Eq()], comparators=[ast.Constant(value="cpu")]):
            return True
    return False


def _asked_for(node: ast.expr) -> list[ast.expr]:
    """What a test asks, one by one, however deep it is combined: `first and (step % n == 0 or last)`."""
    return [each for part in node.values for each in _asked_for(part)] if isinstance(node, ast.BoolOp) else [node]


def _is_for_one(test: ast.expr) -> bool:
    """Whether a test of a remainder is true for one of its values: `step % n == 0`, `not step % n`, `divisible_by(step, n)`."""
    if isinstance(test, ast.Compare):
        return isinstance(test.ops[0], ast.Eq)
    return isinstance(test, ast.Call) or (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not))


def _is_for_most(test: ast.expr) -> bool:
    """Whether a test of a remainder is true for all of its values but few: `step % n`, `step % n != 0`, `step % n >= warm`."""
    return isinstance(test, ast.BinOp) or (
        isinstance(test, ast.Compare) and isinstance(test.ops[0], (ast.NotEq, ast.Gt, ast.GtE))
    )


def _remainder(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The parts of `step % n`, which is no text that is filled in."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod)):
        return None
    return None if isinstance(node.left, (ast.Constant, ast.JoinedStr)) else (node.left, node.right)


def _divisible(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The parts of `divisible_by(step, n)`."""
    match node:
        case ast.Call(func=func, args=[counter, n], keywords=[]) if name_of(func) in conventions.DIVISIBLE:
            return counter, n
    return None


def _asks_seldom(test: ast.expr) -> bool:
    """Whether what is asked for is called like what seldom is: `debug`, `should_log(step)`, `debug_mask is not None`."""
    if isinstance(test, ast.Name) and test.id == "__debug__":  # which it is, unless Python is told otherwise
        return False
    if isinstance(test, ast.Compare):
        other, op = test.comparators[0], test.ops[0]
        none = isinstance(other, ast.Constant) and other.value is None
        asked = isinstance(op, ast.IsNot) if none else isinstance(op, (ast.Gt, ast.GtE))
        return asked and conventions.seldom(name_of(test.left))
    if isinstance(test, ast.Call) and name_of(test.func) == "isEnabledFor":  # of a logger
        return [name_of(given) for given in test.args] == ["DEBUG"]
    return conventions.seldom(name_of(test.func if isinstance(test, ast.Call) else test))


def of_rest(test: ast.expr, counted: Callable[[ast.expr], bool] = counts) -> Heat | None:
    """Cold behind `if step % n: return`, `if not should_log: return` and the like."""
    for part in test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) else [test]:
        said = _behind(part, counted)
        if said is not None:
            return said
    return None


def _behind(part: ast.expr, counted: Callable[[ast.expr], bool]) -> Heat | None:
    """What a test says of what runs where it did not hold."""
    denied = part.operand if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not) else None
    if isinstance(part, (ast.Name, ast.Attribute)) and conventions.MADE.search(name_of(part)):
        return Reason.FIRST(f"not {ast.unparse(part)}")
    divided = _divisible(denied) if denied is not None else _with_remainder(part)
    if divided is not None and not _PACE.search(ast.unparse(part)) and counted(divided[0]):
        return Reason.WHEN_NOT(ast.unparse(part))
    if denied is not None and _asks_seldom(denied):
        return Reason.WHEN(ast.unparse(denied))
    match part:
        case ast.Attribute(attr="training"):
            return Reason.NOT_TRAINED(ast.unparse(part))
        case ast.Compare(left=left, ops=[ast.Is(), *_], comparators=[ast.Constant(value=None), *_]) if _asks_seldom(
            left
        ):
            return Reason.WHEN_GIVEN(ast.unparse(left))
    return None


def _with_remainder(test: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The parts of `step % n`, where a test asks whether that is not 0."""
    match test:
        case ast.Compare(left=left, ops=[ast.NotEq() | ast.Gt(), *_], comparators=[ast.Constant(value=0), *_]):
            return _remainder(left)
        case ast.Compare(comparators=[ast.Constant(), *_]):
            return None
    return _remainder(test)


def chosen_to_evaluate(call: ast.AST, arm: list[ast.stmt], *others: list[ast.stmt]) -> bool:
    """Whether an arm gives back this call, of what evaluates, and another one of what trains: `forward_train(x)`, `loss(x)`."""
    name = name_of(call)
    if not cold_names.EVALUATION.search(name) or _trains(name):
        return False
    if not any(each is call for given in _given_back(arm) for each in walk(given)):
        return False
    given = (each for other in others for back in _given_back(other) for each in walk(back))
    return any(isinstance(each, ast.Call) and _trains(name_of(each.func)) for each in given)


def _given_back(arm: list[ast.stmt]) -> list[ast.Return]:
    return [each for statement in arm for each in statements(statement) if isinstance(each, ast.Return)]


def _trains(name: str) -> bool:
    return conventions.is_loss(name) or "train" in name.split("_")


def of_nothing(node: ast.If) -> Heat | None:
    """Cold where a value is not finite, `if not x.isfinite(): ...`, and where nothing is left, `if total == 0: return ...`,
    `if not mask.any(): return ...`.
    """
    test, returns = node.test, isinstance(node.body[-1], ast.Return)
    match test:
        case ast.BoolOp(op=ast.Or(), values=values) if returns and _ask_for_nothing(values):
            return Reason.WHEN_NOTHING(ast.unparse(test))
        case ast.UnaryOp(op=ast.Not(), operand=ast.Call(func=func)) if returns and name_of(func) == "any":
            return Reason.WHEN_NOTHING(ast.unparse(test))
    if _asks_for_infinity(test):
        return Reason.WHEN(ast.unparse(test))
    match test:
        case ast.Compare(left=left, ops=[ast.Eq(), *_], comparators=[ast.Constant(value=0), *_]) if returns:
            if conventions.AMOUNT.search(name_of(left.func if isinstance(left, ast.Call) else left)):
                return Reason.WHEN_NOTHING(ast.unparse(test))
            if isinstance(left, ast.Attribute) and conventions.WEIGHT.search(left.attr):
                return Reason.WHEN(ast.unparse(test))
    return None


def _ask_for_nothing(tests: list[ast.expr]) -> bool:
    """Whether tests are true where there is nothing: `x is None or x.numel() == 0`, one at least of these."""
    counted = 0
    for each in tests:
        match each:
            case ast.Compare(ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
                continue
            case ast.Compare(
                left=ast.Subscript(value=ast.Attribute(attr="shape")), ops=[ast.Eq()], comparators=[number]
            ):
                name = "numel"
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[number]):
                name = name_of(left.func if isinstance(left, ast.Call) else left)
            case _:
                return False
        if not (isinstance(number, ast.Constant) and number.value == 0 and conventions.AMOUNT.search(name)):
            return False
        counted += 1
    return counted > 0


def _asks_for_infinity(test: ast.expr) -> bool:
    """Whether a test is true where a value is not finite: `not x.isfinite().all()`, `isnan(x).any()`."""
    denied = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    asked = test.operand if isinstance(test, ast.UnaryOp) else test
    while isinstance(asked, ast.Call) and isinstance(asked.func, ast.Attribute) and asked.func.attr in _OF_ALL:
        asked = asked.func.value
    name = name_of(asked.func) if isinstance(asked, ast.Call) else ""
    return name == "isfinite" if denied else name in ("isnan", "isinf")


_OF_ALL = ("any", "all", "item")


def of_clock(node: ast.If) -> Heat | None:
    """Cold where the time tells when: `if now - last > 60: ...; last = now`, of what an arm notes anew."""
    for part in _asked_for(node.test):
        if isinstance(part, ast.Compare) and isinstance(part.ops[0], (ast.Gt, ast.GtE)):
            asked = {dotted(each) for each in walk(part) if isinstance(each, (ast.Name, ast.Attribute))}
            noted = (each for each in node.body if isinstance(each, ast.Assign))
            if any(dotted(target) in asked and _is_time(each.value) for each in noted for target in each.targets):
                return Reason.WHEN(ast.unparse(node.test))
    return None


def _is_time(node: ast.expr) -> bool:
    """Whether a value is what a clock shows: `time.time()`, `now`, `current_time`."""
    return conventions.CLOCK.search(name_of(node.func if isinstance(node, ast.Call) else node)) is not None


def of_notice(body: list[ast.stmt]) -> Heat | None:
    """Cold where an arm of a test of values does nothing but say so; `self.log("loss", loss)` notes a value by its name."""
    calls = [each.value for each in body if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call)]
    says = (name_of(each.func) in conventions.NOTICES for each in calls)
    noted = any(dotted(each.func) == "self.log" and len(each.args) > 1 for each in calls)
    return Reason.ODD() if len(calls) == len(body) and all(says) and not noted else None


def of_warning(body: list[ast.stmt]) -> Heat | None:
    """Cold where an arm does nothing but to put a warning together, and to give it."""
    calls = [each.value for each in body if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call)]
    if any(name_of(call.func) in conventions.WARNINGS for call in calls) and all(map(_only_tells, body)):
        return Reason.WARNS()
    return None


def _only_tells(statement: ast.stmt) -> bool:
    """Whether a statement puts a text together, says it, or notes that it was said."""
    match statement:
        case ast.Expr(value=ast.Call(func=func)):
            return name_of(func) in conventions.NOTICES or name_of(func) == "setattr"
        case ast.Assign(value=value) | ast.AugAssign(value=value):
            return _is_text(value)
        case ast.If(body=body, orelse=orelse):
            return all(map(_only_tells, (*body, *orelse)))
    return False


def _is_text(node: ast.expr) -> bool:
    match node:
        case ast.IfExp(body=first, orelse=second) | ast.BinOp(left=first, right=second, op=ast.Add()):
            return _is_text(first) and _is_text(second)
        case ast.BinOp(left=first, op=ast.Mod()) | ast.Call(func=ast.Attribute(value=first, attr="format" | "join")):
            return _is_text(first)
    return isinstance(node, (ast.Constant, ast.JoinedStr))


def _moved(test: ast.expr) -> bool:
    """Whether a test asks whether two values live in different places."""
    if not (isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.NotEq)):
        return False
    sides = (test.left, test.comparators[0])
    return all(name_of(side).endswith("device") for side in sides) and any(isinstance(s, ast.Attribute) for s in sides)


def of_unmet(test: ast.expr) -> Heat | None:
    """Cold where a test does not hold: not `self.training`, not `mode == "train"`, and where surely no GPU is."""
    denied = not isinstance(test, ast.BoolOp) or isinstance(test.op, ast.Or)  # all of it
    for part in test.values if isinstance(test, ast.BoolOp) else [test]:
        match part:
            case ast.Attribute(attr="training"):
                return Reason.NOT_TRAINED(ast.unparse(part))
            case ast.Call(func=asked) if denied and dotted(asked) == "torch.cuda.is_available":
                return Reason.WHEN_NOT(ast.unparse(part))
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=text)]):
                if conventions.asks_for(name_of(left), text, True) or (denied and text == "cuda"):
                    return Reason.WHEN_NOT(ast.unparse(part))
    return None


def of_arm(body: list[ast.stmt]) -> Heat | None:
    """Cold where an arm of an `if` ends by raising: it runs once, for the message."""
    return Reason.BEFORE_ERROR() if isinstance(body[-1], ast.Raise) else None


def of_probe(body: list[ast.stmt]) -> Heat | None:
    """Cold in a `try` that only sees whether something can be done, and throws away what that gives: `_ = net(x)`."""
    given = (target for each in body if isinstance(each, ast.Assign) for target in each.targets)
    return Reason.PROBED() if any(isinstance(each, ast.Name) and each.id == "_" for each in given) else None


_UNLIKE = frozenset(("AttributeError", "ValueError", "TypeError"))


def of_handler(node: ast.Try, handler: ast.ExceptHandler) -> Heat | None:
    """Cold after an error, but where that tells of what has another form: `x, y, weight = batch`, where there are two only."""
    types = [*handler.type.elts] if isinstance(handler.type, ast.Tuple) else [handler.type] if handler.type else []
    names = {name_of(each) for each in types}
    if names == {"NotImplementedError"}:  # the way of objects that have no other
        return None
    if not names or not names <= _UNLIKE or isinstance(handler.body[-1], ast.Raise):
        return Reason.AFTER_ERROR()
    return None if _taken_apart(node.body) & _taken_apart(handler.body) else Reason.AFTER_ERROR()


def _taken_apart(body: list[ast.stmt]) -> set[str]:
    """The names under which a block has the parts of something: `(users, items), others = batch`."""
    taken = (each for part in body for each in statements(part) if isinstance(each, ast.Assign))
    return {
        name_of(name)
        for each in taken
        if isinstance(each.targets[0], ast.Tuple) and isinstance(each.value, (ast.Name, ast.Attribute))
        for name in walk(each.targets[0])
    } - {""}
