"""Ways that a tensor chooses, as tensors: both computed, one kept."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from syncscope.model.fact import Dtype, Site
from syncscope.model.finding import Fix, Safety
from syncscope.rules._function import Function
from syncscope.rules._guards import is_elif
from syncscope.rules._loss_per_element import per_element
from syncscope.rules._masked_reduction import reduced, supposed
from syncscope.rules._proofs import is_mask, no_dimensions, one_value, same_shape

if TYPE_CHECKING:
    from syncscope.rules._draft import Draft

BOTH = (
    "both ways are computed on every pass and must be of one dtype, and NaN or inf in the gradient of the way not taken "
    "comes through"
)


def test_of(site: Site, function: Function) -> ast.expr | None:
    """The whole condition that a site is part of: what stands behind `if`, or before `if` in an expression."""
    node = site.node
    while isinstance(parent := function.parent(node), (ast.BoolOp, ast.UnaryOp)):
        if isinstance(parent, ast.UnaryOp) and not isinstance(parent.op, ast.Not):
            break
        node = parent
    if isinstance(node, (ast.If, ast.Assert, ast.IfExp, ast.While)):
        node = node.test
    return node if isinstance(node, ast.expr) else None


def predicate(test: ast.expr, function: Function, negated: bool = False) -> str | None:
    """The condition as a bool tensor: a template whose only holes are the user's own expressions, see `holes`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return predicate(test.operand, function, not negated)
    if isinstance(test, ast.BoolOp):
        if negated:
            inner = predicate(test, function)
            return None if inner is None else f"~({inner})"
        parts = [predicate(v, function) for v in test.values]
        if None in parts or not all(function.pure(v) for v in test.values):
            return None
        return (" & " if isinstance(test.op, ast.And) else " | ").join(
            p if p and p.endswith("}") else f"({p})" for p in parts
        )
    fact = function.fact(test)
    if not fact.is_tensor or fact.ndim not in (0, None) or function.mixed(test):
        return None
    hole = f"{{{key(test)}}}"
    if fact.dtype is Dtype.BOOL:
        return f"~{hole}" if negated else hole
    if fact.dtype is Dtype.UNKNOWN:
        return None
    return f"{hole} {'==' if negated else '!='} 0"


def key(node: ast.expr) -> str:
    """The name of a hole for this expression."""
    return f"at_{node.lineno}_{node.col_offset}_{node.end_lineno}_{node.end_col_offset}"


def holes(test: ast.expr) -> dict[str, ast.expr]:
    """What fills the holes of `predicate`."""
    return {key(n): n for n in ast.walk(test) if isinstance(n, ast.expr)}


def alike(function: Function, a: ast.expr, b: ast.expr) -> Safety | None:
    """How sure it is that two values are tensors that `where` may mix: of one shape, or one of them a number written out.

    SUGGEST where only their shapes are not proved; None where they cannot be mixed.
    """
    if waits(function, a) or waits(function, b):
        return None
    one, other = function.fact(a), function.fact(b)
    for number, tensor in ((a, other), (b, one)):
        if function.constant(number) is not None and tensor.is_tensor:
            return Safety.UNSAFE if tensor.dtype is Dtype.FLOAT else None
    if not one.is_tensor or not other.is_tensor or min(one.confidence, other.confidence) < 2:
        return None
    if one.dtype is not other.dtype and Dtype.UNKNOWN not in (one.dtype, other.dtype):
        return None
    proved = (no_dimensions(function, a) and no_dimensions(function, b)) or same_shape(function, a, b)
    mixed = function.mixed(a) or function.mixed(b)
    return Safety.UNSAFE if proved else None if mixed else Safety.SUGGEST


def mixing(draft: Draft, title: str, a: ast.expr, b: ast.expr) -> Fix:
    """What was drafted, as a fix that mixes two values with `where`."""
    safety = alike(draft.function, a, b)
    assert safety is not None
    text = draft.view.quote
    shape = f"{text(a)} and {text(b)} must have one shape; " if safety is Safety.SUGGEST else ""
    return draft.fix(title, safety, f"{shape}{BOTH}")


def waits(function: Function, way: ast.expr) -> bool:
    """Whether a way waits itself: it is not computed without need, and may raise where the condition keeps it from running."""
    inside = {id(n) for n in ast.walk(way)}
    return any(id(s.node) in inside for s in function.sites)


