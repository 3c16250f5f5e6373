"""What a test asks, with what its names stand for, and what that says of how often what it guards runs."""

from __future__ import annotations

import ast
from functools import partial

from syncscope.heat import arms
from syncscope.heat.counters import counts
from syncscope.model.fact import Device, Fact, Value
from syncscope.model.heat import Heat, Reason, Role
from syncscope.project import beside_training, conventions
from syncscope.project.modules import Class, Module
from syncscope.project.names import ancestry, lookup
from syncscope.project.of_file import kept
from syncscope.project.syntax import assigned, default_of, walk
from syncscope.tensors.frame import Around, Frame, Later, heat_of


class Asked:
    """A test whose outcome has a name, `known = isinstance(x, Tensor)`, and what its names held then."""

    __slots__ = ("held", "test")

    def __init__(self, test: ast.expr, env: dict[str, Fact]) -> None:
        self.test = test
        self.held = {each.id: env.get(each.id) for each in walk(test) if isinstance(each, ast.Name)}

    def holds(self, env: dict[str, Fact]) -> bool:
        """Whether they still do: else nothing is told of what they hold now."""
        return all(env.get(name) is fact for name, fact in self.held.items())


def of_test(frame: Frame, test: ast.expr) -> Heat | None:
    """What a test says of what runs where it holds."""
    said = arms.of_test(test, partial(_number, frame), partial(_counts, frame))
    if said is not None and said.reason is Reason.WHEN_MOVED and _is_made_each_time(frame, test):
        return None
    if said is not None and said.reason is Reason.WHEN and _is_on(frame, test):
        return None
    if said is None and _is_switched_off(frame, test):
        return Reason.OFF(ast.unparse(test))
    off = said is None and (_is_off(frame, test) or _is_used(frame, test))
    return Reason.WHEN(ast.unparse(test)) if off else said


def _is_switched_off(frame: Frame, test: ast.expr) -> bool:
    """Whether a test asks for a flag, also one that its object keeps, that is off and that nothing turns on in the training."""
    match test:
        case ast.BoolOp(op=ast.And(), values=parts):
            return any(_is_switched_off(frame, part) for part in parts)
        case ast.Name(id=name) if frame.function is not None:
            owner = frame.function.cls.name if frame.function.cls is not None else ""
            return _has_no_effect(frame.module, owner, frame.function.node, name)
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if frame.cls is not None:
            keeps = next((each for each in ancestry(frame.cls) if f"self.{name}" in assigned(each.node)), None)
            built = _constructor(keeps) if keeps is not None else None
            kept = assigned(keeps.node)[f"self.{name}"] if keeps is not None else []
            if keeps is None or built is None or len(kept) != 1 or not isinstance(kept[0], ast.Name):
                return False
            return _has_no_effect(keeps.module, keeps.name, built, kept[0].id)
    return False


def _has_no_effect(module: Module, owner: str, function: ast.FunctionDef | ast.AsyncFunctionDef, flag: str) -> bool:
    default = default_of(function, flag)
    if not (isinstance(default, ast.Constant) and default.value is False):
        return False
    return module.project.role(module.path, f"{function.name}({flag})", owner) is Role.OFF


def _constructor(cls: Class) -> ast.FunctionDef | None:
    found = next((each for each in cls.node.body if getattr(each, "name", "") == "__init__"), None)
    return found if isinstance(found, ast.FunctionDef) else None


def _is_used(frame: Frame, test: ast.expr) -> bool:
    """Whether a test of `forward` is true where a model is used, not trained: `target is None or return_preds`."""
    function = frame.function
    if function is None or function.cls is None or function.name != "forward" or conventions.is_loss(function.cls.name):
        return False
    match test:
        case ast.BoolOp(op=ast.Or(), values=values):
            return all(_is_used(frame, each) for each in values)
        case ast.Compare(left=ast.Name(id=name), ops=[ast.Is()], comparators=[ast.Constant(value=None)]):
            return name in beside_training.TARGETS and name in function.left_out
        case ast.Name(id=name):
            return beside_training.RETURNED.match(name) is not None
    return False


def of_else(frame: Frame, node: ast.If) -> Heat | None:
    """What a test says of the arm that runs where it does not hold."""
    return of_unmet(frame, node.test) or arms.of_arm(node.orelse)


def of_unmet(frame: Frame, test: ast.expr) -> Heat | None:
    """What a test says of what runs where it does not hold; a `forward` that got no targets trains nothing."""
    match test:
        case ast.Compare(left=asked, ops=[ast.IsNot()], comparators=[none]):
            denied = ast.Compare(asked, [ast.Is()], [none])
            if _is_used(frame, denied):
                return Reason.WHEN(ast.unparse(denied))
        case ast.UnaryOp(op=ast.Not(), operand=flag) if _is_switched_off(frame, flag):
            return Reason.OFF(ast.unparse(flag))
    return arms.of_unmet(test)


def of_rest(frame: Frame, test: ast.expr) -> Heat | None:
    """What a test says of what stands behind what it ends."""
    return arms.of_rest(test, partial(_counts, frame))


def _counts(frame: Frame, node: ast.expr) -> bool:
    """Whether an expression counts steps."""
    scope = frame.function.node if frame.function is not None else frame.module.tree
    return counts(node, scope, frame.cls.node if frame.cls is not None else None, frame.module.source)