def chosen(site: Site, function: Function) -> Fix | None:
    """`if t: x = a` [`else: x = b`] as `x = torch.where(t, a, b)`."""
    test, statement = test_of(site, function), function.statement(site.node)
    if test is None or not isinstance(statement, ast.If) or statement.test is not test or is_elif(function, statement):
        return None
    if len(statement.body) != 1 or len(statement.orelse) > 1:
        return None
    yes = assigned(statement.body[0])
    no = assigned(statement.orelse[0]) if statement.orelse else None
    if yes is None or (statement.orelse and (no is None or no[0] != yes[0])):
        return added(site, function, statement, test)
    name, value = yes
    other = (
        no[1] if no is not None else next((n for n in ast.walk(value) if function.same_name(n, ast.Name(name))), None)
    )
    if not isinstance(other, ast.expr) or not function.pure(value) or not function.pure(other):
        return None
    condition = predicate(test, function)
    if condition is None or not alike(function, value, other):
        return None
    draft = function.draft()
    draft.replace(statement, f"{name} = torch.where({condition}, {{yes}}, {{no}})", yes=value, no=other, **holes(test))
    return mixing(draft, "let the device choose", value, other)


def unless_empty(site: Site, function: Function) -> Fix | None:
    """`x[m].max() if m.any() else 0`, or the same with `if`: the fix of the selection, which needs no question."""
    test = test_of(site, function)
    choice = function.parent(test) if test is not None else None
    if not isinstance(choice, (ast.If, ast.IfExp)) or choice.test is not test:
        return None
    inside = {id(n) for n in ast.walk(choice)}
    taken = [s for s in function.sites if s.op == "mask_read" and id(s.node) in inside]
    for one in taken:
        if not isinstance(one.node, ast.Subscript):
            continue
        found = (
            per_element(one, function)
            or reduced(one, function, one.node.value, one.node.slice)
            or supposed(one, function)
        )
        if found is not None and any(e.span == function.view.span(choice) for e in found.edits):
            return found
    return None


def added(site: Site, function: Function, statement: ast.If, test: ast.expr) -> Fix | None:
    """`if t: total += a` [`else: total += b`] as `total += torch.where(t, a, b)`; b is 0 where there is none."""
    yes, no = statement.body[0], statement.orelse[0] if statement.orelse else None
    if (
        not isinstance(yes, ast.AugAssign)
        or not isinstance(yes.op, (ast.Add, ast.Sub))
        or not isinstance(yes.target, ast.Name)
    ):
        return None
    if no is not None and (
        not isinstance(no, ast.AugAssign)
        or type(no.op) is not type(yes.op)
        or not function.same(no.target, yes.target)
        or not function.pure(no.value)
    ):
        return None
    if waits(function, yes.value):
        return None
    condition = predicate(test, function)
    other = no.value if isinstance(no, ast.AugAssign) else None
    fits = (
        alike(function, yes.value, other) is Safety.UNSAFE
        if other is not None
        else function.fact(yes.value).dtype is Dtype.FLOAT
    )
    if condition is None or not fits or not function.pure(yes.value):
        return None
    draft = function.draft()
    template = (
        f"{yes.target.id} {'+' if isinstance(yes.op, ast.Add) else '-'}= torch.where({condition}, {{yes}}, {{no}})"
    )
    draft.replace(statement, template, yes=yes.value, no=other if other is not None else "0.0", **holes(test))
    return draft.fix("let the device choose", Safety.UNSAFE, BOTH)


def unguarded(site: Site, function: Function) -> Fix | None:
    """`if m.any(): x[m] = number` without asking: where nothing is masked, nothing is written."""
    test, statement = test_of(site, function), function.statement(site.node)
    if test is None or not isinstance(statement, ast.If) or statement.test is not test or is_elif(function, statement):
        return None
    mask = asked_for_any(test, function)
    if mask is None or statement.orelse or len(statement.body) != 1 or not function.pure(mask):
        return None
    write = statement.body[0]
    target = write.targets[0] if isinstance(write, ast.Assign) and len(write.targets) == 1 else None
    if (
        not isinstance(write, ast.Assign)
        or not isinstance(target, ast.Subscript)
        or not function.same(target.slice, mask)
        or not is_mask(function.fact(mask))
        or not one_value(function, function.fact(write.value), write.value)
    ):
        return None
    draft = function.draft()
    draft.replace(statement, "{x}[{m}] = {v}", x=target.value, m=mask, v=write.value)
    return draft.fix(
        "write without asking",
        Safety.UNSAFE,
        "the write is also made where nothing is masked: it raises where the tensor is a leaf that requires grad",
    )


def asked_for_any(test: ast.expr, function: Function) -> ast.expr | None:
    """The mask m of `m.any()`, `m.sum() > 0`, `m.any() > 0`, `m.count_nonzero() != 0`."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Gt, ast.NotEq)):
        if function.constant(test.comparators[0]) != 0:
            return None
        test = test.left
    op = function.op(test)
    return op.base if op is not None and op.name in ("any", "sum", "count_nonzero") and not op.args else None


def assigned(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """Name and value of `x = a`."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id, statement.value
    return None


def chosen_at_return(site: Site, function: Function) -> Fix | None:
    """`if t: return a` before the `return b` of the same block: one return of `torch.where(t, a, b)`."""
    test, statement = test_of(site, function), function.statement(site.node)
    if test is None or not isinstance(statement, ast.If) or statement.test is not test or is_elif(function, statement):
        return None
    block = function.block(statement)
    last, rest = block[-1], block[block.index(statement) + 1 :]
    early = statement.body[0]
    if (
        len(statement.body) != 1
        or statement.orelse
        or not isinstance(early, ast.Return)
        or not isinstance(last, ast.Return)
    ):
        return None
    leaves = [
        n
        for s in rest
        for n in ast.walk(s)
        if isinstance(n, (ast.Return, ast.Raise, ast.Yield, ast.Break, ast.Continue))
    ]
    if leaves != [last] or early.value is None or last.value is None or not function.pure(early.value):
        return None
    if not all(calm(function, s) for s in rest):
        return None
    names = {n.id for n in ast.walk(early.value) if isinstance(n, ast.Name)}
    if any(function.disturbed(n, statement, last) for n in names) or not alike(function, early.value, last.value):
        return None
    condition = predicate(test, function)
    if condition is None:
        return None
    draft = function.draft()
    flag = function.fresh("early")
    if not draft.head_to_assignment(statement, flag, condition, **holes(test)):
        return None
    draft.replace(last.value, f"torch.where({flag}, {{yes}}, {{no}})", yes=early.value, no=last.value)
    return mixing(draft, "compute both, and let the device choose", early.value, last.value)


def calm(function: Function, statement: ast.stmt) -> bool:
    """Whether a statement only computes: names get values of torch's own functions and losses."""
    if isinstance(statement, ast.Assign):
        targets = [t for target in statement.targets for t in getattr(target, "elts", [target])]
        if not all(isinstance(t, ast.Name) for t in targets):
            return False
    elif not isinstance(statement, ast.Return):
        return False
    calls = [n for n in ast.walk(statement) if isinstance(n, ast.Call)]
    made = {id(c.func) for c in calls}  # nn.CrossEntropyLoss() in nn.CrossEntropyLoss()(x, y)
    for call in calls:
        name = function.dotted(call.func) or ""
        if id(call) in made or (name.startswith("torch.nn.") and name.endswith("Loss")):
            continue
        loss = isinstance(call.func, ast.Call) and (function.dotted(call.func.func) or "").endswith("Loss")
        if not loss and not function.pure_call(call):
            return False
    return not any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for n in ast.walk(statement))


def chosen_in_expression(site: Site, function: Function) -> Fix | None:
    """`a if t else b` as `torch.where(t, a, b)`."""
    test = test_of(site, function)
    choice = function.parent(test) if test is not None else None
    if test is None or not isinstance(choice, ast.IfExp) or choice.test is not test:
        return None
    if not function.pure(choice.body) or not function.pure(choice.orelse):
        return None
    condition = predicate(test, function)
    if condition is None or not alike(function, choice.body, choice.orelse):
        return None
    draft = function.draft()
    draft.replace(
        choice, f"torch.where({condition}, {{yes}}, {{no}})", yes=choice.body, no=choice.orelse, **holes(test)
    )
    return mixing(draft, "let the device choose", choice.body, choice.orelse)


def checked_later(site: Site, function: Function) -> Fix | None:
    """`if t: raise` and `assert t` as `torch._assert_async`."""
    test, statement = test_of(site, function), function.statement(site.node)
    said: ast.expr | None
    if test is None or site.confidence < 3:
        return None
    if isinstance(statement, ast.Assert) and statement.test is test:
        condition, said = predicate(test, function), statement.msg
    elif isinstance(statement, ast.If) and statement.test is test and not is_elif(function, statement):
        if len(statement.body) != 1 or statement.orelse or not isinstance(statement.body[0], ast.Raise):
            return None
        error = statement.body[0].exc
        condition = predicate(test, function, negated=True)
        said = error.args[0] if isinstance(error, ast.Call) and error.args else None
    else:
        return None
    if condition is None:
        return None
    text: ast.expr | str = repr(" ".join(function.view.text(test).split()))
    if isinstance(said, ast.Constant) and isinstance(said.value, str):
        text = said
    draft = function.draft()
    draft.replace(statement, f"torch._assert_async({condition}, {{said}})", said=text, **holes(test))
    return draft.fix(
        "let the device check",
        Safety.SUGGEST,
        "the error is a RuntimeError that comes later, after further steps were asked for; on CUDA the device is then lost",
    )