def _is_made_each_time(frame: Frame, test: ast.expr) -> bool:
    """Whether a test of two devices asks for what this function makes on the host, which is moved whenever it runs."""
    for each in walk(test):
        if isinstance(each, ast.Attribute) and each.attr == "device" and isinstance(each.value, ast.Name):
            name = each.value.id
            fact = frame.env.get(name)
            given = frame.function is None or name in frame.function.names
            if fact is not None and fact.kind is Value.TENSOR and fact.device is Device.HOST and not given:
                return True
    return False


def behind(frame: Frame, operand: ast.expr, op: ast.boolop) -> Around:
    """What an operand of `and` or `or` says of those behind it, as the test of an `if` around them would."""
    before, asked = frame.around, named(frame, operand)
    if isinstance(op, ast.Or):
        return Later(lambda: of_rest(frame, asked) or heat_of(before))
    return Later(lambda: of_test(frame, asked) or heat_of(before))


def named(frame: Frame, test: ast.expr) -> ast.expr:
    """What a test asks, also where it was asked before and has a name: `every = step % 50 == 0`."""
    if not isinstance(test, ast.Name):
        return test
    fact = frame.env.get(test.id)
    asked = fact.ref.test if fact is not None and isinstance(fact.ref, Asked) else test
    return asked if isinstance(asked, (ast.Compare, ast.BoolOp)) else test


def _is_off(frame: Frame, test: ast.expr) -> bool:
    """Whether a flag is off unless somebody turns it on to look: `STATS = False`, or `with_stats=False` as a default."""
    cls, function = frame.cls, frame.function
    match test:
        case ast.BoolOp(op=ast.And(), values=parts):
            return any(_is_off(frame, part) for part in parts)
        case ast.Name(id=name):
            given = default_of(function.node, name) if function is not None else None
            return _says_off(frame.module, given, name) if given is not None else _number(frame, test) is False
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if cls is not None:
            kept = _kept(cls, name)
            return kept is not None and _says_off(*kept, name)
    return False


def _is_on(frame: Frame, test: ast.expr) -> bool:
    """Whether a test asks no more than whether to tell how it goes, which is done unless somebody says otherwise:
    `if self.verbose: bar.set_postfix(loss=loss.item())`, of `verbose=True`.
    """
    given = None
    match test:
        case ast.Name(id=name) if conventions.TALKS.search(name) and frame.function is not None:
            given = default_of(frame.function.node, name)
        case ast.Attribute(value=ast.Name(id="self"), attr=name) if conventions.TALKS.search(name) and frame.cls:
            kept = _kept(frame.cls, name)
            given = kept[1] if kept is not None else None
    return isinstance(given, ast.Constant) and given.value == 1  # or True, which is the same


def _kept(cls: Class, name: str) -> tuple[Module, ast.expr] | None:
    """What a class, or one it is derived from, keeps by a name, set once, where nobody says otherwise to its `__init__`."""
    keeps = next((each for each in ancestry(cls) if f"self.{name}" in assigned(each.node)), None)
    built = _constructor(keeps) if keeps is not None else None
    kept = assigned(keeps.node)[f"self.{name}"] if keeps is not None else []
    if keeps is None or built is None or len(kept) != 1:
        return None
    given = _unless_given(kept[0])
    default = default_of(built, given.id) if isinstance(given, ast.Name) else None
    return keeps.module, default or given


def _unless_given(node: ast.expr) -> ast.expr:
    """`A` of `A if flag is None else flag`, or of `flag if flag is not None else A`; else what stands there."""
    match node:
        case ast.IfExp(
            test=ast.Compare(left=asked, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)])
        ):
            default, given = (node.body, node.orelse) if isinstance(op, ast.Is) else (node.orelse, node.body)
            return default if ast.dump(given) == ast.dump(asked) else node
    return node


def _says_off(module: Module, given: ast.expr, name: str) -> bool:
    """Whether this is a constant of a file that is False, or `False` for a flag by which people ask for more to look at."""
    match given:
        case ast.Constant(value=value):
            return value is False and conventions.looks_closer(name)
        case ast.Name(id=constant):
            return _number_at_top(module, constant) is False
        case ast.Attribute(value=ast.Name(id=of), attr=constant):
            other = lookup(module, of).ref
            return isinstance(other, Module) and _number_at_top(other, constant) is False
    return False


def _number_at_top(module: Module, name: str) -> int | None:
    """A whole number that a name of a file is given once."""
    given = _given(module.tree).get(name, ())
    value = given[0].value if len(given) == 1 and isinstance(given[0], ast.Assign) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, int) else None


def _number(frame: Frame, node: ast.expr) -> int | None:
    """A whole number that stands here, or that its name is given once, in the function or at the top level of the file."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, int) else None
    if not isinstance(node, ast.Name):
        return None
    function = frame.function.node if frame.function is not None else None
    for scope in (function, frame.module.tree):
        given = _given(scope).get(node.id) if scope is not None else None
        if given:
            value = given[0].value if len(given) == 1 and isinstance(given[0], ast.Assign) else None
            return _number(frame, value) if isinstance(value, ast.Constant) else None
    return None


@kept(8)
def _given(scope: ast.AST) -> dict[str, list[ast.AST]]:
    """What may give a name its value in a scope, by the name."""
    found: dict[str, list[ast.AST]] = {}
    for each in walk(scope):
        if isinstance(each, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For, ast.NamedExpr)):
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            for name in {part.id for target in targets for part in walk(target) if isinstance(part, ast.Name)}:
                found.setdefault(name, []).append(each)
        elif isinstance(each, ast.arg):
            found.setdefault(each.arg, []).append(each)
    return found
